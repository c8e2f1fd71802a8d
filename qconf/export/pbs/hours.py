"""Limits that hold for some hours, as commands of qmgr."""

from __future__ import annotations

import re
from collections.abc import Mapping

from qconf.config import QueueConfig
from qconf.export.pbs.server import Server
from qconf.export.pbs.throttles import ALL, EACH, KEYS, written

HEAD = ("PATH=/opt/pbs/bin:/usr/local/bin:/usr/bin:/bin", "LC_ALL=C")
_SCOPES = {
    "max_run": ("max_run", ALL),
    "max_run_cores": ("max_run_cores", ALL),
    "max_user_run": ("max_run", f"u:{EACH}"),
    "max_user_cores": ("max_run_cores", f"u:{EACH}"),
}


class SetLimits:
    """Writes the commands that give a queue limits, beside the others that it has on a server."""

    def __init__(self, server: Server) -> None:
        self.server = server

    def __call__(self, queue: QueueConfig, limits: Mapping[str, int | None]) -> list[str]:
        """Write a command for each attribute that has some of these limits."""
        values: dict[str, dict[str, str]] = {}
        for name, most in limits.items():
            kind, scope = _SCOPES[name]
            key = KEYS[kind]
            text = self.server.queues[queue.name].get(key, "")
            found = values.setdefault(key, dict(re.findall(r"\[([^=\]]+)=([^\]]*)\]", text)))
            found.pop(scope, None)
            if most is not None:
                found[scope] = str(most)
        return [
            f"qmgr -c 'set queue {queue.name} {key} = \"{written(key, found)}\"'"  # type: ignore[arg-type]
            if found
            else f"qmgr -c 'unset queue {queue.name} {key}'"
            for key, found in values.items()
        ]
