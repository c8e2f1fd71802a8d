"""What cannot be exported, and the allow-lists that every name and number passes on its way into a script."""

from __future__ import annotations

import re

from qconf.config import POOL_SUFFIX
from qconf.errors import QconfError
from qconf.history.names import LEGAL, LONGEST_NAME

HOST_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")


class ExportError(QconfError):
    """The configuration, or something given with it, cannot be said to the batch system."""


def checked_queue(name: str, *, pooled: bool = False) -> str:
    """Return a queue name that PBS takes, or raise `ExportError`; nothing is ever escaped or shortened."""
    most = LONGEST_NAME - len(POOL_SUFFIX) if pooled else LONGEST_NAME
    if not LEGAL.fullmatch(name) or len(name) > most:
        why = f", since {POOL_SUFFIX} is appended for the pool" if pooled else ""
        raise ExportError(
            f"queue name {name!r}: PBS takes 1 to {most} letters, digits, _ and -, a letter first{why}. "
            "Rename it in the configuration."
        )
    return name


def checked_host(name: str) -> str:
    """Return a node name that may enter a script, or raise `ExportError`."""
    if not HOST_NAME.fullmatch(name):
        raise ExportError(f"node name {name!r}: 1 to 63 letters, digits, _ . and - are taken, a letter or digit first.")
    return name
