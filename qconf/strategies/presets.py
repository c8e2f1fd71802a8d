"""Settings that belong together: ``paper`` is the paper to the letter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from qconf.config import SiteConfig
from qconf.errors import InputError


@dataclass(frozen=True)
class Preset:
    """Settings of the strategies by name, and whether processors are given one by one, not in whole nodes."""

    settings: Mapping[str, Any]
    whole_nodes: bool = True

    def site(self, base: SiteConfig) -> SiteConfig:
        """Return the site as the preset needs it: before its jobs are cleaned."""
        if self.whole_nodes or not base.machine.whole_nodes:
            return base
        return base.replace(machine=base.machine.model_copy(update={"whole_nodes": False}))


#: Kondameedi and Vadhiyar, CCGrid 2017: what the text says, and of what it leaves open the nearest reading. The section
#: or table stands beside each; docs/research/paper.md has the effect of every one alone.
PAPER = Preset(
    {
        # Section II.A.
        "samples": 100,
        "simulations": 100,  # once
        "surrogate": "plain",
        "degree": 3,  # at most, it says
        "slack": 0.0,
        "proportions": "one-sided",
        "decide_by": "program",
        "weights": (1 / 3, 2 / 3, 1.0),  # Table III
        "epoch_days": 10,  # Table III
        "tau_util": 0.9,  # Table III
        "excess": "toward-widest",  # open
        "rounding": "remainders",  # open
        # Section IV.A.
        "least_size": "queue",
        "partition_limits": "dropped",  # open: its limits are those of the shared machine
        "partition_starvation": "24h",
        # Section II.B.
        "split_on": "walltime",  # what a queue's range is of (section I)
        "half_walltime": "second",
        "split_parts": "first",  # Figure 3
        "visit_order": "size",
        "merge_cores": "common",
        "measured_on": "period",
        # Section III, Table III.
        "carve": "partitions",
        "chunk": 5,
        "degradation": 0.3,
        "pool_entry": "either",
        "pool_placement": "pool",
    },
    whole_nodes=False,
)
PRESETS: Mapping[str, Preset] = MappingProxyType({"paper": PAPER})


def preset(name: str | None) -> Preset:
    """Return the preset called `name`, an empty one for None; raise InputError where there is none of this name."""
    if name is None:
        return Preset({})
    if name not in PRESETS:
        raise InputError("no such preset", field="preset", value=name, fix=f"choose among {', '.join(PRESETS)}")
    return PRESETS[name]
