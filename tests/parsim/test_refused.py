"""Systems that cannot be: each is refused with the path of what is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from parsim import QOS, Fairshare, Pool, Queue, Share, System, Throttle, Window
from parsim.model.node_types import NodeType

NAN, INF = float("nan"), float("inf")
CPU = NodeType("cpu", 4, 16, {"memory": 64})
GPU = NodeType("gpu", 2, 16, {"gpus": 4, "memory": 256}, frozenset({"a100"}))
WORK = {"name": "work", "partition": 12, "partition_nodes": {"cpu": 4, "gpu": 2}}
LEARN = Queue("learn", partition=2, partition_nodes={"gpu": 1}, node_types=["gpu"])


def queue(**about: Any) -> dict[str, Any]:
    return {"queues": [Queue(**about)]}


def divided(*sizes: int, **about: Any) -> dict[str, Any]:
    return {"queues": [Queue(partition=size) for size in sizes], "mode": "partitioned", **about}


def hybrid(*pool: Any, partition: int = 2, **about: Any) -> dict[str, Any]:
    return divided(partition, mode="hybrid", pool=Pool(*pool, **about))


def fair(*shares: Share, **about: Any) -> dict[str, Any]:
    return {"fairshare": Fairshare(shares, **about)}


def limits(*throttles: Throttle, **about: Any) -> dict[str, Any]:
    return {"throttles": throttles, **about}


def tiers(**changes: Any) -> dict[str, Any]:
    return {"queues": [Queue("low", preempted="suspend"), Queue("high", tier=1)], **changes}


def kept(walltime: int = 5, users: tuple[int, ...] = (), **changes: Any) -> dict[str, Any]:
    return {"windows": [Window(0, 9, walltime=walltime, users=users)], **changes}


def typed(**changes: Any) -> dict[str, Any]:
    return {"cores": 96, "node_types": [CPU, GPU], **changes}


def chosen(**changes: Any) -> dict[str, Any]:
    return {"node_types": [NodeType("all", 4, 1)], "reserve": "queue_nodes", **changes}


def owned(work: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    types = [NodeType("cpu", 4, 2), NodeType("gpu", 3, 2, {"gpus": 1})]
    queues = [Queue(**WORK | (work or {})), LEARN]  # type: ignore[arg-type]
    return {"cores": 14, "queues": queues, "mode": "partitioned", "node_types": types, **changes}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"cores": 0}, "cores"),
        ({"cores_per_node": 0}, "cores_per_node: 0 is not a whole number from 1 up"),
        ({"mode": "other"}, "mode"),
        *(
            ({"mode": "multiqueue", "class_limits": limits}, "class_limits")
            for limits in ((0, 5), (5, 5), (7, 3), (-1,))
        ),
        ({"order": "eligible_time / bogus"}, "bogus"),
        ({"order": "__import__('os').system('true')"}, "order"),
        ({"order": "eligible_time * 1e999"}, "order"),
        ({"order": "nan * walltime"}, "order: .*'nan' is unknown"),
        ({"held_jobs": "x"}, "held_jobs: 'x' is neither pass nor reserve"),
        ({"held_jobs": "reserve", "reserve": "queues"}, "reserve: queues goes with held_jobs pass only"),
        ({"reserve": "x"}, "reserve: 'x' is none of cores, nodes, queues, queue_nodes, nothing"),
        ({"cores": 2**24 + 1, "reserve": "nodes"}, "reserve: nodes are told apart up to 16777216 cores"),
        *(({"reservation_depth": depth}, "reservation_depth") for depth in (0, 1.5)),
        ({"reservation_depth": 2, "reserve": "nodes"}, "reservation_depth"),
        # queues
        ({"queues": []}, "queues"),
        ({"queues": [Queue(), Queue(cores=(5, 9))]}, r"queues\[1\].cores: no job can enter: from 5 up, of 4"),
        (queue(cores=(3, 2)), r"queues\[0\].cores"),
        (queue(walltime=(5, 5)), r"queues\[0\].walltime: no job can enter"),
        *((queue(priority=value), r"queues\[0\].priority") for value in (NAN, INF, 0, -1, 10**400, "high")),
        (queue(max_run=0), r"queues\[0\].max_run"),
        (queue(starvation=-1), r"queues\[0\].starvation"),
        (queue(partition=-1), r"queues\[0\].partition"),
        (queue(partition=2, reservation=True), r"queues\[0\].partition"),
        (queue(tier=-1), "tier: -1 is negative"),
        (queue(preempted="kill"), "preempted: 'kill' is none of off, suspend, checkpoint, requeue"),
        (tiers(mode="multiqueue"), "mode: queues of different tiers are simulated with mode shared, not multiqueue"),
        (
            tiers(reserve="nodes"),
            "reserve: queues of different tiers are simulated with reserve cores, nothing, or nodes",
        ),
        (tiers(held_jobs="reserve"), "held_jobs: queues of different tiers"),
        (tiers(reservation_depth=2), "reservation_depth: queues of different tiers"),
        # partitions and the pool
        (divided(3), "add up"),
        (
            divided(queues=[Queue("a", partition=2), Queue("a", partition=2)]),
            r"queues\[1\].name: 'a' is also that of another part",
        ),
        (divided(4, mode="hybrid"), "pool"),
        (hybrid(2, partition=3), "add up"),
        *((hybrid(2, threshold), "threshold") for threshold in (INF, NAN, -1)),
        (hybrid(-2, partition=6), "pool.cores"),
        (hybrid(2, placement="x"), "placement"),
        (hybrid(2, entry="x"), "pool.entry"),
        # throttles and QOS
        (limits(Throttle()), r"throttles\[0\]"),
        (limits(Throttle(max_run=0)), r"throttles\[0\].max_run"),
        (limits(Throttle(name="ann", max_run=1)), r"throttles\[0\].name"),
        (limits(Throttle(queue=1, max_run=1)), r"throttles\[0\].queue"),
        (limits(Throttle(max_run=1), Throttle(max_run_cores=1)), r"throttles\[1\]"),
        (limits(Throttle(max_run_resources={"gpus": 0})), r"\[0\].max_run_resources.gpus: 0 is no whole number"),
        (limits(Throttle(max_run_resources={"cores": 4})), r"\[0\].max_run_resources.cores: cores have"),
        (
            typed(throttles=[Throttle(max_run_resources={"boards": 1})]),
            r"max_run_resources.boards: no node has any; nodes have gpus, memory",
        ),
        (limits(Throttle("qos", qos="a", max_run=1)), r"throttles\[0\].qos: 'a' goes with another each"),
        ({"qos": [QOS("")]}, r"qos\[0\].name: '' is no name"),
        ({"qos": [QOS("a"), QOS("a")]}, r"qos\[1\].name: 'a' is also that of another QOS"),
        ({"qos": [QOS("a", priority=NAN)]}, r"qos\[0\].priority: nan is not a finite number"),
        ({"qos": [QOS("a", target=0.5)]}, r"qos\[0\].target: 0.5 is no expansion factor"),
        ({"qos": [QOS("a", exempt=["max_jobs"])]}, r"qos\[0\].exempt: 'max_jobs' is none of all, max_run"),
        ({"qos": [QOS("a", usage_factor=-2)]}, r"qos\[0\].usage_factor: -2 is not"),
        # fairshare
        (fair(charges={"gpus": -1}), r"fairshare.charges.gpus: -1 is not a number"),
        (fair(charged="mean"), r"fairshare.charged: 'mean' is neither sum nor max"),
        (fair(decay_time=0), "_time"),
        (fair(decay_factor=1.5), "_factor"),
        (fair(fair_share="flat"), "fair_share"),
        (fair(Share("a", group="b")), "'b' is no group"),
        (fair(Share("a"), Share("a")), "is there twice"),
        (fair(Share("a", group="a")), "below 'a' itself"),
        (fair(Share("a", group="b"), Share("b", group="a")), "is below"),
        (fair(Share("a", -1)), "-1 is not a whole number"),
        (fair(Share("a", target=101)), "101 is not a percentage"),
        (fair(Share("a", bound="roof")), "'roof' is none of"),
        (fair(Share("unknown")), "is no name"),
        # windows for short jobs
        (kept(walltime=0), r"windows\[0\].walltime: 0 is not a number from 1 up"),
        (kept(users=(1,)), r"windows\[0\].walltime: a window is for short jobs, for a queue or"),
        (kept(mode="multiqueue"), "short jobs is not simulated with multiple-queue backfil"),
        # types of nodes
        (typed(cores=95), "nodes of 96 cores, on a machine of 95"),
        (typed(mode="partitioned"), "own 0 nodes of cpu, of 4"),
        (typed(reserve="nodes", held_jobs="reserve"), "held_jobs: limits are planned beside cores alone"),
        (
            typed(reserve="nodes", cores=2**25, node_types=[NodeType("a", 2**15, 2**10)]),
            "told apart up to 16777216",
        ),
        (typed(node_types=[CPU, CPU]), "also that of another type"),
        (typed(queues=[Queue(node_types=["big"])]), "'big' is none of cpu, gpu"),
        (typed(node_types=[NodeType("a", 0, 96)]), "0 is no whole number from 1"),
        (typed(node_types=[NodeType("a", 1, 96, weight=True)]), "True is no whole number from 0"),
        (typed(node_types=[NodeType("a", 1, 96, {"cores": 3})]), "a place of their own"),
        (chosen(held_jobs="reserve"), "goes with held_jobs pass"),
        (chosen(node_types=()), "describe them as types"),
        (owned({"reservation": True, "partition": 0}), "no job spans partitions"),
        (owned(mode="hybrid", pool=Pool()), "nodes of several types have no common pool: partitioned or shared"),
        (owned({"partition_nodes": {"cpu": 6}}), "own 1 nodes of gpu, of 3"),
        (owned({"partition": 11}), "partition_nodes: nodes of 12 cores, for 11"),
        (owned({"partition_nodes": {"cpus": 2}}), "partition_nodes: 'cpus' is none of cpu, gpu"),
        (owned(mode="multiqueue"), "mode: multiple-queue backfilling plans cores alone"),
    ],
)
def test_a_system_that_cannot_be_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        System(**{"cores": 4, **arguments})
