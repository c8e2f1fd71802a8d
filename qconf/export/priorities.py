"""Queue priorities as small whole numbers, which is what batch systems take."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from qconf.config import QueueConfig

HIGHEST = 1023  #: of PBS's queue attribute Priority


@dataclass(frozen=True)
class Priorities:
    """Whole priorities by queue, and the priority of the configuration that 1 stands for (None: no exact one)."""

    values: dict[str, int]
    unit: Fraction | None


def scale(queues: Sequence[QueueConfig]) -> Priorities:
    """Bring priorities into 1..1023: their order always kept, their ratios where whole numbers can."""
    exact = {queue.name: Fraction(repr(queue.priority)) for queue in queues}
    if all(value.denominator == 1 and value <= HIGHEST for value in exact.values()):
        return Priorities({name: int(value) for name, value in exact.items()}, Fraction(1))
    scales = math.lcm(*(value.denominator for value in exact.values()))
    unit = Fraction(math.gcd(*(int(value * scales) for value in exact.values())), scales)
    if max(exact.values()) / unit <= HIGHEST:
        return Priorities({name: int(value / unit) for name, value in exact.items()}, unit)
    distinct = sorted(set(exact.values()))
    scaled: dict[Fraction, int] = {}
    below = 0
    for rank, value in enumerate(distinct):
        most = HIGHEST - (len(distinct) - 1 - rank)  # the larger ones need a value each
        below = min(max(below + 1, round(value * HIGHEST / distinct[-1])), most)
        scaled[value] = below
    return Priorities({name: scaled[value] for name, value in exact.items()}, None)
