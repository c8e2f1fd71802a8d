"""Fairshare, worked by hand: the tree, what is charged, how it decays, and what an order makes of it."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from parsim import QOS, Fairshare, Queue, Share, System, Workload, metrics, simulate
from parsim.metrics.usage import ShareUse, distance, share_uses
from parsim.model.node_types import Chunk
from parsim.naive.fairshare import NAMES, Charge, Values, rate_of
from parsim.prepare.charges import rates
from parsim.prepare.fairshare import tree_of

TREE = (Share("physics", 60), Share("alice", 2, "physics"), Share("bob", 1, "physics"), Share("carol", 40))


def jobs(*rows: tuple[int, int, int, int], names: tuple[str, ...] = ()) -> Workload:
    """Return jobs of (submit, cores, run time, user), each with its run time for a walltime."""
    submit, cores, runtime, user = zip(*rows, strict=True)
    return Workload(submit, cores, runtime, runtime, user=user, user_names=names)


def test_the_tree_of_shares():
    tree = tree_of(Fairshare(TREE, unknown_shares=25), ("alice", "dave", "eve", ""))
    of = {name: tree.share[node] for name, node in tree.users.items()}
    assert of == {
        "carol": 40 / 125,
        "alice": 60 / 125 * (2 / 3),
        "bob": 60 / 125 * (1 / 3),
        **dict.fromkeys(("dave", "eve", ""), 25 / 125 * (1 / 3)),
    }
    assert tree_of(Fairshare(), ("a", "b")).share.tolist() == [1, 0.5, 0.5]
    assert "unknown" not in [share.name for share in tree_of(Fairshare(TREE), ("alice",)).shares]


def test_a_job_is_charged_as_it_runs_and_use_decays():
    fairshare, charges, decayed = Fairshare(decay_time=10, decay_factor=0.5), [Charge("a", 103, 112, Fraction(4))], {}

    def at(now: int) -> Values:
        return Values(fairshare, ["a", "b"], charges, 100, now, decayed)

    assert at(108).use["a",] == 20
    assert at(110).use["a",] == 14  # a decay: of 28 core-seconds half are left
    assert at(120).use["a",] == (14 + 8) / 2
    assert at(160).use["a",] == 0  # below one core-second
    assert at(160).of("b") == dict(zip(NAMES, (0.5, 0.0, 1.0, 1.0, 0.0, 0), strict=True))


WEIGHTS = {"cores": 1, "gpus": 20, "memory": 0.25 / 1024}


@pytest.mark.parametrize(
    ("charges", "charged", "factor", "rate"),
    [
        ({}, "sum", 1, 4),
        (WEIGHTS, "sum", 1, 4 + 2 * 20 + 8 * 0.25),
        (WEIGHTS, "max", 1, 2 * 20),
        ({"gpus": 1}, "sum", 1, 2),
        ({"cores": 0.5, "licences": 9}, "max", 1, 2),
        ({"cores": 0.1}, "sum", 1, round(0.4 * 65536) / 65536),
        (WEIGHTS, "sum", 2.5, 46 * 2.5),
        ({}, "max", 0, 0),
    ],
)
def test_what_a_second_of_a_job_is_charged(charges, charged, factor, rate):
    wanted = (Chunk(2, 1, {"gpus": 1, "memory": 2048}), Chunk(1, 2, {"memory": 4096}))
    one = Workload([0], [4], [9], [9], qos=[0], qos_names=("fast",), request=[0], requests=[wanted])
    tree = Fairshare(charges=charges, charged=charged)
    for own, default in ((tree, Queue()), (Fairshare(charges={"cores": 99}, charged=charged), Queue(charges=charges))):
        if default.charges or own is tree:
            system = System(8, [default], fairshare=own, qos=[QOS("fast", usage_factor=factor)])
            found, parts = rates(one, system)
            assert found[0] / parts == rate
            takes = {"cores": 4, "gpus": 2, "memory": 8192}
            assert rate_of(system, system.queues[0], factor, lambda name, has=takes: has.get(name, 0)) == rate


def test_the_order_by_fairshare_goes_by_what_is_charged():
    wanted = [(Chunk(1, 1, {"gpus": 4}),)]
    both = Workload([0, 0, 1, 2], [1, 3, 4, 4], [10, 10, 5, 5], [10, 10, 5, 5], [0] * 4, [0, 1, 0, 1])
    both = replace(both, request=[0, -1, -1, -1], requests=wanted)
    by_cores = System(4, order="fairshare")  # user 1 has used 30 core-seconds, user 0 ten
    assert simulate(both, by_cores).start.tolist() == [0, 0, 10, 15]
    by_gpus = replace(by_cores, fairshare=Fairshare(charges={"gpus": 1}))
    assert simulate(both, by_gpus).start.tolist() == [0, 0, 15, 10]


def test_active_jobs_are_those_of_the_user_as_the_pass_begins():
    three = Workload([0, 0, 1, 2, 2], [2, 2, 4, 2, 2], [9, 6, 3, 3, 3], [9, 6, 3, 3, 3], [0] * 5, [0, 1, 0, 1, 0])
    # At 6 a job of user 0 runs and none of user 1, whose job goes before the one of user 0 that came first.
    system = System(4, order="-active_jobs", backfill=False)
    assert simulate(three, system).start.tolist() == [0, 0, 9, 6, 12]
    assert not system.is_fair


def test_weights_that_cannot_be_charged_are_refused():
    with pytest.raises(ValueError, match="the weights are so large"):
        rates(jobs((0, 1, 1, 0)), System(4, fairshare=Fairshare(charges={"cores": 1e9})))


def test_values_of_users_in_a_tree():
    target = replace(TREE[3], target=30.0, bound="floor")
    fairshare = Fairshare((*TREE[:3], target))
    charges = [Charge(user, 0, 200, Fraction(cores)) for user, cores in (("alice", 6), ("bob", 2), ("carol", 2))]
    uses = Values(fairshare, ["alice", "bob", "carol"], charges, 0, 100, {})
    share, effective, factor, of_all, below, _ = uses.of("alice").values()
    assert share == 0.6 * (2 / 3)
    assert effective == pytest.approx(0.6 + (0.8 - 0.6) * 2 / 3)
    assert factor == of_all == math.exp2(-(effective / share))
    assert below == 0
    assert uses.of("carol")["fairshare_target"] == pytest.approx(10)
    assert sorted(uses.path, key=uses.key) == ["carol", "bob", "alice"]
    uses.fairshare = replace(fairshare, fair_share="tree")
    assert [uses.of(user)["fair_share"] for user in ("carol", "bob", "alice")] == [1, 2 / 3, 1 / 3]


def test_the_user_who_has_used_less_goes_first():
    # One core: user 0 runs 20 s, then one of each waits, his first; nothing is charged before it has run.
    workload = jobs((0, 1, 20, 0), (1, 1, 10, 0), (2, 1, 10, 1), (3, 1, 10, 1))
    assert simulate(workload, System(1, order="fairshare")).start.tolist() == [0, 40, 20, 30]
    assert simulate(workload, System(1, order="fcfs")).start.tolist() == [0, 20, 30, 40]
    shares = Fairshare([Share("0", 100), Share("1", 1)])
    assert simulate(workload, System(1, order="fairshare", fairshare=shares)).start.tolist() == [0, 30, 20, 40]


def test_users_are_found_by_their_names():
    workload = jobs((0, 1, 20, 0), (1, 1, 10, 0), (2, 1, 10, 1), names=("ann", "ben"))
    favoured = Fairshare([Share("ann", 10**9), Share("ben", 0)])
    system = System(1, order="fairshare", fairshare=favoured)
    assert simulate(workload, system).start.tolist() == [0, 20, 30]
    assert simulate(replace(workload, user_names=()), system).start.tolist() == [0, 30, 20]  # both are unknown


def test_starving_jobs_and_queue_priorities_go_before_shares():
    workload = jobs((0, 1, 20, 0), (1, 1, 10, 0), (2, 1, 10, 1))
    starving = System(1, [Queue(starvation=5)], order="fairshare")
    assert simulate(workload, starving).start.tolist() == [0, 20, 30]
    preferred = replace(workload, queue=[0, 1, 0])
    queues = [Queue(name="low"), Queue(name="high", priority=2)]
    assert simulate(preferred, System(1, queues, order="fairshare")).start.tolist() == [0, 20, 30]


def test_a_formula_has_the_share_of_a_user():
    workload = jobs((0, 1, 20, 0), (1, 1, 10, 0), (2, 1, 10, 1))
    shares = Fairshare([Share("0", 1), Share("1", 3)])
    assert simulate(workload, System(1, order="fairshare_perc", fairshare=shares)).start.tolist() == [0, 30, 20]


def test_how_far_use_is_from_shares():
    workload = jobs((0, 3, 100, 0), (0, 1, 100, 1), (100, 1, 1, 1))
    system = System(4, order="fairshare", fairshare=Fairshare(decay_time=10, decay_factor=0.9))
    found = share_uses(workload, simulate(workload, system), system)
    assert [each.name for each in found] == ["0", "1"]
    assert found[0] == ShareUse("0", is_user=True, share=0.5, use=pytest.approx(0.75), distance=pytest.approx(0.25))
    assert distance(found) == pytest.approx(0.25)
    summary = metrics.summary(workload, simulate(workload, system), system)
    assert summary["share_distance"] == pytest.approx(0.25)
    assert np.isnan(metrics.summary(workload, simulate(workload, system), System(4))["share_distance"])


def test_the_use_of_groups_is_that_of_their_users():
    workload = jobs((0, 1, 100, 0), (0, 1, 100, 1), (0, 2, 100, 2), (90, 1, 1, 2), names=("alice", "bob", "carol"))
    system = System(4, order="fairshare", fairshare=Fairshare(TREE, decay_time=10))
    found = {each.name: each for each in share_uses(workload, simulate(workload, system), system)}
    assert found["physics"].use == pytest.approx(0.5)
    assert not found["physics"].is_user
    assert found["physics"].distance == pytest.approx(0.1)


def test_the_metric_counts_core_seconds_as_the_order_does():
    rng = np.random.default_rng(5)
    n = 60
    workload = jobs(
        *zip(*(rng.integers(*edges, n).tolist() for edges in ((0, 99), (1, 5), (1, 40), (0, 3))), strict=True)
    )
    fairshare = Fairshare(decay_time=7, decay_factor=0.8)
    system = System(8, order="fairshare", fairshare=fairshare)
    schedule = simulate(workload, system)
    first, last = int(workload.submit.min()), int(workload.submit.max())
    relative = []
    for instant in range(first + 7, last + 1, 7):
        runs = zip(workload.user, schedule.start, schedule.end, workload.cores, strict=True)
        charges = [Charge(str(user), int(start), int(end), Fraction(int(c))) for user, start, end, c in runs]
        uses = Values(fairshare, [*map(str, range(3))], charges, first, instant, {}).use
        relative.append([uses[str(user),] / uses[()] for user in range(3)])
    found = share_uses(workload, schedule, system)
    assert [each.use for each in found] == pytest.approx(np.mean(relative, axis=0).tolist(), abs=0.02)
