"""The pieces of the study: its walk-forwards, and the settings whose effect is shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from qconf.strategies import settings as all_settings
from studies.paper.pieces import GENERATED, Piece

CRAY = "cray-xc40.yaml"
TRACES = (
    ("KTH SP2", "KTH-SP2-1996-2.1-cln.swf.gz", "kth-sp2.yaml"),
    ("SDSC SP2", "SDSC-SP2-1998-4.2-cln.swf.gz", "sdsc-sp2.yaml"),
    ("HPC2N", "HPC2N-2002-2.1-cln.swf.gz", "hpc2n.yaml"),
)
QUICK_PERIODS = 4  # of generated months and of each log
QUICK_SENSITIVITY = 3
#: Beginnings of the 30-day periods, days after a log's first submit; and the strategies compared on them.
BEGINNINGS = (0, 5, 10, 15, 20, 25)
CHOSEN = ("fcfs-easy", "lxf-easy", "auto")
#: The expansion factor, favouring short jobs: the same order for every log, untuned.
FIXED = "(eligible_time + walltime) / max(walltime, 1) ** 1.3"
#: The paper's pool. The default of `qconf` searches the pool, and uses only what PBS can do.
PAPER: dict[str, Any] = {"carve": "partitions", "pool_entry": "either", "pool_placement": "pool"}
#: A slack that leaves many divisions, so that the surrogates matter.
WIDE = 0.8


def generated(settings: Mapping[str, Any], *, quick: bool) -> Piece:
    """Return the piece of all strategies on the generated months."""
    periods = QUICK_PERIODS if quick else None
    return Piece("generated", GENERATED, CRAY, periods, settings=settings, what="Generated months")


def logs(settings: Mapping[str, Any], *, quick: bool) -> list[Piece]:
    """Return the pieces of all strategies on the public logs."""
    periods = QUICK_PERIODS if quick else None
    return [
        Piece(config.removesuffix(".yaml"), name, config, periods, settings=settings, what=title)
        for title, name, config in TRACES
    ]


def cuts(settings: Mapping[str, Any], *, quick: bool) -> list[Piece]:
    """Return the pieces of `auto` and the fixed order on the public logs, for each way to cut periods."""
    ways = [("month", 0), *(("30d", begin) for begin in BEGINNINGS[: 1 if quick else None])]
    periods = QUICK_PERIODS if quick else None
    found = []
    for title, source, config in TRACES:
        for period, begin in ways:
            name = f"{config.removesuffix('.yaml')}-{period}-{begin}"
            piece = Piece(name, source, config, periods, CHOSEN, settings, title, period, begin)
            found += [piece, replace(piece, name=f"{name}-fixed", strategies=("current",), formula=FIXED)]
    return found


def sensitivity(settings: Mapping[str, Any], *, quick: bool) -> list[Piece]:
    """Return the pieces of dp-nlp, dqr and hybrid on generated months, one setting changed at a time."""
    changes: list[tuple[str, dict[str, object]]] = [("as it is", {})]
    changes += [(f"chunkSize {chunk} cores", {"chunk": chunk}) for chunk in (240, 1200)]
    changes += [(f"degPercent {100 * part:.0f} %", {"degradation": part}) for part in (0.1, 1.0)]
    changes += [(f"tau by {name}", {"reference": name}) for name in ("idqueue", "large")]
    changes += [("tau_util 0.8", {"tau_util": 0.8})]
    changes += [("split on what jobs ran, not on walltime", {"split_on": "runtime"})]
    changes += [("only ranges of cores with a size in common are merged", {"merge_cores": "common"})]
    changes += [("dqr visits queues at random", {"visit_order": "random"})]
    changes += [
        ("carving evaluated with the pool in use", {"carve": "live"}),
        ("a job enters the pool for good, as PBS can", {"pool_entry": "move"}),
        ("carving with the pool in use, entered for good", {"carve": "live", "pool_entry": "move"}),
        ("a job may have cores of partition and pool", {"pool_placement": "combined"}),
        (
            "the default of `qconf`: pool and threshold searched, entered for good, cores of both",
            {"carve": "search", "pool_entry": "move", "pool_placement": "combined"},
        ),
    ]
    changes += [("slack 0", {"slack": 0.0})]
    usual = {"slack": all_settings()["slack"]}
    changes += [(f"{samples} samples", {**usual, "samples": samples}) for samples in (30, 300)]
    changes += [(f"degree {degree}", {**usual, "degree": degree}) for degree in (1, 2, 3)]
    changes += [("weights 1, 1, 1", {**usual, "weights": (1.0, 1.0, 1.0)}), ("one epoch", {**usual, "weights": (1.0,)})]
    changes += [(f"slack {WIDE:g}", {"slack": WIDE})]
    periods, names = QUICK_SENSITIVITY if quick else None, ("dp-nlp", "dqr", "hybrid")
    return [
        Piece(f"sensitivity-{i}", GENERATED, CRAY, periods, names, {**settings, **change}, what)
        for i, (what, change) in enumerate(changes)
    ]
