"""dynP: chooses the policy that plans, by the scores of plans (self-tuning) or by the mean walltime (bounds).

References
----------
Streit, "On Job Scheduling for HPC-Clusters and the dynP Scheduler", HiPC 2001, section 5 (bounds);
"Enhancements to the Decision Process of the Self-Tuning dynP Scheduler", JSSPP 2004, section 3
(deciders, metrics).
"""

from __future__ import annotations

import numpy as np

from parsim.engine.resources.windows import UNKNOWN_END
from parsim.engine.simulation import routine, step
from parsim.planning.planner import FCFS, LJF, PREFERRED, SIMPLE, SJF
from parsim.planning.whole_plan import plan


@step
def tune(planner, waiting, base, policy, now):
    """Plan by each policy, beside `base` segments, and let the decider choose by the scores (JSSPP 2004, 3.2).

    Returns
    -------
    least, chosen, row : int
        Policies of least score, as bits; the chosen policy; the row of `planned` with the plan to follow.
    """
    settings, scores = planner.settings, planner.scores
    open_ended = planner.base.times[base - 1] >= UNKNOWN_END
    least_score = np.inf
    for turn in range(3):
        # The policy in use goes first, so that plans with worse scores stop early.
        p = policy if turn == 0 else (turn - 1 if turn <= policy else turn)
        if settings.standing and p == FCFS and policy != FCFS:
            scores[FCFS] = scores[policy]
            continue
        most = np.inf if settings.standing or open_ended else least_score * (1.0 + 1e-9)
        scores[p] = np.inf
        if plan(planner, planner.orders[p], waiting, base, p == SJF, most, planner.planned[p]):
            scores[p] = score(planner, waiting, planner.planned[p], now)
        least_score = min(least_score, scores[p])
    if open_ended:
        score_planned(planner, waiting, policy if settings.standing else np.int64(FCFS), now)
        least_score = min(scores[FCFS], scores[SJF], scores[LJF])
    least = 0
    for p in range(3):
        if scores[p] <= least_score * (1.0 + settings.tie):
            least |= 1 << p
    chosen = decide(least, policy, settings.decider, settings.preferred)
    return least, chosen, (LJF if settings.standing and chosen != policy else chosen)


@step
def decide(least, policy, decider, preferred):
    """Return the policy that a decider chooses; `policy` is in use, `least` has bit p if p has the least score."""
    if decider == PREFERRED and least >> preferred & 1:
        return preferred
    if decider != SIMPLE and least >> policy & 1:
        return policy
    if least & 1:
        return np.int64(FCFS)
    return np.int64(SJF if least & 2 else LJF)


@step
def score(planner, waiting, planned, now):
    """Return the score of a plan, summed in the order of FCFS under each policy, so that equal plans score equal."""
    total = 0.0
    for k in range(waiting):
        j = planner.orders[FCFS, k]
        total = add_score(planner, j, planned[j] - now, total)
    return total


@step
def add_score(planner, j, delay, total):
    """Return the score of a plan, `total` without job j, with this job `delay` seconds after now."""
    if planner.settings.makespan:
        return max(total, float(delay + planner.jobs[j].walltime))
    return total + planner.weight[j] * delay


@routine
def score_planned(planner, waiting, first, now):
    """Set the scores of all plans over jobs that have a start in each; row `first` of `planned` is the plan of FCFS."""
    planned, scores = planner.planned, planner.scores
    scores[:] = 0.0
    for k in range(waiting):
        j = planner.orders[FCFS, k]
        if max(planned[first, j], planned[SJF, j], planned[LJF, j]) < UNKNOWN_END:
            scores[FCFS] = add_score(planner, j, planned[first, j] - now, scores[FCFS])
            scores[SJF] = add_score(planner, j, planned[SJF, j] - now, scores[SJF])
            scores[LJF] = add_score(planner, j, planned[LJF, j] - now, scores[LJF])


@step
def choose_by_bounds(settings, total, waits):
    """Return the policy for `waits` waiting jobs of `total` seconds: SJF if these are short, LJF if long, else FCFS."""
    if total <= settings.lower * waits:
        return np.int64(SJF)
    return np.int64(FCFS if total <= settings.upper * waits else LJF)
