"""An OpenPBS of this machine, started in namespaces of its own: nothing outside sees it, nothing of it is left behind.

Server, scheduler, comm and MoM run with their own mounts, network, host name and process ids; memory holds all that
they write. The address is one for documentation, on the loopback device of that network alone.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from qconf.errors import InputError

USERS = ("alice", "bob", "carol")
HOME = "/srv/pbs"
WORK = "/srv/work"
_SETUP = """
set -e
hostname pbshost
ip link set lo up
ip address add 192.0.2.1/32 dev lo
mount -t tmpfs -o mode=755 tmpfs /srv
mkdir -p /srv/home /srv/sbin /srv/work
cp -a /etc /srv/etc
printf '127.0.0.1 localhost\\n192.0.2.1 pbshost\\n' > /srv/etc/hosts
echo pbshost > /srv/etc/hostname
number=7001
for user in USERS; do
  echo "$user:x:$number:$number::/srv/home/$user:/bin/bash" >> /srv/etc/passwd
  echo "$user:*:19000:0:99999:7:::" >> /srv/etc/shadow
  echo "$user:x:$number:" >> /srv/etc/group
  install -d -o $number -g $number /srv/home/$user
  number=$((number + 1))
done
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
mkdir -p /srv/etc/systemd/system /srv/etc/cron.d
mount --bind /srv/etc /etc
printf '#!/bin/sh\\necho "$@" >> /srv/systemctl\\n' > /srv/sbin/systemctl
chmod 755 /srv/sbin/systemctl
mount --bind /srv/sbin /usr/local/sbin
mount -t tmpfs -o mode=755 tmpfs /run
mount -t tmpfs -o mode=1777 tmpfs /var/tmp
install -d -m 1777 /run/lock /run/postgresql
version=$(PREFIX/libexec/pbs_habitat --version | cut -d= -f2)
PREFIX/libexec/pbs_postinstall server $version PREFIX /srv/pbs '' sameconf > /srv/postinstall.log 2>&1
echo ready
trap : CHLD  # the first process reaps what the daemons leave
while :; do sleep 5; done
"""


def unavailable(pbs_exec: str | None = None) -> str | None:
    """Return why no private server can be started here; None if one can."""
    prefix = pbs_exec or os.environ.get("PBS_EXEC")
    if not prefix:
        return "PBS_EXEC names no installation of OpenPBS"
    for name in ("sbin/pbs_server", "sbin/pbs_sched", "sbin/pbs_mom", "libexec/pbs_habitat", "bin/qmgr"):
        if not Path(prefix, name).exists():
            return f"PBS_EXEC={prefix}: there is no {name}"
    if os.geteuid() != 0:
        return "namespaces of its own need root"
    missing = [name for name in ("unshare", "nsenter", "ip", "su") if shutil.which(name) is None]
    return f"{', '.join(missing)}: no such program here" if missing else None


class PrivateServer:
    """A running OpenPBS with simulated nodes: cores by their names, `sharing` as vnodes have it.

    Use it in a ``with`` statement. Raises InputError where it cannot be started.
    """

    def __init__(
        self, nodes: Mapping[str, int], *, sharing: str = "default_shared", pbs_exec: str | None = None
    ) -> None:
        if why := unavailable(pbs_exec):
            raise InputError(why, fix="install OpenPBS and set PBS_EXEC to its prefix")
        self.prefix = pbs_exec or os.environ["PBS_EXEC"]
        self.nodes, self.sharing = nodes, sharing
        self.outer: subprocess.Popen[str] | None = None
        self.first = 0  #: process id of the first process in the namespaces

    def __enter__(self) -> Self:
        kinds = ("--mount", "--net", "--uts", "--ipc", "--pid", "--fork", "--kill-child", "--mount-proc")
        setup = _SETUP.replace("PREFIX", shlex.quote(self.prefix)).replace("USERS", " ".join(USERS))
        self.outer = subprocess.Popen(  # noqa: S603 - its own words
            [shutil.which("unshare") or "unshare", *kinds, "--propagation", "private", "bash", "-c", setup],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        if self.outer.stdout is None or (said := self.outer.stdout.readline()).strip() != "ready":
            self.__exit__()
            raise InputError(f"no namespaces for OpenPBS: {said.strip()}")
        children = Path(f"/proc/{self.outer.pid}/task/{self.outer.pid}/children").read_text(encoding="ascii")
        self.first = int(children.split()[0])
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self.outer is not None:
            self.outer.kill()  # takes every process of the namespaces with it
            self.outer.wait()

    def _start(self) -> None:
        lines = ["$configversion 2", f"pbshost: resources_available.ncpus = 0\npbshost: sharing = {self.sharing}"]
        for name, cores in self.nodes.items():
            lines += [f"{name}: resources_available.ncpus = {cores}", f"{name}: sharing = {self.sharing}"]
        self.write("vnodes", "\n".join(lines) + "\n")
        started = self.run("pbs_mom -s insert vnodes vnodes; $PBS_EXEC/libexec/pbs_init.d start", timeout=180)
        self.wait("qmgr -c 'list server' > /dev/null", f"the server does not come up: {started.stdout[-2000:]}")
        self.wait(f"[ $(pbsnodes -av | grep -c 'state = free') -gt {len(self.nodes)} ]", "the nodes do not come up")

    def run(
        self, command: str, *, user: str | None = None, folder: str = WORK, timeout: float = 60
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in a shell of its own, as root or as one of `USERS` in its home; both outputs are one."""
        path = f"{self.prefix}/bin:{self.prefix}/sbin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"
        if user is not None:
            command = f"su {user} -c {shlex.quote(f'cd; PATH={path}; {command}')}"
        inside = ["nsenter", "--target", str(self.first), "--mount", "--net", "--uts", "--ipc", "--pid"]
        environment = {"PATH": path, "LC_ALL": "C", "HOME": "/root", "PBS_EXEC": self.prefix}
        return subprocess.run(  # noqa: S603 - what the export's own plan says
            [*inside, "bash", "-c", f"cd {folder}\n{command}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
            errors="replace",
            text=True,
            timeout=timeout,
            check=False,
        )

    def write(self, name: str, text: str, *, folder: str = WORK) -> None:
        """Write a file there."""
        Path(f"/proc/{self.first}/root{folder}", name).write_text(text, encoding="utf-8")

    def wait(self, command: str, otherwise: str, *, seconds: float = 60) -> str:
        """Wait until a command succeeds and return what it printed. Raises InputError."""
        end = time.monotonic() + seconds
        while (done := self.run(command)).returncode:
            if time.monotonic() > end:
                raise InputError(f"{otherwise}: {done.stdout.strip()[-500:]}")
            time.sleep(0.3)
        return done.stdout
