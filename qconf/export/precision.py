"""Formulas in single precision, in which PBS's scheduler keeps their values, over a range of jobs.

Jobs that a formula keeps apart in double precision are to stay apart. Where a large term for the queue leaves nothing
of what is added to it, the formula is written anew: the queues keep their order, by steps that are just large enough.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from parsim.formula import JOB_NAMES, expression, parse
from parsim.workload import MAX_DURATION
from qconf.config import SiteConfig

if TYPE_CHECKING:
    from qconf.history import History

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MOST = 0.01  #: of the pairs of jobs, those that may change places
FEW = 5e-4  #: of the pairs of jobs, those that may be equal: a formula with fewer is not written anew
COUNT = 600  #: jobs that are compared
SIZES = 4  #: different ones, and different walltimes, of the jobs of a queue
MINUTE, DAY = 60, 86400
LONGEST = 30 * DAY  #: a walltime, where queues have no longest
LEAST = 1e-7  #: of a range, what logarithms still keep apart
_QUEUE = "queue_priority"


@dataclass(frozen=True, eq=False)
class Jobs:
    """Jobs that a formula may meet, by what it reads of them; shape (n,) each."""

    cores: Integers
    walltime: Integers
    wait: Integers

    @classmethod
    def of_history(cls, cores: Integers, walltime: Integers, wait: Integers) -> Jobs:
        """Return some of the jobs of a history, evenly over it; -1 is a wait that is not known."""
        chosen = np.unique(np.linspace(0, len(wait) - 1, COUNT).astype(np.int64)) if len(wait) else slice(0)
        longest = max(DAY, int(wait.max(initial=0)))
        waits = wait[chosen]
        # Each meets the others at any moment of its wait.
        drawn = np.random.default_rng(0).random(waits.size)
        moments = np.where(waits > 0, waits * drawn, longest**drawn).astype(np.int64)
        return cls(cores[chosen], np.maximum(walltime[chosen], 1), moments)

    @classmethod
    def of(cls, config: SiteConfig) -> Jobs:
        """Return jobs all over the ranges of a configuration's queues."""
        rng = np.random.default_rng(0)
        each = max(COUNT // len(config.queues), 60)
        columns = []
        for queue in config.queues:
            above, upto = queue.walltime
            upto = min(upto, max(LONGEST, above + 1)) if upto == MAX_DURATION else upto
            ranges = ((queue.cores[0], max(queue.cores[0], config.widest(queue))), (max(MINUTE, above + 1), upto))
            # As on a site, many have the same size or walltime, and others any.
            drawn = [_spread(rng, min(low, high), high, each) for low, high in ranges]
            drawn = [np.where(rng.random(each) < 0.5, rng.choice(column[:SIZES], each), column) for column in drawn]
            columns.append([*drawn, np.where(rng.random(each) < 0.1, 0, _spread(rng, MINUTE, 14 * DAY, each))])
        return cls(*(np.concatenate(column) for column in zip(*columns, strict=True)))


def _spread(rng: np.random.Generator, low: int, high: int, count: int) -> NDArray[np.int64]:
    """Draw numbers of all magnitudes between two; those are among them."""
    found = np.exp(rng.uniform(math.log(low), math.log(high) if high > low else math.log(low), count)).round()
    found[:2] = low, high
    return found.astype(np.int64)


def met(history: History) -> Jobs:
    """Return some of the jobs of a history, with the waits that it recorded."""
    jobs = history.jobs
    wait = (jobs["start"] - jobs["submit"]).where(jobs["start"] >= jobs["submit"], -1)
    return Jobs.of_history(jobs["cores"].to_numpy(), jobs["walltime"].to_numpy(), wait.to_numpy())


@dataclass(frozen=True)
class _Range:
    """What formulas of a configuration are evaluated on."""

    base: Floats  #: `JOB_NAMES` of each job, shape (9, n)
    wait: Floats
    shares: Floats  #: of the users of the jobs, what a formula reads of them

    @classmethod
    def of(cls, config: SiteConfig, priorities: dict[str, int], jobs: Jobs) -> _Range:
        """Put the jobs into the first queues that admit them; those that none does are left out."""
        queue = np.full(jobs.cores.size, -1)
        for number, each in reversed(list(enumerate(config.queues))):
            queue[each.admits(jobs.cores, jobs.walltime, config.grid)] = number
        kept = queue >= 0
        values = np.array([priorities[name] for name in config.names], dtype=np.float64)
        rng = np.random.default_rng(1)
        count = int(kept.sum())
        base = np.zeros((len(JOB_NAMES), count))
        classes = [(float(qos.priority), float(qos.target or 0)) for qos in config.qos] or [(0.0, 0.0)]
        of_qos = np.array(classes)[rng.integers(0, len(classes), count)].T
        shares = rng.random(count)
        given = {
            _QUEUE: values[queue[kept]],
            "walltime": jobs.walltime[kept],
            "ncpus": jobs.cores[kept],
            "fairshare_perc": shares,
            "qos_priority": of_qos[0],
            "qos_target": of_qos[1],
        }
        for name, column in given.items():
            base[JOB_NAMES.index(name)] = column
        return cls(base, jobs.wait[kept].astype(np.float64), shares)

    def values(self, text: str) -> Floats:
        """Evaluate a formula; 0 where it is undefined."""
        with np.errstate(all="ignore"):
            return np.nan_to_num(parse(text).values(self.base, self.wait, self.shares), nan=0.0)

    def lost(self, text: str, wanted: Floats) -> tuple[float, float]:
        """Compare a formula in single precision with the values that jobs are wanted to have, pair by pair.

        Returns
        -------
        wrong, equal : float
            The share of the pairs that do not go in their order, and of those that are equal, where `wanted` differ.
        """
        with np.errstate(over="ignore"):
            found = self.values(text).astype(np.float32)
        # What the arithmetic of double precision leaves of equal values is no order.
        least = 1e-12 * np.maximum(np.abs(wanted[:, None]), np.abs(wanted[None, :]))
        differ = wanted[:, None] - wanted[None, :] > least
        same = found[:, None] == found[None, :]
        # What is equal goes by submission.
        right = (found[:, None] > found[None, :]) | (same & (self.wait[:, None] > self.wait[None, :]))
        pairs = max(1, int(differ.sum()))
        return int((differ & ~right).sum()) / pairs, int((differ & same).sum()) / pairs


def precise(text: str, config: SiteConfig, priorities: dict[str, int], jobs: Jobs | None = None) -> tuple[str, float]:
    """Return a formula that keeps the order of this one in single precision, and the share of pairs of jobs that fail.

    It is `text` itself where that does.

    Parameters
    ----------
    text : str
        As PBS is to have it.
    config : SiteConfig
    priorities : dict of str to int
        Whole priorities by queue.
    jobs : Jobs, optional
        By default all that the queues admit.
    """
    return _precise(text, config, tuple(priorities.items()), jobs)


@lru_cache(maxsize=256)
def _precise(
    text: str, config: SiteConfig, priorities: tuple[tuple[str, int], ...], jobs: Jobs | None
) -> tuple[str, float]:
    of = _Range.of(config, dict(priorities), jobs or Jobs.of(config))
    if not of.wait.size:
        return text, 0.0
    wanted = of.values(text)
    best = text, of.lost(text, wanted)
    others = _rewritten(text, of) if max(best[1]) > FEW else iter(())
    for other in others:
        best = min(best, (other, of.lost(other, wanted)), key=lambda found: found[1])
        if max(best[1]) <= FEW / 2:  # so that it is not written anew in its turn
            break
    return best[0], best[1][0]


def _rewritten(text: str, of: _Range) -> Iterator[str]:
    """Yield formulas of the same order, with smaller numbers."""
    tree = expression(text)
    if isinstance(tree, ast.IfExp):  # starving jobs first, say
        first, condition, others = (_source(text, each) for each in (tree.body, tree.test, tree.orelse))
        for other in _rewritten(others, of):
            yield f"{first} if {condition} else ({other})"
        return
    addends = list(_addends(tree))
    of_queue = _sum(text, [each for each in addends if {*_names(each[1])} <= {_QUEUE}])
    rest = _sum(text, [each for each in addends if {*_names(each[1])} - {_QUEUE}])
    if not of_queue or not rest:
        return
    priorities = np.unique(of.base[JOB_NAMES.index(_QUEUE)])
    levels = _levels(of_queue, priorities)
    values = of.values(rest)
    low, high = float(values.min()), float(values.max())
    width = high - low
    distinct = sorted({*levels.values()})
    if len(distinct) == 1:
        yield rest
    elif np.diff(distinct).min() <= width:  # the queues do not go one behind the other
        yield f"{_steps(levels, math.inf)} + {rest}"
    else:  # jobs beyond the range of these stay within the step of their queue
        least = 0.0 if 0 <= low <= width else -_rounded(width / 4 - low)
        most = _rounded(high + width / 4)
        yield f"{_steps(levels, _rounded(most - least + 1))} + min(max({rest}, {least:.15g}), {most:.15g})"
        unit = float(f"{width * LEAST:.3g}")
        step, bound = math.ceil(-2 * math.log(LEAST)), _rounded(high + width)
        yield f"{_steps(levels, step)} + log(max(min({rest}, {bound:.15g}) - ({low:.15g}), {unit}) / {unit})"


def _rounded(value: float) -> float:
    """Round up to two digits."""
    scale = 10.0 ** (math.floor(math.log10(abs(value))) - 1) if value else 1.0
    return math.ceil(value / scale) * scale


def _source(text: str, node: ast.expr) -> str:
    """Return what stands for a node in a formula."""
    found = ast.get_source_segment(text, node) or ""
    return f"({found})" if isinstance(node, ast.IfExp) else found


def _sum(text: str, addends: Sequence[tuple[int, ast.expr]]) -> str:
    """Write a sum of signed parts of a formula."""
    signed = (f" {'-' if sign < 0 else '+'} {_source(text, each)}" for sign, each in addends)
    return "".join(signed).removeprefix(" + ").lstrip()


def _addends(node: ast.expr, sign: int = 1) -> Iterator[tuple[int, ast.expr]]:
    """Yield the parts of a sum, with their signs."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        yield from _addends(node.left, sign)
        yield from _addends(node.right, sign if isinstance(node.op, ast.Add) else -sign)
    else:
        yield sign, node


def _names(node: ast.AST) -> Iterator[str]:
    calls = {id(each.func) for each in ast.walk(node) if isinstance(each, ast.Call)}
    return (each.id for each in ast.walk(node) if isinstance(each, ast.Name) and id(each) not in calls)


def _levels(text: str, priorities: Floats) -> dict[int, float]:
    """Return the value of what reads the queue alone, by priority."""
    base = np.zeros((len(JOB_NAMES), priorities.size))
    base[JOB_NAMES.index(_QUEUE)] = priorities
    values = np.nan_to_num(parse(text).values(base, np.zeros(priorities.size)), nan=0.0)
    return dict(zip(priorities.astype(int).tolist(), values.tolist(), strict=True))


def in_steps(priorities: Iterable[int], step: float) -> str:
    """Write the place of a queue by its priority, times a step."""
    return _steps({priority: place * step for place, priority in enumerate(sorted({*priorities}))}, math.inf)


def _steps(levels: dict[int, float], most: float) -> str:
    """Write a value by priority in the order of the levels, with steps between them that are no larger than `most`."""
    found: dict[float, float] = {}
    before = height = 0.0
    for level in sorted({*levels.values()}):
        height += min(level - before, most) if found else 0
        found[level], before = height, level
    rising = [(priority, found[level]) for priority, level in sorted(levels.items())]
    steps = [(priority, after - now) for (priority, now), (_, after) in pairwise(rising)]
    alike = len({step for _, step in steps}) == 1 < len(steps)
    factor = f"{steps[0][1]:.15g} * " if alike else ""
    terms = (f"({_QUEUE} > {p})" if alike else f"{step:.15g} * ({_QUEUE} > {p})" for p, step in steps if step)
    text = " + ".join(terms).replace("+ -", "- ")
    return f"{factor}({text})" if alike else text
