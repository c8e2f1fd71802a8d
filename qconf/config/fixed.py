"""The paths that `fixed` of a configuration can name: fields that no search may change."""

from __future__ import annotations

import re
from collections.abc import Iterable

from qconf.config.models import SCALARS, MachineConfig, PoolConfig, QueueConfig


def fixable_paths(names: Iterable[str]) -> list[str]:
    """Return every path that `fixed` can name, given the names of the queues."""
    return [
        *SCALARS,
        "shortpools",
        "nodes",
        *(f"machine.{field}" for field in MachineConfig.model_fields),
        *(
            f"queues.{name}.{field}"
            for name in names
            for field in QueueConfig.model_fields
            if field != "partition_nodes"
        ),
        *(f"queues.{name}.max_run_resources" for name in names),
        *(f"pool.{field}" for field in PoolConfig.model_fields),
    ]


def matches(pattern: str, path: str) -> bool:
    """Return whether a pattern of `fixed`, where ``*`` is any text, covers `path` or one of its parents."""
    text = re.escape(pattern).replace(r"\*", ".*")
    return re.fullmatch(rf"{text}(\..*)?", path, re.DOTALL) is not None
