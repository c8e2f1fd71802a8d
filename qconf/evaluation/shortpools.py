"""Shortpools of a configuration as windows of the simulator, one for each time that their cores are reserved."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from parsim import System, Window
from qconf.config import ShortpoolConfig
from qconf.evaluation.hours import AFTER, spans
from qconf.history.times import zone


def dedicated(
    system: System, shortpools: tuple[ShortpoolConfig, ...], within: tuple[int, int], epoch: int, timezone: str
) -> System:
    """Return a system with windows for the shortpools, from the first to a year after the last second of `within`.

    Times of the day are local to the time zone; second 0 is the Unix time `epoch`.
    """
    return replace(system, windows=_windows(shortpools, *within, epoch, timezone)) if shortpools else system


@lru_cache(maxsize=64)
def _windows(
    shortpools: tuple[ShortpoolConfig, ...], first: int, last: int, epoch: int, timezone: str
) -> tuple[Window, ...]:
    return tuple(
        Window(begin, end, None if each.types else each.cores, walltime=each.walltime, node_types=each.types)
        for each in shortpools
        for begin, end in _joined(spans(each, first, last + AFTER * 86400, epoch, zone(timezone)))
        if end > first
    )


def _joined(found: Iterator[tuple[int, int]]) -> list[tuple[int, int]]:
    """Merge spans that touch or overlap."""
    joined: list[tuple[int, int]] = []
    for begin, end in found:
        if joined and begin <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((begin, end))
    return joined
