"""Submit jobs to a private batch system at given moments, each user from one shell."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from tests.servers.machine import USERS, WORK, PrivateMachine

_AT = """\
at() {
  left=$(($1 - $(date +%s%3N)))
  [ $left -le 0 ] || sleep $((left / 1000)).$(printf %03d $((left % 1000)))
}
"""


def submit(
    server: PrivateMachine, moments: NDArray[np.float64], users: NDArray[np.int64], commands: Sequence[str]
) -> list[str]:
    """Run each job's command at its moment (Unix seconds) as its user (index into `USERS`); return the outputs."""
    for number, user in enumerate(USERS):
        lines = [f"at {1000 * moments[j]:.0f}\necho $({commands[j]}) {j}\n" for j in np.flatnonzero(users == number)]
        server.write(f"{user}.sh", _AT + "".join(lines))
    with ThreadPoolExecutor(len(USERS)) as pool:
        outputs = list(pool.map(lambda user: _as_user(server, user), USERS))
    printed = {}
    for line in "".join(outputs).splitlines():
        said, _, number = line.rpartition(" ")
        if not number.isdigit():
            raise RuntimeError(f"a submission says: {line}")
        printed[int(number)] = said
    return [printed[j] for j in range(len(commands))]


def _as_user(server: PrivateMachine, user: str) -> str:
    """Run a user's submissions; return their output, or a message of the timeout."""
    try:
        return server.run(f"sh {WORK}/{user}.sh", user=user, timeout=1800).stdout
    except subprocess.TimeoutExpired:
        return "it takes too long"
