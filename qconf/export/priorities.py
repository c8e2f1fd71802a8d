"""Convert queue priorities to the small whole numbers that batch systems accept."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from qconf.config import QueueConfig

LOWEST, HIGHEST = -1024, 1023  #: of PBS's queue attribute Priority


@dataclass(frozen=True)
class Priorities:
    """Whole priorities by queue; `unit` is the configuration's priority that 1 stands for, None if not exact."""

    values: dict[str, int]
    unit: Fraction | None
    exact: dict[int, float]  #: whole priority -> the configuration's priority

    @property
    def raised(self) -> int:
        """The whole number by which every priority of the configuration exceeds its whole one, 0 if there is none."""
        found = {own - value for value, own in self.exact.items()}
        by = found.pop() if len(found) == 1 else 0.0
        return int(by) if by > 0 and by == int(by) else 0


def are_several(queues: Sequence[QueueConfig]) -> bool:
    """Whether queues of the same tier have different priorities; between tiers priorities have no effect."""
    return len({(queue.tier, queue.priority) for queue in queues}) > len({queue.tier for queue in queues})


def scale(queues: Sequence[QueueConfig], highest: int = HIGHEST) -> Priorities:
    """Scale priorities to whole numbers in 1..`highest`; the order is kept, and ratios if whole numbers allow it.

    At most `highest` distinct priorities are allowed.
    """
    exact = {queue.name: Fraction(repr(queue.priority)) for queue in queues}
    values, unit = _scaled(sorted(set(exact.values())), highest)
    return Priorities(
        {name: values[value] for name, value in exact.items()},
        unit,
        {values[exact[queue.name]]: queue.priority for queue in queues},
    )


def as_present(
    queues: Sequence[QueueConfig],
    present: Mapping[str, tuple[float, int]],
    highest: int = HIGHEST,
    lowest: int = LOWEST,
) -> Priorities | None:
    """Keep the present whole priorities, and convert others by the rule that relates them; None without such a rule.

    `present` is by queue (priority in the present configuration, whole priority); the rule is a constant difference or
    ratio. New whole priorities are clipped to `lowest`..`highest`, but must keep the order.
    """
    if all(queue.name in present and queue.priority == present[queue.name][1] for queue in queues):
        held = {queue.name: int(queue.priority) for queue in queues}
        return Priorities(held, Fraction(1), {value: float(value) for value in held.values()})
    known = dict(present.values())
    if not known or len({*known.values()}) < len(known):
        return None
    (own, whole), *_ = known.items()
    ratio = Fraction(repr(own)) / whole if whole else None
    values: dict[str, int] = {}
    for queue in queues:
        value = Fraction(repr(queue.priority))
        if queue.priority in known:
            values[queue.name] = known[queue.priority]
            continue
        if all(each - at == own - whole for each, at in known.items()):
            value -= Fraction(repr(own)) - whole
        elif ratio and all(Fraction(repr(each)) == at * ratio for each, at in known.items()):
            value /= ratio
        else:
            return None
        if value.denominator != 1:
            return None
        values[queue.name] = min(max(int(value), lowest), highest)
    exact = {values[queue.name]: queue.priority for queue in queues}
    if sorted(exact.values()) != [exact[value] for value in sorted(exact)] or len(exact) < len({*exact.values()}):
        return None
    return Priorities(values, Fraction(1) if all(value == each for value, each in exact.items()) else None, exact)


def _scaled(distinct: Sequence[Fraction], highest: int) -> tuple[dict[Fraction, int], Fraction | None]:
    if all(value.denominator == 1 and value <= highest for value in distinct):
        return {value: int(value) for value in distinct}, Fraction(1)
    scales = math.lcm(*(value.denominator for value in distinct))
    unit = Fraction(math.gcd(*(int(value * scales) for value in distinct)), scales)
    if distinct[-1] / unit <= highest:
        return {value: int(value / unit) for value in distinct}, unit
    scaled: dict[Fraction, int] = {}
    below = 0
    for rank, value in enumerate(distinct):
        most = highest - (len(distinct) - 1 - rank)  # leave a value for each larger one
        below = min(max(below + 1, round(value * highest / distinct[-1])), most)
        scaled[value] = below
    return scaled, None
