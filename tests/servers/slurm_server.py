"""A private Slurm in its own namespaces: controller, nodes, and accounting if it is needed."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping, Sequence
from typing import ClassVar

from qconf.errors import InputError
from qconf.hosts import fold
from tests.servers import machine
from tests.servers.machine import PrivateMachine

DAEMONS = 16  #: most nodes with a daemon; jobs can start only on these
LONGEST_START = 300  #: seconds, on a busy machine
LONGEST_BLOCK = 300  #: seconds for a block of a plan, since no job runs long here
_PROGRAMS = ("slurmctld", "slurmd", "sbatch", "scontrol", "squeue")
_ACCOUNTING = ("slurmdbd", "sacctmgr", "mariadbd", "mariadb-install-db")
_CONF = """\
ClusterName=rehearsal
SlurmctldHost=slurmhost
AuthType=auth/none
CredType=cred/none
SlurmUser=root
SlurmdUser=root
StateSaveLocation=/srv/slurm
SlurmdSpoolDir=/srv/spool/%n
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd-%n.pid
SlurmctldLogFile=/srv/log/slurmctld
SlurmdLogFile=/srv/log/slurmd-%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SlurmdTimeout=0
MinJobAge=86400
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
"""
_DATABASE = """\
AuthType=auth/none
DbdHost=slurmhost
SlurmUser=root
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=root
StorageLoc=slurm_acct
LogFile=/srv/log/slurmdbd
PidFile=/run/slurmdbd.pid
"""
_SYSTEMCTL = """\
#!/bin/sh
echo "$@" >> /srv/systemctl
[ "$*" = "restart slurmctld" ] || exit 1
read -r pid < /run/slurmctld.pid && kill "$pid" && while kill -0 "$pid" 2> /dev/null; do sleep 0.05; done
exec slurmctld
"""
_SETUP = """
rm -rf /srv/etc/slurm
mkdir -p /srv/etc/slurm /srv/slurm /srv/spool /srv/log /srv/mysql /srv/temporary /run/mysqld
"""
_STEPS = """
set -eE
trap 'echo "$BASH_COMMAND: exit code $?"; tail -n 5 /srv/log/*' ERR  # a failed step is reported with its reason
"""
_MARIADB = """
# Names of temporary tables hold the process id, which other namespaces have too: never in /tmp, which all share.
own="--no-defaults --user=root --datadir=/srv/mysql --tmpdir=/srv/temporary"
mariadb-install-db $own --skip-test-db > /srv/log/mariadb 2>&1
mariadbd $own --socket=/run/mysqld/mysqld.sock --skip-networking \
  --innodb-flush-log-at-trx-commit=0 --innodb-buffer-pool-size=64M >> /srv/log/mariadb 2>&1 &
