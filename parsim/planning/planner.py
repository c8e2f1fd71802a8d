"""The data of planning schedulers: the jobs, the plan of each policy, and the settings."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from parsim.engine.lists.alike import Lines
from parsim.engine.resources.profile import Profile

FCFS, SJF, LJF = 0, 1, 2  # rows of `ranks` and of all that is counted per policy
FIXED, BOUNDS, TUNING = 0, 1, 2  # how the policy of a pass is found
SIMPLE, ADVANCED, PREFERRED = 0, 1, 2  # deciders of self-tuning dynP
WIDTHS = 32  # powers of two up to a number of cores
BLOCK = 4  # jobs planned between two looks at which others can start now
SETTINGS = np.dtype(
    [
        ("kind", np.int64),
        ("policy", np.int64),  #: the first policy
        ("lower", np.int64),  #: seconds, as `Policy.lower`
        ("upper", np.int64),  #: seconds, as `Policy.upper`
        ("least", np.int64),  #: least number of waiting jobs for a decision
        ("decider", np.int64),
        ("preferred", np.int64),
        ("tie", np.float64),  #: scores closer than this share of the least are equal to it
        ("full", np.bool_),  #: decide where a job ended, too
        ("makespan", np.bool_),  #: the makespan scores a plan, else the weighted sum of the delays
        ("standing", np.bool_),  #: score the list as it stands in the place of FCFS
    ],
    align=True,
)


class Planner(NamedTuple):
    """The jobs and settings of a planning scheduler, and arrays for its plans."""

    jobs: NDArray[np.void]  # (n,) JOB
    weight: NDArray[np.float64]  # (n,): what a second of delay of each job adds to the score of a plan
    settings: np.void  # SETTINGS
    width: NDArray[np.int64]  # (n,): 2**width is the greatest power of two up to the job's cores
    orders: NDArray[np.int64]  # (3, lines): the waiting jobs, only the first of jobs alike, in the order of each policy
    planned: NDArray[np.int64]  # (3, n): start of each job in the plan of each policy, where plans are scored
    base: Profile  # cores idle beside the running jobs
    idle: Profile  # cores idle beside the running jobs and those planned so far
    earliest: NDArray[np.int64]  # (WIDTHS,): segment before which no job of 2**width cores or more can begin
    drop: NDArray[np.int64]  # (WIDTHS,): instant from which fewer than 2**width cores idle
    longest: NDArray[np.int64]  # (WIDTHS,): no longer job of 2**width cores or more can begin soon enough to matter
    lines: Lines  # the jobs alike with those in `orders`
    behind: NDArray[np.int64]  # (lines,): heap of the next jobs to plan of lines, as keys: place in the order, job
    segment: NDArray[np.int64]  # (lines,): segment before which no other job of the line can begin
    closed: NDArray[np.int64]  # (lines,): latest instant at which no other job of the line could start
    open: NDArray[np.int64]  # (lines,): entries of the order whose lines may have another job that starts now
    begun: NDArray[np.int64]  # jobs that start now
    scores: NDArray[np.float64]  # (3,): of the plan of each policy; the least is best
