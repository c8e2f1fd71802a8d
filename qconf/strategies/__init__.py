"""The named strategies: the jobs of one period and the base configuration in, a configuration out.

Every module of this package with a `propose` function is a strategy; its name on the command line is `NAME`.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from typing import Any

from qconf.config import SiteConfig
from qconf.errors import InputError
from qconf.tuning.month import Month

#: In the order in which tables show them; each is a module of this package.
NAMES = ("current", "fcfs-easy", "lxf-easy", "shared", "pp", "dp-nlp", "exact")
BASELINES = ("fcfs-easy", "lxf-easy", "shared")


@dataclass(frozen=True)
class Options:
    """What a strategy may be told.

    Attributes
    ----------
    seed : int
    workers : int
        Threads; the answer does not depend on it.
    samples : int
        Partition sets that dp-nlp simulates.
    slack : float
        Room of the proportional constraint, 0 gives pp.
    utilization : float
        Share of a queue's best utilization down to which its lower bound goes (tau_util).
    """

    seed: int = 0
    workers: int = 1
    samples: int = 100
    slack: float = 0.3
    utilization: float = 0.9


@dataclass(frozen=True)
class Proposal:
    """A configuration, and how the strategy came to it."""

    config: SiteConfig
    decisions: list[dict[str, Any]] = field(default_factory=list)


def propose(name: str, month: Month, options: Options | None = None) -> Proposal:
    """Run the strategy called `name`.

    Raises
    ------
    InputError
        There is no such strategy.
    NotApplicableError
        It has nothing to say about this history.
    """
    if name not in NAMES:
        raise InputError("no such strategy", field="strategy", value=name, fix=f"choose among {', '.join(NAMES)}")
    module = importlib.import_module(f"{__name__}.{name.replace('-', '_')}")
    answer: Proposal = module.propose(month, options or Options())
    return answer
