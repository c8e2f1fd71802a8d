"""Running limits of queues that a split or a merge replaces; the site's total limits stay the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from parsim.model.system import LIMITS
from qconf.config import QueueConfig, SiteConfig, ThrottleConfig
from qconf.config.models import HoursConfig
from qconf.strategies.partitioning.sizes import Sizes, apportion

Row = Sequence["int | None"]  # the values of one kind of limit for several queues
OfQueue = TypeVar("OfQueue", HoursConfig, ThrottleConfig)


class UndividedLimitError(Exception):
    """A limit is too small to be divided; the message names it."""


def with_limits(
    config: SiteConfig, gone: Sequence[int], parts: Sequence[QueueConfig], work: NDArray[np.float64], widest: Sizes
) -> tuple[list[QueueConfig], dict[str, object]]:
    """Return `parts` with the limits of the queues at the indices `gone`, and changes of other configuration fields.

    Limits of the queues, their throttles and `hours` are added up and divided among the parts by their `work`, shape
    (parts,), so that each total stays. A part gets at least one job, or the cores of its `widest` job. A kind of limit
    that one of the queues lacks is left out. Raises UndividedLimitError if a limit is less than the parts need.
    """
    queues = [config.queues[i] for i in gone]
    before, after = [queue.name for queue in queues], [part.name for part in parts]

    def shared(kind: str, row: Row, least: int = 1) -> list[int | None]:
        known = [value for value in row if value is not None]
        if len(known) < len(row):
            return [None] * len(parts)
        needed = np.maximum(widest if "cores" in kind.split("_") and least else 0, np.full(len(parts), least))
        if sum(known) < needed.sum():
            raise UndividedLimitError(f"{kind} of {sum(known)} cannot be shared out: {needed.sum()} are needed")
        return [int(each) for each in apportion(work, sum(known), needed)]

    limits = {kind: shared(kind, [getattr(queue, kind) for queue in queues]) for kind in LIMITS}
    limited = [part.model_copy(update={kind: row[p] for kind, row in limits.items()}) for p, part in enumerate(parts)]

    throttles = [each for each in config.throttles if each.queue not in before]
    for whose, rows in _rows(config.throttles, before, lambda each: (each.each, each.user, each.group, each.qos)):
        kinds = dict.fromkeys(kind for each in rows if each is not None for kind in each.limits)
        dealt = {
            kind: shared(kind, [None if each is None else each.limits.get(kind) for each in rows]) for kind in kinds
        }
        for p, name in enumerate(after):
            own = {kind: limit for kind, row in dealt.items() if (limit := row[p]) is not None}
            each, user, group, qos = whose
            throttles += [ThrottleConfig.of(own, each=each, user=user, group=group, qos=qos, queue=name)] if own else []

    hours = [each for each in config.hours if each.queue not in before]
    for (days, begin, end), spans in _rows(config.hours, before, lambda each: (each.days, each.begin, each.end)):
        closed = {kind: shared(kind, [getattr(each, kind, None) for each in spans], least=0) for kind in LIMITS}
        for p, name in enumerate(after):
            own = {kind: limit for kind, row in closed.items() if (limit := row[p]) is not None}
            fields = {"queue": name, "days": days, "begin": begin, "end": end, **own}
            hours += [HoursConfig.model_validate(fields)] if own else []

    qos = tuple(
        each.model_copy(update={"queues": (*(name for name in each.queues if name not in before), *after)})
        if set(before) & set(each.queues)
        else each
        for each in config.qos
    )
    return limited, {"throttles": tuple(throttles), "hours": tuple(hours), "qos": qos}


def _rows(
    entries: Sequence[OfQueue], names: Sequence[str], key: Callable[[OfQueue], tuple[object, ...]]
) -> Iterator[tuple[tuple[object, ...], list[OfQueue | None]]]:
    """Yield each key of these queues' entries, with each queue's entry for it, None if it has none."""
    own = {(each.queue, key(each)): each for each in entries if each.queue in names}
    for whose in dict.fromkeys(whose for _, whose in own):
        yield whose, [own.get((name, whose)) for name in names]
