"""Linux namespaces for a private batch system, invisible from outside and without traces afterwards.

Its daemons have their own mounts, network, host name and process ids; their files are in memory. The address, one
reserved for documentation, exists only on the loopback device of that network.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Self

from qconf.errors import InputError

USERS = ("alice", "bob", "carol")
WORK = "/srv/work"
_SETUP = """
set -e
hostname HOST
ip link set lo up
ip address add 192.0.2.1/32 dev lo
mount -t tmpfs -o mode=755 tmpfs /srv
mkdir -p /srv/home /srv/sbin /srv/work
cp -a /etc /srv/etc
printf '127.0.0.1 localhost\\n192.0.2.1 HOST\\n' > /srv/etc/hosts
echo HOST > /srv/etc/hostname
number=7001
for user in USERS; do
  echo "$user:x:$number:$number::/srv/home/$user:/bin/bash" >> /srv/etc/passwd
  echo "$user:*:19000:0:99999:7:::" >> /srv/etc/shadow
  echo "$user:x:$number:" >> /srv/etc/group
  install -d -o $number -g $number /srv/home/$user
  number=$((number + 1))
done
mkdir -p /srv/etc/systemd/system /srv/etc/cron.d
mount --bind /srv/etc /etc
mount --bind /srv/sbin /usr/local/sbin
mount -t tmpfs -o mode=755 tmpfs /run
mount -t tmpfs -o mode=1777 tmpfs /var/tmp
mkdir -m 1777 /run/lock
OWN
echo ready
trap : CHLD  # the first process reaps the daemons' children
while read -r -t 5 || [ $? -gt 128 ]; do :; done  # until its starter is gone
"""


def unavailable() -> str | None:
    """Return the reason why no namespaces can be made here, None if they can."""
    if os.geteuid() != 0:
        return "namespaces of its own need root"
    missing = [name for name in ("unshare", "nsenter", "ip", "su") if shutil.which(name) is None]
    if missing:
        return f"{', '.join(missing)}: no such program here"
    tried = subprocess.run(
        ["unshare", "--mount", "--net", "--pid", "--fork", "mount", "-t", "tmpfs", "tmpfs", "/srv"],
        capture_output=True,
        text=True,
        check=False,
    )
    return f"namespaces are not allowed here: {tried.stderr.strip()}" if tried.returncode else None


class PrivateMachine:
    """Namespaces with one host and three users, set up by the shell lines `setup`; base of a private batch system.

    Use it in a ``with`` statement. Raises InputError if the namespaces cannot be made.
    """

    host: str  #: host name
    path: str = ""  #: folders of programs, searched before the usual ones
    saved: ClassVar[Mapping[str, str]] = {}  #: commands whose output an undo must restore

    def __init__(self, setup: str, environment: Mapping[str, str] | None = None) -> None:
        values = {"OWN": setup, "HOST": self.host, "USERS": " ".join(USERS)}
        self.setup = _SETUP
        for name, value in values.items():
            self.setup = self.setup.replace(name, value)
        self.path = f"{self.path}/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"
        self.environment = {"PATH": self.path, "LC_ALL": "C", "HOME": "/root", **(environment or {})}
        self.outer: subprocess.Popen[str] | None = None
        self.first = 0  #: process id of the first process in the namespaces

    def __enter__(self) -> Self:
        kinds = ("--mount", "--net", "--uts", "--ipc", "--pid", "--fork", "--kill-child", "--mount-proc")
        self.outer = subprocess.Popen(
            [shutil.which("unshare") or "unshare", *kinds, "--propagation", "private", "bash", "-c", self.setup],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        said = "" if self.outer.stdout is None else self.outer.stdout.readline()
        if said.strip() != "ready":
            self.__exit__()
            raise InputError(f"no namespaces for {self.host}: {said.strip()}")
        children = Path(f"/proc/{self.outer.pid}/task/{self.outer.pid}/children").read_text(encoding="ascii")
        self.first = int(children.split()[0])
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self.outer is not None:
            self.outer.kill()  # kills every process of the namespaces
            self.outer.wait()

    def start(self) -> None:
        """Start the daemons, and wait until they answer. Raises InputError."""

    def run(
        self, command: str, *, user: str | None = None, host: str = "", folder: str = WORK, timeout: float = 60
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in a new shell, as root or as one of `USERS` in its home; stdout includes stderr.

        With `host`, the shell has that host name.
        """
        if user is not None:
            command = f"su {user} -c {shlex.quote(f'cd; PATH={self.path}; {command}')}"
        if host:
            command = f"unshare --uts bash -c {shlex.quote(f'hostname {host}; {command}')}"
        inside = ["nsenter", "--target", str(self.first), "--mount", "--net", "--uts", "--ipc", "--pid"]
        return subprocess.run(
            [*inside, "bash", "-c", f"cd {folder}\n{command}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=self.environment,
            errors="replace",
            text=True,
            timeout=timeout,
            check=False,
        )

    def run_block(self, block: str) -> str | None:
        """Run a block of a plan; return a message if it failed, else None."""
        done = self.run(block)
        return f"exit {done.returncode}" if done.returncode else None

    def write(self, name: str, text: str, *, folder: str = WORK) -> None:
        """Write a file in the namespaces."""
        Path(f"/proc/{self.first}/root{folder}", name).write_text(text, encoding="utf-8")

    def wait(self, command: str, otherwise: str, *, seconds: float = 60) -> str:
        """Wait until a command succeeds, and return its output. Raises InputError with the message `otherwise`."""
        end = time.monotonic() + seconds
        while (done := self.run(command)).returncode:
            if time.monotonic() > end:
                raise InputError(f"{otherwise}: {done.stdout.strip()[-500:]}")
            time.sleep(0.3)
        return done.stdout
