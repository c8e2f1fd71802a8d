"""Months of jobs that follow a preset: exact counts, exact CPU hours, everything else random, from one seed.

Jobs come in bursts: one user submits a few jobs of one shape within minutes. Bursts follow the hour of the day and the
day of the week. Runtimes are lognormal, truncated at the walltime; some jobs fail early and some are killed at their
limit. Bisection finds the location of the lognormal at which the queue's core-seconds are those of the preset.
"""

from __future__ import annotations

import calendar
from datetime import UTC, datetime

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtri_exp

from qconf.errors import InputError
from qconf.synth.presets import HOUR, Preset, QueueModel, preset_named

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

COLUMNS = ("job_id", "submit", "runtime", "walltime", "cores", "queue", "user")

# Relative rates of submission by hour of the day (the machine's clock is UTC) and by weekday from Monday.
BY_HOUR = np.array([5, 4, 3, 2, 2, 2, 3, 4, 7, 11, 14, 15, 13, 12, 14, 15, 15, 14, 12, 10, 9, 9, 8, 6], dtype=float)
BY_WEEKDAY = np.array([1.05, 1.10, 1.10, 1.05, 1.00, 0.55, 0.45])
DAY_SPREAD = 0.25  # sigma of the lognormal that makes one Tuesday busier than the next

FAIL_MEDIAN, FAIL_MOST = 60.0, 600.0  # seconds until a failing job fails
SIGMA = 1.3  # sigma of the runtimes' lognormal
SIGMA_SHARED = 0.8  # weight of the normal variate that the jobs of a burst share

ZIPF = 1.0  # exponent of the users' popularity
_USERS, _ACTIVITY, _QUEUE = 0, 1, 2  # streams of random numbers


def _stream(seed: int, *key: int) -> np.random.Generator:
    """Return a generator for each part of the data, so that a month does not depend on the number of months."""
    return np.random.default_rng(np.random.SeedSequence(entropy=seed, spawn_key=key))


def month_of(preset: Preset, index: int) -> tuple[int, int, int]:
    """Return the calendar year and month of month `index`, and its length in seconds (UTC)."""
    year, month = divmod(preset.first[0] * 12 + preset.first[1] - 1 + index, 12)
    return year, month + 1, calendar.monthrange(year, month + 1)[1] * 24 * HOUR


def _burst_sizes(rng: np.random.Generator, jobs: int, mean: float) -> Ints:
    """Cut `jobs` into bursts of geometric size."""
    ends = np.minimum(np.cumsum(rng.geometric(1 / mean, jobs)), jobs)
    ends = ends[: int(np.searchsorted(ends, jobs)) + 1]
    sizes: Ints = np.diff(ends, prepend=np.int64(0))
    return sizes


def _arrivals(rng: np.random.Generator, bursts: Ints, first_weekday: int, length: int, gap: float) -> Ints:
    """Return the second of the month of every job's submission, burst by burst."""
    days = length // (24 * HOUR)
    weekday = (first_weekday + np.arange(days)) % 7
    rate = (BY_WEEKDAY[weekday] * rng.lognormal(0.0, DAY_SPREAD, days))[:, None] * BY_HOUR[None, :]
    hour = rng.choice(rate.size, size=bursts.size, p=rate.ravel() / rate.sum())
    start = hour * HOUR + rng.integers(0, HOUR, bursts.size)
    of = np.repeat(np.arange(bursts.size), bursts)
    first = np.cumsum(bursts) - bursts
    since = np.cumsum(rng.exponential(gap, of.size))
    offset = (since - since[first][of]).astype(np.int64)
    last = offset[np.cumsum(bursts) - 1]
    start = np.clip(start, 0, np.maximum(length - 1 - last, 0))  # a burst ends with its month
    submit: Ints = np.minimum(start[of] + offset, length - 1)
    return submit


def _pick(rng: np.random.Generator, weights: dict[int, float], size: int) -> Ints:
    odds = np.array(list(weights.values()))
    drawn: Ints = np.array(list(weights), dtype=np.int64)[rng.choice(odds.size, size, p=odds / odds.sum())]
    return drawn


def _cores(rng: np.random.Generator, model: QueueModel, size: int, cores_per_node: int) -> Ints:
    nodes = _pick(rng, model.nodes, size)
    low, high = model.any_nodes
    # Log-uniform: as many odd sizes between two powers of two as between the next two.
    other = np.exp(rng.uniform(np.log(low), np.log(high + 1), size)).astype(np.int64).clip(low, high)
    cores = np.where(rng.random(size) < model.odd, other, nodes) * cores_per_node
    cores[rng.random(size) < model.sub_node] = 8
    return cores


def _runtimes(
    rng: np.random.Generator, model: QueueModel, cores: Ints, walltime: Ints, *, of: Ints, target: float
) -> tuple[Ints, float]:
    """Sample runtimes whose core-seconds are `target`; return them and the core-seconds reached."""
    n = cores.size
    shared, own = rng.standard_normal(int(of[-1]) + 1)[of], rng.standard_normal(n)
    log_u = log_ndtr(SIGMA_SHARED * shared + np.sqrt(1 - SIGMA_SHARED**2) * own)
    fate = rng.random(n)
    fixed = np.minimum(np.clip(rng.lognormal(np.log(FAIL_MEDIAN), 1.0, n), 1, FAIL_MOST), walltime)
    log_wall = np.log(walltime)

    def runtimes(mu: float) -> Ints:
        # Quantiles of the lognormal truncated at the walltime: only killed jobs reach the limit.
        drawn = np.exp(mu + SIGMA * ndtri_exp(log_u + log_ndtr((log_wall - mu) / SIGMA)))
        drawn = np.where(fate < model.failed, fixed, drawn)
        drawn = np.where(fate >= 1 - model.killed, walltime, drawn)
        return np.clip(np.rint(drawn), 1, walltime).astype(np.int64)

    low, high = 0.0, 40.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if float(cores @ runtimes(middle)) < target else (low, middle)
    result = runtimes(high)
    return result, float(cores @ result)


