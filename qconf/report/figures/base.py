"""What figures have in common: the looks of queues, and the rows of lines before and after."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from qconf.evaluation.outcome import Outcome
from qconf.report.charts import Spec, colour

HUES = 8  #: colours of queues that a page has
OTHER = "others"  #: the queues that share the last colour


def hues(names: Sequence[str], weights: Iterable[float]) -> dict[str, str]:
    """Give each queue a look; where there are more queues than colours, the lightest share the last one."""
    heavy = sorted(range(len(names)), key=[-weight for weight in weights].__getitem__)
    own = set(heavy if len(names) <= HUES else heavy[: HUES - 1])
    looks = iter(range(HUES))
    return {name: f"q{next(looks) if i in own else HUES - 1}" for i, name in enumerate(names)}


def queue_hues(outcome: Outcome) -> dict[str, str]:
    """Give each queue of the base a look, by the core-hours of a period."""
    return hues(outcome.period.base.names, np.asarray(outcome.period.core_seconds).tolist())


def shown_as(looks: Mapping[str, str]) -> dict[str, str]:
    """Name each queue as the legend does: those that share a colour are others."""
    own = list(looks.values())
    return {name: name if own.count(look) == 1 else OTHER for name, look in looks.items()}


def queue_colours(looks: Mapping[str, str], shown: Iterable[str] | None = None) -> Spec:
    """Encode the field `queue`, named by `shown_as`, by the looks of those that are shown, or of all."""
    names = {called: looks[name] for name, called in shown_as(looks).items()}
    wanted = set(names if shown is None else shown)
    return colour("queue", {name: look for name, look in names.items() if name in wanted})
