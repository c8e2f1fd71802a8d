"""The pieces to run: the paper to the letter for seeds and loads, and one reading switched at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from qconf.strategies.presets import PAPER
from studies.paper.pieces import GENERATED, Generated, Piece
from studies.paper.plan import CRAY
from studies.paper.plan import PAPER as POOL

MONTHS = "cray-xc40-fall"
SEEDS = (0, 1, 2)
LOADS = (0.8, 0.9, 1.0, 1.05)
COMPARED = ("pp", "dp-nlp", "dqr", "hybrid", "mqb")
DIVIDED = ("dp-nlp", "dqr", "hybrid")
QUICK_MONTHS = 4
READING_MONTHS = 5  # four of them evaluated


def months(name: str, seed: int = 0, load: float | None = None, *, quick: bool = False, **changes: Any) -> Piece:  # noqa: ANN401 - fields of a piece
    """Return the piece of the paper to the letter on generated months, reconfigured from month to month."""
    piece = Piece(
        name,
        GENERATED,
        CRAY,
        QUICK_MONTHS if quick else None,
        COMPARED,
        PAPER.settings,
        made_by=Generated(MONTHS, seed, load),
        letter=True,
        chain=True,
    )
    return replace(piece, **changes)


def claims(*, quick: bool) -> dict[str, Piece]:
    """Return a piece per seed and load, and one of the other reading of a merge, by its name."""
    found = {
        f"seed {seed}": months(f"seed-{seed}", seed, quick=quick, what=f"seed {seed}")
        for seed in (SEEDS[:1] if quick else SEEDS)
    }
    adjacent = {**PAPER.settings, "merge_cores": "adjacent"}
    found["seed 0, adjacent"] = months(
        "seed-0-adjacent", quick=quick, what="seed 0, adjacent merged", settings=adjacent
    )
    return found | {
        f"load {load:g}": months(f"load-{load:g}", 0, load, quick=quick, what=f"load {load:g}")
        for load in (LOADS[1:2] if quick else LOADS)
    }


@dataclass(frozen=True)
class Reading:
    """A reading of the paper's text that is switched alone: name, section, and changed settings."""

    what: str
    where: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    changes: Mapping[str, Any] = field(default_factory=dict)


#: Readings that the text fixes, switched to this project's default.
FIXED = (
    Reading("the best of what is simulated, not the program's optimum", "II.A", {"decide_by": "simulation"}),
    Reading(
        "polynomials with a ridge penalty, degree by cross-validation", "II.A", {"surrogate": "ridge", "degree": None}
    ),
    Reading("proportions of both of a pair, slack 0.3", "II.A, (6)", {"proportions": "both", "slack": 0.3}),
    Reading("no lower bounds but the least sizes", "II.A, Figure 2", {"tau_util": 1.0, "excess": "dropped"}),
    Reading("one epoch", "II.A, Table III", {"weights": (1.0,)}),
    Reading("half the limit goes to the first part", "II.B.1", {"half_walltime": "first"}),
    Reading("splits, merges and chunks on weighted epochs", "II.A, II.B, III", {"measured_on": "epochs"}),
    Reading("whole nodes, chunks of a node", "III, Table III", {"chunk": None}, {"letter": False}),
    Reading("degPercent 10 %", "Table III", {"degradation": 0.1}),
    Reading("degPercent 100 %", "Table III", {"degradation": 1.0}),
    Reading("a job that may enter the pool leaves its partition's list", "III", {"pool_entry": "move"}),
    Reading("every month from the site's own configuration", "I, II", {}, {"chain": False}),
)
#: Readings that the text leaves open, switched to the other one.
OPEN = (
    Reading("neighbouring ranges of cores are merged", "II.B.2", {"merge_cores": "adjacent"}),
    Reading("partitions at least the widest job submitted", "II.A against IV.A", {"least_size": "job"}),
    Reading("running limits kept on partitions", "IV.A", {"partition_limits": "kept"}),
    Reading("starvation as configured", "III, IV.A", {"partition_starvation": "configured"}),
    Reading("lower bounds beyond the machine divide it in proportion", "II.A", {"excess": "proportional"}),
    Reading("lower bounds beyond the machine are dropped", "II.A", {"excess": "dropped"}),
    Reading("sizes rounded down, the rest to the largest", "II.A", {"rounding": "down"}),
    Reading("polynomials of degree 2", "II.A", {"degree": 2}),
    Reading("polynomials of degree 1", "II.A", {"degree": 1}),
    Reading("split by what jobs ran", "II.B.1", {"split_on": "runtime"}, {"chain": False}),
    Reading("both parts of a split are split on", "II.B.1", {"split_parts": "both"}),
    Reading("queues visited at random", "II.B.1", {"visit_order": "random"}),
    Reading("chunks carved with the pool in use", "III", {"carve": "live"}),
    Reading("a job may have cores of partition and pool", "III", {"pool_placement": "combined"}),
)


def readings(*, quick: bool) -> list[tuple[Reading, list[Piece]]]:
    """Return the pieces of each reading, one per seed; first those of the letter, last those of the default."""
    letter = Reading("to the letter", "")
    ours = Reading("as `qconf` does by default, but for the pool", "", dict.fromkeys(PAPER.settings), {"letter": False})
    found: list[tuple[Reading, list[Piece]]] = []
    for i, each in enumerate((letter, *FIXED[: 2 if quick else None], *OPEN[: 2 if quick else None], ours)):
        settings = dict(POOL) if each is ours else {**PAPER.settings, **each.settings}
        pieces = [
            months(
                f"reading-{i}-{seed}",
                seed,
                strategies=DIVIDED,
                settings=settings,
                what=f"{each.what}, seed {seed}",
                periods=QUICK_MONTHS if quick else READING_MONTHS,
                **each.changes,
            )
            for seed in (SEEDS[:1] if quick else SEEDS)
        ]
        found.append((each, pieces))
    return found
