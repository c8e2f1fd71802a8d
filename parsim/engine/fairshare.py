"""Use of users and groups for fairshare: charged as jobs run, decayed when it is read.

A node of the tree has the rate at which it is charged, so nothing is done between two passes; nodes that a pass does
not read are updated later. Names of rules refer to docs/reference/simulator.md.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from parsim.engine.compile.compiled import routine, step

NODE = np.dtype(
    [
        ("parent", np.int64),  # row of its group, before its own; -1 of the root, row 0
        ("share", np.float64),  # S, of the whole tree
        ("part", np.float64),  # p, of its group
        ("target", np.float64),  # percent of all use, or NaN
        ("low", np.float64),  # bounds of the distance from the target that counts, percent
        ("high", np.float64),
        ("rate", np.int64),  # charge per second of the running jobs
        ("at", np.int64),  # instant until which `since` is complete
        ("decay", np.int64),  # instant of the next decay
        ("since", np.int64),  # charges since the last decay
        ("used", np.float64),  # use after the last decay
        ("jobs", np.int64),  # running jobs
        ("passed", np.int64),  # instant of the last pass that started or interrupted a job
        ("before", np.int64),  # jobs that ran when this pass began
    ],
    align=True,
)

LARGEST_RATIO = 1e300  # a ratio above all others, and finite

TREE_USAGE, FACTOR, TARGET, RANK, TURN, ACTIVE = range(6)  # rows of `values`; TURN: use over share, negative


class Fair(NamedTuple):
    """The tree of shares, and the values that a formula reads."""

    user: NDArray[np.int32]  # (n,): node of the user of each job; empty where no order reads use
    rate: NDArray[np.int64]  # (n,): charge of each job per second
    nodes: NDArray[np.void]  # (k,) NODE
    paths: NDArray[np.int32]  # (users, depth): nodes from below the root to each user, then -1
    row: NDArray[np.int32]  # (k,): row of `paths` of the user at each node
    values: NDArray[np.float64]  # (6, k): of the user at each node, in the rows `TREE_USAGE` to `ACTIVE`
    at: NDArray[np.int64]  # (k,): instant of the values of a user
    ratio: NDArray[np.float64]  # (k,): use over share
    ratios_at: NDArray[np.int64]  # (1,): instant of the ratios
    way: NDArray[np.int64]  # (depth,): scratch: the nodes from a user up to below the root
    reads: NDArray[np.int64]  # rows of `values` that the formula reads
    first: np.int64  # column of the formula that has the first of them
    begin: np.int64  # instant from which jobs are charged
    period: np.int64  # seconds from decay to decay
    factor: np.float64  # of use at each decay
    least: np.float64  # use after a decay below which it counts as 0
    ranked: np.bool_  # whether the formula reads ranks


@step
def charge(fair, j, now):
    """Charge the user and the groups of job j, which a pass starts, from now on (rule "charges and decay")."""
    if fair.user.size > 0:
        count_before(fair, j, now)
        change_rate(fair, j, 1, now)


@step
def interrupt(fair, j, now):
    """Stop charging for job j, which a pass interrupts; keep the number of its user's jobs before the pass."""
    if fair.user.size > 0:
        count_before(fair, j, now)
        change_rate(fair, j, -1, now)


@step
def stop_charging(fair, j, now):
    """Stop charging for job j, which has ended before the pass of this instant."""
    if fair.user.size > 0:
        change_rate(fair, j, -1, now)


@step
def count_before(fair, j, now):
    """Keep the number of jobs of job j's user that ran when this pass began (rule "active jobs")."""
    user = fair.nodes[fair.user[j]]
    if user.passed != now:
        user.passed = now
        user.before = user.jobs


@step
def change_rate(fair, j, sign, now):
    """Add job j to its user's running jobs, and its rate to its user and groups (`sign` 1), or subtract them (-1)."""
    k = np.int64(fair.user[j])
    fair.nodes[k].jobs += sign
    now = max(now, fair.begin)
    while k >= 0:
        update(fair, k, now)
        fair.nodes[k].rate += sign * fair.rate[j]
        k = fair.nodes[k].parent


@step
def update(fair, k, now):
    """Charge node k until now, with all decays until then (rule "charges and decay")."""
    node = fair.nodes[k]
    if now >= node.decay:
        decay(fair, k, now)
    node.since += node.rate * (now - node.at)
    node.at = now