def _popularity(preset: Preset, index: int, seed: int) -> Floats:
    """Return the probability of each user in each queue, shape (queues, users): Zipf with lasting and monthly noise."""
    rank = np.arange(1, preset.users + 1)
    shape = (len(preset.queues), preset.users)
    liking = _stream(seed, _USERS).lognormal(0.0, 0.6, shape)
    mood = _stream(seed, _ACTIVITY, index).lognormal(0.0, 0.6, preset.users)
    weights = rank**-ZIPF * liking * mood
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def _queue_month(
    preset: Preset, index: int, number: int, *, seed: int, load: float, popularity: Floats
) -> pd.DataFrame:
    """Generate the jobs of queue `number` in month `index`."""
    year, month, length = month_of(preset, index)
    profile = preset.profile(index)
    model, jobs = preset.queues[number], profile.jobs[number]
    rng = _stream(seed, _QUEUE, index, number)
    bursts = _burst_sizes(rng, jobs, model.burst)
    of = np.repeat(np.arange(bursts.size), bursts)
    begin = datetime(year, month, 1, tzinfo=UTC)
    submit = _arrivals(rng, bursts, begin.weekday(), length, model.gap) + int(begin.timestamp())
    cores_of = _cores(rng, model, bursts.size, preset.cores_per_node)
    cores = cores_of[of]
    walltime = _pick(rng, model.walltimes, bursts.size)[of]
    user = rng.choice(preset.users, size=bursts.size, p=popularity)[of]
    chunks = np.full(bursts.size, "", dtype=object)
    if model.of_node:
        kinds, odds = list(model.of_node), np.array(list(model.of_node.values()))
        kind = [kinds[k] for k in rng.choice(odds.size, bursts.size, p=odds / odds.sum())]
        nodes = -(-cores_of // preset.cores_per_node)
        selects = [  # in GiB
            f"{n}:ncpus={ncpus}" + f":ngpus={gpus}" * bool(gpus) + f":mem={memory}gb"
            for n, (ncpus, gpus, memory) in zip(nodes.tolist(), kind, strict=True)
        ]
        chunks = np.array(selects, dtype=object)
        cores = (nodes * np.array([each[0] for each in kind]))[of]
    target = load * preset.cores * length * profile.shares[number] / sum(profile.shares)
    runtime, reached = _runtimes(rng, model, cores, walltime, of=of, target=target)
    if abs(reached - target) > 0.005 * target:
        limit = f"{'less' if reached < target else 'more'} than {reached / target * load:.2f}"
        message = f"out of reach of the jobs of {model.name} in {year}-{month:02d} within their walltimes"
        raise InputError(message, field="load", value=load, fix=f"ask for {limit}")
    columns = {"submit": submit, "runtime": runtime, "walltime": walltime, "cores": cores}
    return pd.DataFrame({**columns, "queue": model.name, "user": user, "chunks": chunks[of]})


def generate_month(preset: str | Preset, index: int, seed: int = 0, offered_load: float | None = None) -> pd.DataFrame:
    """Generate month `index` (0 is the preset's first) of the workload; see `generate`."""
    if index < 0 or seed < 0:
        raise InputError("must not be negative", field="month" if index < 0 else "seed", value=min(index, seed))
    if offered_load is not None and not 0 < offered_load <= 2:
        raise InputError("must be above 0 and at most 2", field="load", value=offered_load)
    model = preset_named(preset) if isinstance(preset, str) else preset
    load = model.profile(index).load if offered_load is None else offered_load
    popularity = _popularity(model, index, seed)
    parts = [
        _queue_month(model, index, number, seed=seed, load=load, popularity=popularity[number])
        for number in range(len(model.queues))
    ]
    frame = pd.concat(parts, ignore_index=True).sort_values("submit", kind="stable", ignore_index=True)
    before = sum(sum(model.profile(i).jobs) for i in range(index))
    frame.insert(0, "job_id", np.arange(before + 1, before + 1 + len(frame), dtype=np.int64))
    frame["user"] = np.array([f"u{number:03d}" for number in range(1, model.users + 1)])[frame["user"]]
    return frame[[*COLUMNS, *(["chunks"] if any(queue.of_node for queue in model.queues) else [])]]


def generate(
    preset: str = "cray-xc40", months: int = 9, seed: int = 0, offered_load: float | None = None
) -> pd.DataFrame:
    """Generate consecutive months of jobs: `COLUMNS`, by submission; `submit` in epoch seconds, durations in seconds.

    The first month is the preset's first; after the last of its profiles the first follows again. A month depends only
    on its index and the seed. `offered_load` replaces the preset's in every month: submitted core-seconds, ``cores *
    min(runtime, walltime)``, divided by the machine's cores and the length of the month. Only runtimes change for it,
    not counts, sizes and the queues' shares. Raises `InputError` if the preset is unknown, a number is out of range, or
    walltimes make the load unreachable.

    References
    ----------
    Kondameedi and Vadhiyar, "Adaptive Hybrid Queue Configuration for Supercomputer Systems", CCGrid 2017,
    Tables I and II.
    """
    if months < 1:
        raise InputError("must be at least 1", field="months", value=months)
    parts = [generate_month(preset, index, seed, offered_load) for index in range(months)]
    return pd.concat(parts, ignore_index=True)
