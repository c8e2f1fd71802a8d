"""A recommendation with real numbers: the Cray month, every strategy simulated, made in a second."""

from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from parsim import metrics, simulate
from parsim.model.system import System
from qconf.config import load
from qconf.evaluation.impact import impact
from qconf.evaluation.outcome import Outcome
from qconf.evaluation.period import Period
from qconf.history import clean, read
from qconf.recommend import Curve, Evaluated, Recommendation, Row
from qconf.strategies.plain import undistinguished
from tests.qconf.report import small

ROOT = Path(__file__).parents[3]
SAMPLE = ROOT / "data" / "cray-xc40-2016-02.csv.gz"
SITE = ROOT / "configs" / "cray-xc40.yaml"

INELIGIBLE = "queue large has 8 jobs by advance reservation, which no partition holds"


@lru_cache(maxsize=1)
def history():
    return clean(read([SAMPLE]), load(SITE))


@lru_cache(maxsize=2)
def recommendation(verdict="CHANGE"):
    past, base = history(), load(SITE)
    month = Period(past.workload(base), base)
    first, last = past.span
    middle = first + 2 * (last - first) // 3
    late = month.between(middle, last + 1)
    sizes = [1200, 9600, 5400, 19032, 0]
    configs = {
        "current": base,
        "fcfs-easy": undistinguished(base, "fcfs"),
        "lxf-easy": undistinguished(base, "lxf"),
        "shared": base,
        "pp": base.with_partitions(sizes),
        "dp-nlp": base.with_partitions([1200, 8400, 5400, 20232, 0]),
        "auto": _auto(base),
    }
    rows, reference = [], None
    for name, config in configs.items():
        test, in_sample = (
            metrics.summary(m.routed(config), m.simulate(config), config.system()) for m in (late, month)
        )
        reference = reference or test
        gain = 1 - test["mean_wait"] / reference["mean_wait"]
        rows.append(
            Row(
                name=name,
                config=config,
                test=test,
                in_sample=in_sample,
                gain=None if name == "current" else gain,
                bootstrap=small.bootstrap(gain, gain - 0.07, gain + 0.06) if gain > 0 else None,
                ineligible=INELIGIBLE if config.mode == "partitioned" else "",
                decisions=DECISIONS.get(name, []),
                seconds=0.5,
            )
        )
    rows.append(Row("dqr", None, None, None, None, ineligible="no queue can be split: every one has a single size"))
    change = verdict == "CHANGE"
    winner = "auto" if change else "current"
    present, changed = (Evaluated(configs[n], Outcome(late, late.simulate(configs[n]))) for n in ("current", "auto"))
    moments = {"history": (month, first, last), "training": (month.between(first, middle), first, middle - 1)}
    moments["test"] = (late, middle, last)
    return Recommendation(
        verdict=verdict,
        lead=LEADS[verdict],
        reason=REASONS[verdict],
        winner=winner,
        config=configs[winner],
        base=base,
        objective="mean-wait",
        rows=rows,
        curves=list(_curves(month)),
        spans={name: (len(m), past.epoch + low, past.epoch + high) for name, (m, low, high) in moments.items()},
        settings={
            "seed": 0,
            "workers": 2,
            "objective": "mean-wait",
            "guards": {"p95_wait": 1.3, "max_wait": 1.5},
            "strategies": ["current", "pp", "dp-nlp", "auto"],
        },
        impact=impact(present.outcome, changed.outcome) if change else None,
        present=present,
        changed=changed if change else None,
    )


LEADS = {
    "CHANGE": "auto is expected to lower mean wait by 20 % (90 % interval 13 to 26 %)",
    "KEEP": "auto would lower mean wait by 20 % (90 % interval -3 to 26 %), but that may be chance",
}
REASONS = {
    "CHANGE": "On the last ten days, which the search had not seen, auto would have made the mean wait shorter than "
    "the current configuration did; the 90 % interval of the gain lies above zero and every guard holds.",
    "KEEP": "Nothing beats the current configuration on the last ten days beyond doubt: the 90 % interval of the best "
    "gain spans zero, and a reconfiguration drains the machine.",
}
SIMULATED = [8000 + 37 * i % 900 for i in range(40)]
DECISIONS = {
    "dp-nlp": [
        {"step": "bounds", "low": [11, 43, 43, 342], "slack": 0.3, "notes": []},
        *(
            {"step": "surrogate", "epoch": e, "weight": e / 3, "degree": 2, "r2": 1 - e / 10, "rmse": 812.4, "note": ""}
            | {"simulated": SIMULATED, "expected": [each + (-1) ** i * 90 * e for i, each in enumerate(SIMULATED)]}
            for e in (1, 2, 3)
        ),
        {"step": "decide", "tried": 22, "nodes": [50, 350, 225, 843], "weighted_wait": 8123.4}
        | {"pp_weighted_wait": 12000.0, "current_weighted_wait": 9500.0},
        {"step": "split", "queue": "small", "by": "jobs", "kept": False, "weighted_wait": 8800.0, "why": "no less"},
        {"step": "merge", "queues": "small + small72", "at": "walltime 0 to 72h", "into": ["small 9600"], "kept": True}
        | {"before": 8123.4, "weighted_wait": 7000.0, "why": "the best, and less than before"},
    ],
    "auto": [
        {"step": "tried", "order": "fcfs", "mean_wait": 9120.5, "kept": False},
        {"step": "tried", "order": "(eligible_time + walltime) / walltime ** 1.3", "mean_wait": 5010.0, "kept": True},
    ],
}


def _auto(base):
    queues = tuple(
        queue.model_copy(update={"priority": priority, "max_run": None, "starvation": None})
        for queue, priority in zip(base.queues, (100.0, 90.0, 60.0, 50.0, 50.0), strict=True)
    )
    order = "queue_priority * (eligible_time + walltime) / max(walltime, 1) ** 0.5 * ncpus ** -0.3"
    return base.with_queues(queues, order=order)


def _curves(month):
    w, cores = month.workload, month.base.machine.cores
    for i, queue in enumerate(month.base.queues):
        mine = w.take(w.queue == i)
        if queue.reservation or not len(mine):
            continue
        widest = int(mine.cores.max())
        sizes = sorted({24 * round(size / 24) for size in np.geomspace(widest, cores, 25)})
        waits, uses = [], []
        for size in sizes:
            system = System.single(size)
            alone = replace(mine, queue=np.zeros(len(mine), dtype=np.int64))
            schedule = simulate(alone, system)
            waits.append(float(schedule.wait.mean()))
            uses.append(metrics.utilization(schedule, size))
        yield Curve(queue.name, sizes, waits, uses)
