"""A recommendation made by hand, its numbers fixed, so that texts can be compared with reviewed ones."""

import math
from dataclasses import replace

from parsim.metrics import METRICS, Summary
from qconf.config import MachineConfig, PoolConfig, QueueConfig, SiteConfig
from qconf.evaluation.bootstrap import BootstrapResult
from qconf.evaluation.guard_rails import GuardValues
from qconf.evaluation.impact import GROWTH, Group, Impact, impact
from qconf.recommend import Curve, Recommendation, Row
from qconf.recommend.recommendation import Rung

FEBRUARY = 1454284800
DAY = 86400


def site(names=("short", "long"), machine="toy", **changes):
    first, second = names
    return SiteConfig(
        machine=MachineConfig(name=machine, cores=128),
        queues=(
            QueueConfig(name=first, cores=(1, 16), walltime=(0, 7200), priority=10, max_run=40, max_user_run=1),
            QueueConfig(name=second, walltime=(7200, 86400), priority=5, starvation=86400),
        ),
    ).replace(**changes)


def hybrid(base):
    queues = tuple(q.model_copy(update={"partition": size}) for q, size in zip(base.queues, (24, 72), strict=True))
    return base.replace(queues=queues, mode="hybrid", pool=PoolConfig(cores=32, threshold=2.5))


def summary(names, wait):
    def row(factor, jobs):
        values = dict.fromkeys(METRICS, math.nan)
        return values | {
            "jobs": jobs,
            "mean_wait": wait * factor,
            "median_wait": 0.0,
            "p95_wait": 4 * wait * factor,
            "max_wait": 9 * wait * factor,
            "mean_bounded_slowdown": 1 + wait * factor / 600,
            "utilization": 0.7 * jobs / 900,
            "utilization_window": 0.8 * jobs / 900,
        }

    return Summary(row(1.0, 900.0), {names[0]: row(0.5, 800.0), names[1]: row(4.0, 100.0)})


def bootstrap(expected, low, high):
    guarded = GuardValues({}, 0.0, 0.0)
    return BootstrapResult(expected, low, high, 1.0 if low > 0 else 0.7, -0.2, 0.1, guarded, guarded)


def _row(name, config, waits, gain, **more):
    return Row(name, config, *(summary(config.names, wait) for wait in waits), gain, **more)


def recommendation(verdict="CHANGE", names=("short", "long"), machine="toy", text="plain"):
    base = site(names, machine)
    ineligible = (
        f"{text}: 95 % wait of queue {names[1]} grows from 24.0 to 400.0 h; longest wait grows from 40.0 to 900.0 h"
    )
    carving = [{"step": "carve", "pool": 32, "kept": True, "wait": math.inf}, {"step": "tau", "value": 2.5}]
    rows = [
        _row("current", base, (5400, 5000), None),
        _row("lxf-easy", base.replace(order="lxf"), (5000, 4000), 0.074, bootstrap=bootstrap(0.08, -0.02, 0.17),
             fallback=f"{text}: utilization falls from 80.0 to 70.0 %"),
        _row("pp", base.with_partitions((32, 96)), (90000, 80000), -15.7, ineligible=ineligible, rung=6,
             decisions=[{"step": text, "units": [32, 96], "note": "", "notes": [f"{text} and poor"]}]),
        _row("hybrid", hybrid(base), (3600, 1800), 1 / 3, bootstrap=bootstrap(0.31, 0.21, 0.41),
             decisions=carving, seconds=1.5, rung=6),
        Row("exact", None, None, None, None, ineligible="a queue has no job"),
    ]  # fmt: skip
    change = verdict == "CHANGE"
    groups = (
        Group("queue", name, 450, 1.0, 0.5, *({key: row.test.queues[name][key] for key in GROWTH} for row in both))
        for both in [(rows[0], rows[3])]
        for name in names
    )
    return Recommendation(
        verdict=verdict,
        lead=f"{text}: hybrid is expected to lower mean wait by 31 %",
        reason=f"A {text} reason.",
        winner="hybrid" if change else "current",
        config=rows[3].config if change else base,
        base=base,
        objective="mean-wait",
        rows=rows,
        curves=[
            Curve(names[0], [16, 32, 64, 128], [7200.0, 600.0, 0.0, 0.0], [0.8, 0.4, 0.2, 0.1]),
            Curve(names[1], [32, 64, 128], [900000.0, 80000.0, math.nan], [0.9, 0.8, math.nan]),
        ],
        spans={
            "history": (2700, FEBRUARY, FEBRUARY + 28 * DAY),
            "training": (1800, FEBRUARY, FEBRUARY + 18 * DAY),
            "test": (900, FEBRUARY + 19 * DAY, FEBRUARY + 28 * DAY),
        },
        settings={"seed": 0, "workers": 2, "warmup_seconds": 3 * DAY, "guards": {"factor": 1.5}, "note": text},
        queues=Rung("partitions and pool", rows[3]),
        impact=Impact(tuple(groups)) if change else None,
    )


def evaluated(site, outcomes, **more):
    """Return the example with two outcomes of a site in the place of its own: before, and by the winner."""
    found = recommendation()
    rows = [
        replace(each, test=which.summary, config=site)
        for each, which in zip((found.rows[0], found.rows[3]), outcomes, strict=True)
    ]
    return replace(found, rows=rows, base=site, config=site, curves=[], impact=impact(*outcomes), **more)
