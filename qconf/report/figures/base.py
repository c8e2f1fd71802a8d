"""What figures have in common: a name, a caption, and looks of queues."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

import numpy as np

from qconf.evaluation.outcome import Outcome

HUES = 8  #: colours of queues that a page has
OTHER = "others"  #: the queues that share the last colour


@dataclass(frozen=True)
class Figure:
    """One figure of a page."""

    name: str  #: of its file in figures/ and of its place in the page
    svg: str
    caption: str
    data: str = ""  #: JSON for the page's script, safe within a script element

    @property
    def file(self) -> str:
        """The figure as a file of its own, in light and dark."""
        style = f"<style>{figure_style()}svg {{ background: var(--paper); }}</style>"
        begin, rest = self.svg.split(">", 1)
        return f"{begin.replace('<svg', XMLNS)}>\n{style}{rest}\n"


XMLNS = '<svg xmlns="http://www.w3.org/2000/svg"'


@lru_cache(maxsize=1)
def figure_style() -> str:
    """Return the style sheet of figures, which pages have too."""
    return (files("qconf.report") / "templates" / "figure.css").read_text(encoding="utf-8")


def hues(names: Sequence[str], weights: Iterable[float]) -> dict[str, str]:
    """Give each queue a look; where there are more queues than colours, the lightest share the last one."""
    heavy = sorted(range(len(names)), key=[-weight for weight in weights].__getitem__)
    own = set(heavy if len(names) <= HUES else heavy[: HUES - 1])
    looks = iter(range(HUES))
    return {name: f"q{next(looks) if i in own else HUES - 1}" for i, name in enumerate(names)}


def queue_hues(outcome: Outcome) -> dict[str, str]:
    """Give each queue of the base a look, by the core-hours of a period."""
    return hues(outcome.period.base.names, np.asarray(outcome.period.core_seconds).tolist())


def hue_legend(looks: dict[str, str]) -> list[tuple[str, str]]:
    """Return the entries of a legend of queues."""
    own = list(looks.values())
    entries = [(f"fill {look}", name) for name, look in looks.items() if own.count(look) == 1]
    return entries + ([(f"fill q{HUES - 1}", OTHER)] if len(entries) < len(looks) else [])
