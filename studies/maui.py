"""The experiment of the paper that brought Maui to PBS: job mixes by its rules, and how long each scheduler takes.

``python -m studies.maui`` prints the table beside the published figures. The job mixes are random: the paper's own one
is lost with its web page. ``--agents 5`` prints what its authors planned next: node-hours in a fixed time, where users
answer to what they see, of so many seeds.

References
----------
Bode, Halstead, Kendall, Lei and Jackson, "The Portable Batch Scheduler and the Maui Scheduler on Linux Clusters",
ALS 2000, sections 5 and 6.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from parsim import Schedule, System, Workload, simulate
from parsim.model.workload import Column
from qconf.synth.agents import MONDAY, USUAL, live

NODES = 64
MINUTE, HOUR = 60, 3600
TRIED = 480  #: random jobs tried for a mix; those of no class, or of a full one, are rejected
WITHIN = 180 * MINUTE  #: all jobs are submitted so soon after the beginning
#: Most jobs of each class, as in the published mix; its intended shares are 30, 40, 20, 5 and 5 %.
MOST = {"large": 22, "medium": 31, "small": 15, "debug": 4, "failed": 4}
WORK = 53.6 * NODES * HOUR  #: node-seconds of the published mix: its theoretical minimum is 53.6 h
SEQUENTIAL = 90.2 * HOUR  #: seconds of the published mix, one job after the other
WEEK = 7 * 86400
WEEKS = 4  #: simulated weeks of agents
LIST = 10**9  #: seconds, beyond all waits: jobs may always pass the first of the list

#: Published total run times, hours.
PUBLISHED = {
    "PBS FIFO": 71.1,
    "Maui": 66.75,
    "Maui without backfill": 66.71,
    "in order of submission": 69.63,
    "in reverse order": 70.46,
    "in the order PBS FIFO ran": 69.16,
    "in the order Maui ran": 65.99,
    "sequential": 90.2,
    "minimum": 53.6,
}
#: Maui's sum of components with weights: a minute of queue time counts 1, a node of the resource component 10.
MAUI = "eligible_time / 60 + 10 * ncpus"


@dataclass(frozen=True)
class Mix:
    """A job mix, with the class of each job."""

    workload: Workload
    classes: tuple[str, ...]


def classify(nodes: int, share: float) -> str | None:
    """Return the class of a job of `nodes` that runs for `share` of its request; None: of no class.

    The paper prints 15 to 30 % of the nodes for small, which medium (15 to 50 %) includes; here small is up to 15 %.
    Failed jobs have any width. Debug jobs, below 10 %, use more than 40 %; from 70 % on they are small as well, and
    count as small while that class has room.
    """
    part = nodes / NODES
    if share < 0.2:
        return "failed"
    if share >= 0.7:
        return "large" if part > 0.5 else "medium" if part > 0.15 else "small"
    return "debug" if share > 0.4 and part < 0.1 else None


def mix(rng: np.random.Generator, efficiency: float | None = None) -> Mix:
    """Return a random job mix by the paper's rules; with `efficiency` all jobs use this share of their requests."""
    left, classes = dict(MOST), list[str]()
    rows: list[tuple[int, float, float]] = []
    tried = 0
    while any(left.values()) and (tried < TRIED or len(rows) < sum(MOST.values())):
        tried += 1
        nodes, request, share = int(rng.integers(1, NODES + 1)), rng.random(), rng.random()
        name = classify(nodes, share)
        if name == "small" and not left["small"] and nodes < 0.1 * NODES:
            name = "debug"
        if name is None or not left[name]:
            continue
        left[name] -= 1
        rows.append((nodes, request, share))
        classes.append(name)
    width, request, share = np.array(rows).T
    request = request * longer(width, request * share)
    runtime = np.maximum(1, np.rint(request * share)).astype(np.int64)
    walltime = np.maximum(runtime, np.rint(request).astype(np.int64))
    if efficiency is not None:
        walltime = np.maximum(runtime, np.rint(runtime / efficiency).astype(np.int64))
    submit = np.rint(rng.uniform(0, WITHIN, len(rows))).astype(np.int64)
    order = np.argsort(submit, kind="stable")
    workload = Workload(submit, width.astype(np.int64), runtime, walltime).take(order)
    return Mix(workload, tuple(classes[i] for i in order))


