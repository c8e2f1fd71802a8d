"""Presets of strategies' settings: ``paper`` follows the paper to the letter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from qconf.config import SiteConfig
from qconf.errors import InputError


@dataclass(frozen=True)
class Preset:
    """Settings of the strategies by name; `whole_nodes` False: single processors are allocated, not whole nodes."""

    settings: Mapping[str, Any]
    whole_nodes: bool = True

    def site(self, base: SiteConfig) -> SiteConfig:
        """Return the site for the preset; to be called before the jobs are cleaned."""
        if self.whole_nodes or not base.machine.whole_nodes:
            return base
        return base.replace(machine=base.machine.model_copy(update={"whole_nodes": False}))


#: Kondameedi and Vadhiyar, CCGrid 2017: the settings of the text, and the nearest reading if it leaves one open, each
#: with its section or table; docs/research/paper.md has the effect of each alone.
PAPER = Preset(
    {
        # Section II.A.
        "samples": 100,
        "simulations": 100,  # a single pass
        "surrogate": "plain",
        "degree": 3,  # the text: at most
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
        "partition_limits": "dropped",  # open: the paper's limits are those of the shared machine
        "partition_starvation": "24h",
        # Section II.B.
        "split_on": "walltime",  # a queue has a range of walltimes (section I)
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
    """Return the preset called `name`, an empty one for None; raise InputError if there is no such preset."""
    if name is None:
        return Preset({})
    if name not in PRESETS:
        raise InputError("no such preset", field="preset", value=name, fix=f"choose among {', '.join(PRESETS)}")
    return PRESETS[name]
