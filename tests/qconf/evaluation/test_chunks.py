"""Jobs of chunks that a configuration would never start."""

import pytest

from parsim import Workload
from parsim.model.node_types import Chunk
from qconf.config import ThrottleConfig, parse
from qconf.evaluation.feasibility import never_start

SITE = """
machine: {name: m, cores: 256}
nodes:
  - {name: cpu, count: 4, cores: 32, memory: 64gb}
  - {name: gpu, count: 3, cores: 32, memory: 64gb, gpus: 4}
  - {name: big, count: 1, cores: 32, memory: 512gb}
queues:
  - {name: a, cores: [1, 64]}
  - {name: b, cores: [1, 64]}
"""
BASE = parse(SITE)
GPU = Chunk(1, 8, {"gpus": 1, "memory": 8192})
#: Queue a has asked for one GPU at most, queue b for two chunks of a quarter of a terabyte.
JOBS = Workload(
    [0, 1, 2],
    [8, 16, 4],
    [9, 9, 9],
    [9, 9, 9],
    queue=[0, 1, 1],
    request=[0, 1, -1],
    requests=[(GPU,), (Chunk(2, 8, {"memory": 2**18}),)],
)


def divided(*owned, **changes):
    return BASE.with_owned(owned, **changes)


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (BASE, None),
        (divided({"cpu": 2, "gpu": 2}, {"cpu": 2, "gpu": 1, "big": 1}), None),
        # The widest jobs of a, of 64 cores, are on two nodes: eight GPUs.
        (
            divided({"cpu": 2, "gpu": 1}, {"cpu": 2, "gpu": 2, "big": 1}),
            "jobs of a that ask for more than 4 chunks of 8 cores, 1 gpus, 8 GiB memory would never start",
        ),
        (
            divided({"cpu": 2, "gpu": 2, "big": 1}, {"cpu": 2, "gpu": 1}),
            "jobs of b that ask for chunks of 8 cores, 256 GiB memory would never start",
        ),
        (
            BASE.replace(throttles=(ThrottleConfig(queue="a", max_run_resources={"gpus": 6}),)),
            "jobs of a that ask for more than 6 chunks of 8 cores, 1 gpus, 8 GiB memory would never start",
        ),
        (BASE.replace(throttles=(ThrottleConfig(each="user", max_run_resources={"gpus": 8}),)), None),
        (
            BASE.with_queues([BASE.queues[0].model_copy(update={"nodes": ("cpu", "big")}), BASE.queues[1]]),
            "jobs of a that ask for chunks of 8 cores, 1 gpus, 8 GiB memory would never start",
        ),
    ],
)
def test_chunks_that_would_never_start_are_found(other, words):
    assert never_start(BASE, other, JOBS) == ([] if words is None else [words])
    assert never_start(BASE, other) == []  # by their cores all do
    assert never_start(other, other, JOBS) == []


def test_a_queue_that_can_start_them_is_enough():
    site = parse(
        SITE.replace("b, cores: [1, 64]", "b, cores: [65, 128]").replace(
            "a, cores: [1, 64]", "a, cores: [1, 64], walltime: [0, 2h]"
        )
    )
    first, second = site.queues

    def split(longest):
        """Jobs of a up to an hour may go to a queue without GPUs, or up to `longest` to one with them."""
        short = {"name": "short", "nodes": ("cpu",), "walltime": (0, 3600)}
        parts = [
            short,
            {"name": "any", "walltime": (0, longest)},
            {"name": "long", "nodes": ("cpu",), "walltime": (3600, 7200)},
        ]
        return site.with_queues([*(first.model_copy(update=part) for part in parts), second])

    assert never_start(site, split(7200), JOBS) == []
    (words,) = never_start(site, split(5000), JOBS)
    assert words.startswith("jobs of long that ask for chunks of 8 cores, 1 gpus")


def test_cores_that_are_kept_for_gpus_are_none_of_plain_chunks():
    jobs = Workload([0], [64], [9], [9], queue=[0], request=[0], requests=[(Chunk(2, 32, {"memory": 1024}),)])
    only = BASE.with_queues([BASE.queues[0].model_copy(update={"nodes": ("gpu",)}), BASE.queues[1]])
    keeps = only.replace(nodes=[each.model_copy(update={"kept_per_gpu": 2 * (each.gpus > 0)}) for each in only.nodes])
    assert len(never_start(only, keeps, jobs)) == 1
    assert not never_start(keeps, only, jobs)
    parts = ({"gpu": 3}, {"cpu": 4, "big": 1})
    assert not never_start(only, only.with_owned(parts), jobs)
    assert len(never_start(only, keeps.with_owned(parts), jobs)) == 1


def test_a_queue_that_admits_more_chunks_than_its_partition_holds_is_said():
    config = divided({"cpu": 2, "gpu": 2}, {"cpu": 2, "gpu": 1, "big": 1})
    wide = [queue.model_copy(update={"cores": (1, 128)}) for queue in config.queues]
    words = "jobs of a that ask for more than 8 chunks of 8 cores, 1 gpus, 8 GiB memory would never start"
    assert never_start(BASE.with_queues(wide), config, JOBS) == []
    assert never_start(BASE.with_queues(wide), config.with_queues(wide), JOBS) == [words]