def longer(nodes: NDArray[np.float64], worked: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a factor for the times of each job that gives the mix the published sums.

    With independent times and widths the jobs would take half as long again as the published 90.2 h one after the
    other: wide jobs of that mix ran longer. So times grow with a power of the nodes, chosen to give both sums.
    """
    low, high = -2.0, 6.0
    for _ in range(80):
        power = (low + high) / 2
        grown = worked * nodes**power
        mean = (nodes * grown).sum() / grown.sum()
        low, high = (power, high) if mean < WORK / SEQUENTIAL else (low, power)
    return np.asarray(nodes**power * SEQUENTIAL / grown.sum())


def hours(schedule: Schedule) -> float:
    """Return the total run time, from the first submission to the last end."""
    return float(schedule.end.max() - schedule.submit.min()) / HOUR


def filled(workload: Workload, order: Column) -> float:
    """Return the hours for the jobs if all are submitted at once and start in this order, each as soon as it fits."""
    jobs = workload.take(order)
    at_once = replace(jobs, submit=np.zeros(len(jobs), dtype=np.int64))
    return hours(simulate(at_once, System(NODES, backfill=False)))


SCHEDULERS: dict[str, System] = {
    "PBS FIFO": System(NODES, reserve="nothing", reserve_after=24 * HOUR),
    "PBS FIFO, a week": System(NODES, reserve="nothing", reserve_after=WEEK),
    "list scheduling": System(NODES, reserve="nothing", reserve_after=LIST),
    "strict FIFO": System(NODES, backfill=False),
    "Maui": System(NODES, order=MAUI),
    "Maui without backfill": System(NODES, order=MAUI, backfill=False),
}


def one(workload: Workload) -> dict[str, float]:
    """Return the hours of each scheduler for a mix, of each order of starts, and the bounds."""
    found = {name: simulate(workload, system) for name, system in SCHEDULERS.items()}
    times = {name: hours(schedule) for name, schedule in found.items()}
    n = np.arange(len(workload))
    orders: dict[str, NDArray[np.int64]] = {
        "in order of submission": n,
        "in reverse order": n[::-1],
        "in the order PBS FIFO ran": np.argsort(found["PBS FIFO"].start, kind="stable"),
        "in the order Maui ran": np.argsort(found["Maui"].start, kind="stable"),
    }
    times |= {name: filled(workload, order) for name, order in orders.items()}
    times["sequential"] = float(workload.runtime.sum()) / HOUR
    times["minimum"] = float((workload.cores * workload.runtime).sum()) / NODES / HOUR
    return times


def total_times(mixes: int) -> dict[str, NDArray[np.float64]]:
    """Return the hours of each scheduler for random mixes, shape (mixes,) each."""
    rows = [one(mix(np.random.default_rng([0, i])).workload) for i in range(mixes)]
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def waits(mixes: int, system: System) -> NDArray[np.float64]:
    """Return the mean wait in hours by eighths of the machine, over random mixes; shape (8,)."""
    sums, counts = np.zeros(8), np.zeros(8)
    for i in range(mixes):
        workload = mix(np.random.default_rng([0, i])).workload
        eighth = (workload.cores - 1) * 8 // NODES
        wait = simulate(workload, system).wait
        sums += np.bincount(eighth, wait, 8)
        counts += np.bincount(eighth, minlength=8)
    return np.asarray(sums / np.maximum(counts, 1) / HOUR)


def by_efficiency(mixes: int) -> Iterator[tuple[str, float, float]]:
    """Yield (label, hours with backfill, hours without), means over mixes whose jobs use a share of requests."""
    for share in (None, 1.0, 0.9, 0.7, 0.5, 0.3):
        jobs = [mix(np.random.default_rng([0, i]), share).workload for i in range(mixes)]
        pair = [np.mean([hours(simulate(each, SCHEDULERS[name])) for each in jobs]) for name in WITH_AND_WITHOUT]
        yield "as mixed" if share is None else f"{100 * share:.0f} %", float(pair[0]), float(pair[1])


@dataclass(frozen=True)
class Got:
    """The results of agents on a scheduler."""

    share: float  #: used node-hours over available ones
    jobs: dict[str, int]  #: started jobs by kind of user
    hours: dict[str, float]  #: node-hours by kind of user
    wait: dict[str, float]  #: mean wait by kind of user, hours


def by_agents(system: System, seed: int) -> Got:
    """Simulate agents on a scheduler for four weeks."""
    log = live(system, WEEKS * 7, seed).log
    log = log[log["start"] >= 0]
    begin, end = MONDAY, MONDAY + WEEKS * WEEK
    busy = log["cores"] * (np.minimum(log["start"] + log["runtime"], end) - log["start"])
    wait = log["start"] - log["submit"]
    kind = log["user"].str.rstrip("0123456789")
    return Got(
        float(busy.sum()) / NODES / (end - begin),
        {name: int((kind == name).sum()) for name in USUAL},
        {name: float(busy[kind == name].sum()) / HOUR for name in USUAL},
        {name: float(wait[kind == name].mean()) / HOUR for name in USUAL},
    )


def report_agents(seeds: int, say: Callable[[str], object] = print) -> None:
    """Print each scheduler's results for agents, means over `seeds`."""
    kinds = tuple(USUAL)
    say(f"{WEEKS} weeks of {USUAL}, means of {seeds} seeds: use, %; by kind: jobs, node-hours, mean wait in hours")
    for name, system in SCHEDULERS.items():
        found = [by_agents(system, seed) for seed in range(seeds)]
        shares = [100 * each.share for each in found]
        cells = [
            f"{np.mean([getattr(each, what)[kind] for each in found]):{form}}"
            for kind in kinds
            for what, form in (("jobs", "7.0f"), ("hours", "8.0f"), ("wait", "7.1f"))
        ]
        say(f"{name:24}{np.mean(shares):6.1f} (+-{np.std(shares):.1f})" + "".join(cells))


WITH_AND_WITHOUT = ("Maui", "Maui without backfill")


def report(mixes: int, say: Callable[[str], object] = print) -> None:
    """Print the tables."""
    found = total_times(mixes)
    say(f"Total run time of {mixes} job mixes, hours: mean, deviation, least, most; published")
    for name, times in found.items():
        published = f"{PUBLISHED[name]:8.2f}" if name in PUBLISHED else "       -"
        say(f"{name:28}{times.mean():8.2f}{times.std():7.2f}{times.min():8.2f}{times.max():8.2f}{published}")
    fewer = (found["Maui"] < found["PBS FIFO"]).mean()
    say(f"Maui takes less time than PBS FIFO in {100 * fewer:.0f} % of the mixes")
    say("\nMean wait by nodes, hours: 1-8, 9-16, ... 57-64")
    for name in ("PBS FIFO", "Maui", "Maui without backfill"):
        say(f"{name:28}" + "".join(f"{wait:7.1f}" for wait in waits(mixes, SCHEDULERS[name])))
    say("\nWork over request of every job: hours with backfill, without")
    for share, with_, without in by_efficiency(mixes):
        say(f"{share:28}{with_:8.2f}{without:8.2f}")


def main() -> None:
    """Print the tables that the options choose."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mixes", type=int, default=100)
    parser.add_argument("--agents", type=int, metavar="SEEDS", help="in place of the mixes")
    options = parser.parse_args()
    if options.agents is None:
        report(options.mixes)
    else:
        report_agents(options.agents)


if __name__ == "__main__":
    main()
