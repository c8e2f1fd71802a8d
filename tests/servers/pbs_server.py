"""A private OpenPBS in its own namespaces: server, scheduler, comm and MoM."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from qconf.errors import InputError
from tests.servers import machine
from tests.servers.machine import USERS, WORK, PrivateMachine

__all__ = ["USERS", "WORK", "PrivateServer", "unavailable"]

_SETUP = """
cat > /srv/etc/pbs.conf <<END
PBS_EXEC=PREFIX
PBS_HOME=/srv/pbs
PBS_SERVER=pbshost
PBS_START_SERVER=1
PBS_START_SCHED=1
PBS_START_COMM=1
PBS_START_MOM=1
PBS_LOG_HIGHRES_TIMESTAMP=1
END
printf '#!/bin/sh\\necho "$@" >> /srv/systemctl\\n' > /srv/sbin/systemctl
chmod 755 /srv/sbin/systemctl
install -d -m 1777 /run/postgresql
version=$(PREFIX/libexec/pbs_habitat --version | cut -d= -f2)
PREFIX/libexec/pbs_postinstall server $version PREFIX /srv/pbs '' sameconf > /srv/postinstall.log 2>&1
"""


def unavailable(pbs_exec: str | None = None) -> str | None:
    """Return the reason why no private server can be started here, None if one can."""
    prefix = pbs_exec or os.environ.get("PBS_EXEC")
    if not prefix:
        return "PBS_EXEC names no installation of OpenPBS"
    for name in ("sbin/pbs_server", "sbin/pbs_sched", "sbin/pbs_mom", "libexec/pbs_habitat", "bin/qmgr"):
        if not Path(prefix, name).exists():
            return f"PBS_EXEC={prefix}: there is no {name}"
    return machine.unavailable()


class PrivateServer(PrivateMachine):
    """A running OpenPBS with simulated nodes: `nodes` gives the cores by name, `sharing` is the vnodes' attribute.

    `attributes` gives more attributes by node, and overrides `sharing`; a node with its own
    ``resources_available.host`` is a separate host, which a chunk does not span. Use it in a ``with`` statement. Raises
    InputError if it cannot be started.
    """

    host = "pbshost"
    saved: ClassVar = {
        "print server": "qmgr -c 'print server'",
        "print node": "qmgr -c 'print node @default'",
        "print sched": "qmgr -c 'print sched' | grep -v ' state = '",
        "sched_config": "cat /srv/pbs/sched_priv/sched_config",
        "hooks": "qmgr -c 'list hook' | grep ^Hook",
    }

    def __init__(
        self,
        nodes: Mapping[str, int],
        *,
        sharing: str = "default_shared",
        attributes: Mapping[str, Mapping[str, str]] | None = None,
        pbs_exec: str | None = None,
    ) -> None:
        if why := unavailable(pbs_exec):
            raise InputError(why, fix="install OpenPBS and set PBS_EXEC to its prefix")
        self.prefix = pbs_exec or os.environ["PBS_EXEC"]
        self.nodes, self.sharing, self.attributes = nodes, sharing, attributes or {}
        self.path = f"{self.prefix}/bin:{self.prefix}/sbin:"
        super().__init__(_SETUP.replace("PREFIX", shlex.quote(self.prefix)), {"PBS_EXEC": self.prefix})

    def start(self) -> None:
        """Start the server with its nodes. Raises InputError."""
        lines = ["$configversion 2", f"pbshost: resources_available.ncpus = 0\npbshost: sharing = {self.sharing}"]
        for name, cores in self.nodes.items():
            held = {"resources_available.ncpus": cores, "sharing": self.sharing, **self.attributes.get(name, {})}
            lines += [f"{name}: {key} = {value}" for key, value in held.items()]
        lines += [f"{self.host}: {key} = {value}" for key, value in self.attributes.get(self.host, {}).items()]
        self.write("vnodes", "\n".join(lines) + "\n")
        started = self.run("pbs_mom -s insert vnodes vnodes; $PBS_EXEC/libexec/pbs_init.d start", timeout=180)
        self.wait("qmgr -c 'list server' > /dev/null", f"the server does not come up: {started.stdout[-2000:]}")
        self.wait(f"[ $(pbsnodes -av | grep -c 'state = free') -gt {len(self.nodes)} ]", "the nodes do not come up")

    def qsub(self, words: str, *, user: str = USERS[0], seconds: int = 60) -> str:
        """Submit a job that sleeps `seconds`, as one of `USERS`; return its id, or the message of qsub."""
        return self.run(f"qsub {words} -- /bin/sleep {seconds}", user=user).stdout.strip()

    def run_block(self, block: str) -> str | None:
        """Run a block of a plan; return its output if it failed or qmgr reported an error, else None."""
        done = self.run(block, timeout=600)
        wrong = done.returncode or re.search(r"qmgr: Error|command not found|No such file", done.stdout)
        return done.stdout.strip()[-300:] if wrong else None