until mariadb-admin --socket=/run/mysqld/mysqld.sock ping > /dev/null 2>&1; do kill -0 $!; sleep 0.1; done
slurmdbd
until sacctmgr --noheader show cluster > /dev/null 2>&1; do sleep 0.1; done
sacctmgr --immediate add cluster rehearsal > /dev/null
sacctmgr --immediate add account all > /dev/null
sacctmgr --immediate add user root,alice,bob,carol account=all > /dev/null
"""


def unavailable(*, accounting: bool = True) -> str | None:
    """Return the reason why no private Slurm can be started here, None if one can."""
    wanted = (*_PROGRAMS, *(_ACCOUNTING if accounting else ()))
    missing = [name for name in wanted if shutil.which(name) is None]
    if missing:
        return f"{', '.join(missing)}: no such program here (Debian's slurm-wlm, slurmdbd and mariadb-server)"
    return machine.unavailable()


class PrivateSlurm(PrivateMachine):
    """A running Slurm with emulated nodes: `nodes` gives the cores by name, `lines` has partitions and settings.

    By node, `gpus` is the number of GPUs (dummy devices), `features` the features, `words` more text of its line in
    slurm.conf. Use it in a ``with`` statement. Raises InputError if it cannot be started.
    """

    host = "slurmhost"
    saved: ClassVar = {
        "partitions": "scontrol --oneliner show partition",
        "configuration": "scontrol show config | grep -E '^(Sched|Priority|Preempt|JobSubmit|AccountingStorageEnf)'",
        "QOS": "sacctmgr --noheader --parsable2 show qos "
        "format=Name,GrpJobs,GrpTRES,MaxJobsPU,MaxTRESPU,Priority,Flags 2> /dev/null",
        "associations": "sacctmgr --noheader --parsable2 show associations "
        "format=Account,User,GrpJobs,GrpTRES,GrpTRESRunMins,GrpSubmit,QOS,DefaultQOS 2> /dev/null",
        "/etc/slurm": "cd /etc/slurm && sha256sum *",
    }

    def __init__(
        self,
        nodes: Mapping[str, int],
        lines: str,
        *,
        accounting: bool = True,
        daemons: int = DAEMONS,
        gpus: Mapping[str, int] | None = None,
        features: Mapping[str, Sequence[str]] | None = None,
        words: Mapping[str, str] | None = None,
    ) -> None:
        if why := unavailable(accounting=accounting):
            raise InputError(why, fix="install what is missing, and run this as root")
        self.nodes, self.lines, self.accounting, self.daemons = nodes, lines, accounting, daemons
        self.gpus, self.features, self.words = gpus or {}, features or {}, words or {}
        super().__init__(_SETUP)

    @property
    def awake(self) -> list[str]:
        """The nodes with a daemon."""
        return list(self.nodes)[: self.daemons]

    def conf(self, lines: str) -> str:
        """Return the text of a slurm.conf with these partitions and settings."""
        storage = "slurmdbd" if self.accounting else "none"
        text = f"{_CONF}AccountingStorageType=accounting_storage/{storage}\n"
        ports = {name: 7000 + number for number, name in enumerate(self.nodes)}
        for cores in dict.fromkeys(self.nodes.values()):
            for name in (name for name, held in self.nodes.items() if held == cores):
                gres = f" Gres=gpu:{self.gpus[name]}" if name in self.gpus else ""
                gres += f" Feature={','.join(self.features[name])}" if name in self.features else ""
                where = f"NodeHostname=slurmhost NodeAddr=192.0.2.1 Port={ports[name]}"
                text += f"NodeName={name} {where} CPUs={cores}{gres} {self.words.get(name, '')}".rstrip() + "\n"
        return text + ("GresTypes=gpu\n" if self.gpus else "") + lines

    def start(self) -> None:
        """Start accounting, controller and nodes. Raises InputError."""
        self.write("systemctl", _SYSTEMCTL, folder="/srv/sbin")
        self.write("slurm.conf", self.conf(self.lines), folder="/etc/slurm")
        if self.gpus:
            files = (f"NodeName={name} Name=gpu File=/srv/gpu[1-{count}]\n" for name, count in self.gpus.items())
            self.write("gres.conf", "".join(files), folder="/etc/slurm")  # Slurm counts GPUs by device
            self.run(f"for number in $(seq {max(self.gpus.values())}); do mknod /srv/gpu$number c 1 3; done")
        self.write("slurmdbd.conf", _DATABASE, folder="/etc/slurm")
        started = self.run(
            f"chmod 755 /srv/sbin/systemctl; chmod 600 /etc/slurm/slurmdbd.conf\n{_STEPS}"
            f"{_MARIADB if self.accounting else ''}\nslurmctld 2>&1",
            timeout=LONGEST_START,
        )
        if started.returncode:
            raise InputError(f"no Slurm for a rehearsal: {started.stdout.strip()[-2000:]}")
        up = "scontrol ping | grep -q UP || { tail -n 3 /srv/log/slurmctld; false; }"
        self.wait(up, "the controller does not come up", seconds=LONGEST_START)
        self.run("".join(f"slurmd -N {name}\n" for name in self.awake))
        up = f"[ $(sinfo --noheader --Node --states=idle --nodes={fold(self.awake)} | wc -l) -ge {len(self.awake)} ]"
        self.wait(up, "the nodes do not come up", seconds=LONGEST_START)

    def run_block(self, block: str) -> str | None:
        """Run a block of a plan with a strict umask; return a message if it failed, else None."""
        if re.search("until jobs=|for name in shortpool_", block):  # jobs run until the plan waits for them
            self.run("(sleep 1; touch /srv/end) > /dev/null 2>&1 &")
        quick = re.sub(r"sleep \d", "sleep 0.2", block)  # between two checks
        done = self.run(f"umask 077\n{quick}", timeout=LONGEST_BLOCK)
        return f"exit {done.returncode}: {done.stdout.strip()[-500:]}" if done.returncode else None