@routine
def decay(fair, k, now):
    """Apply all decays of node k up to now, one at least, and the charges until the last of them."""
    node, period = fair.nodes[k], fair.period
    node.used = decayed(fair, node.used, node.since + node.rate * (node.decay - node.at))
    node.since = 0
    charged = node.rate * period
    node.at = now - (now - fair.begin) % period
    for _ in range((node.at - node.decay) // period):
        if charged == 0 and node.used == 0.0:
            break
        node.used = decayed(fair, node.used, charged)
    node.decay = node.at + period


@step
def decayed(fair, used, since):
    """Return the use after a decay: `used` (after the last decay) plus the charges `since`, times `factor`."""
    u = (used + np.float64(since)) * fair.factor
    return u if u >= fair.least else 0.0


@step
def fill(fair, columns, jobs, count, now):
    """Write the values of the users of the first `count` jobs into the formula's columns (rule "use in a pass")."""
    if fair.user.size == 0:
        return
    for i in range(count):
        j = jobs[i]
        k = np.int64(fair.user[j])
        if fair.at[k] != now:
            find_values(fair, k, now)
        for r in range(fair.reads.size):
            columns[fair.first + r, j] = fair.values[fair.reads[r], k]


@routine
def find_values(fair, user, now):
    """Compute the values of a user, given by its node (rule "values of a user")."""
    nodes, way = fair.nodes, fair.way
    fair.at[user] = now
    depth = 0
    k = user
    while k > 0:
        update(fair, k, now)
        way[depth] = k
        depth += 1
        k = nodes[k].parent
    update(fair, np.int64(0), now)
    total = use(nodes[0])
    target = 0.0
    for d in range(depth):
        node = nodes[way[d]]
        if node.target == node.target:
            u = use(node) / total if total > 0.0 else 0.0
            target += min(max(node.target - 100.0 * u, node.low), node.high)
    effective = 0.0
    for d in range(depth - 1, -1, -1):
        node = nodes[way[d]]
        u = use(node) / total if total > 0.0 else 0.0
        effective = u if d == depth - 1 else u + (effective - u) * node.part
    share = nodes[user].share
    fair.values[TREE_USAGE, user] = effective
    fair.values[FACTOR, user] = np.exp2(-(effective / share)) if share > 0.0 else 0.0
    fair.values[TARGET, user] = target
    fair.values[TURN, user] = -ratio_of(nodes[user])
    fair.values[ACTIVE, user] = nodes[user].before if nodes[user].passed == now else nodes[user].jobs
    if fair.ranked:
        fair.values[RANK, user] = rank(fair, user, now)


@step
def use(node):
    """Return the use of a node at its last `update`."""
    return node.used + np.float64(node.since)


@step
def ratio_of(node):
    """Return the use of a node over its share."""
    return use(node) / node.share if node.share > 0.0 else LARGEST_RATIO


@routine
def rank(fair, user, now):
    """Return the fraction of all users who do not go before this one (rule "values of a user")."""
    nodes, paths, ratio = fair.nodes, fair.paths, fair.ratio
    if fair.ratios_at[0] != now:
        fair.ratios_at[0] = now
        for k in range(nodes.size):
            update(fair, np.int64(k), now)
            ratio[k] = ratio_of(nodes[k])
    count = np.int64(0)
    if paths.shape[1] == 1:
        for k in range(1, nodes.size):
            count += ratio[k] < ratio[user]
        return np.float64(paths.shape[0] - count) / np.float64(paths.shape[0])
    own = np.int64(fair.row[user])
    for other in range(paths.shape[0]):
        count += goes_before(paths, ratio, other, own)
    return np.float64(paths.shape[0] - count) / np.float64(paths.shape[0])


@step
def goes_before(paths, ratio, a, b):
    """Whether the user of path a goes before that of path b (rule "order of users")."""
    for d in range(paths.shape[1]):
        i, k = paths[a, d], paths[b, d]
        if i == k:
            if i < 0:
                return 0
            continue
        if i < 0:
            return 1
        if k < 0:
            return 0
        if ratio[i] != ratio[k]:
            return 1 if ratio[i] < ratio[k] else 0
    return 0
