"""What a site's own order lacks: the same formula times powers of walltime and cores.

A family of a few orders around the present one, whatever that is, as `qconf.tuning.formulas` has one around a general
order. An order that someone thought of, or that was found earlier, often only prefers a kind of jobs too much.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import product

LENGTHS = (-0.5, 0.0, 0.5)  # by which powers of the walltime shorter jobs are preferred more than they are
WIDTHS = (-1.0, -0.5, 0.0, 0.5, 1.0)  # and narrower ones
DISTANCE = 0.05  # what a standard deviation away from the present order costs, squared, in log score
_CORRECTED = re.compile(
    r"\((?P<order>.*)\)( \* max\(walltime, 1\) \*\* (?P<length>-?[\d.]+))?( \* ncpus \*\* (?P<width>-?[\d.]+))?"
)


@dataclass(frozen=True, slots=True)
class Correction:
    """One member of the family; by default none."""

    length: float = 0.0
    width: float = 0.0

    @property
    def point(self) -> tuple[float, ...]:
        """The parameters."""
        return self.length, self.width

    def formula(self, order: str) -> str:
        """Correct a formula, a corrected one once: powers add up."""
        if self == Correction():
            return order
        length, width = self.point
        found = _CORRECTED.fullmatch(order)
        if found is not None and _whole(found["order"]):
            order = found["order"]
            length -= float(found["length"] or 0)
            width -= float(found["width"] or 0)
        factors = Correction(length, width).factors
        return f"({order}) * {factors}" if factors else order

    @property
    def factors(self) -> str:
        """What a formula is multiplied by; empty if by nothing."""
        powers = {"max(walltime, 1)": self.length, "ncpus": self.width}
        return " * ".join(f"{name} ** {-power:.9g}" for name, power in powers.items() if round(power, 9))


def family() -> list[Correction]:
    """Return all members."""
    return [Correction(*each) for each in product(LENGTHS, WIDTHS)]


def meaning(before: str, after: str) -> str:
    """Say in words how a formula was corrected; empty where it was not."""
    found = next((each for each in family() if before != after == each.formula(before)), None)
    return "" if found is None else f"the present one times {found.factors}"


def _whole(text: str) -> bool:
    """Tell whether every bracket is closed by one that comes after it."""
    depth = 0
    for sign in text:
        depth += (sign == "(") - (sign == ")")
        if depth < 0:
            return False
    return depth == 0
