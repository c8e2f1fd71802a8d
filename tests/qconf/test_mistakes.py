"""Mistakes in what a configuration says of nodes, limits, QOS, tiers, hours and shortpools: one message each."""

from __future__ import annotations

from functools import partial

import pytest

from qconf.config import ConfigError, parse
from qconf.config.models import PARTS, Model, SiteFields
from tests.qconf import test_owned_nodes, test_qos, test_throttles, test_tiers
from tests.qconf.history import test_chunks

TYPES, OWNED, QOS, THROTTLES = (each.SITE for each in (test_chunks, test_owned_nodes, test_qos, test_throttles))
TIERS = test_tiers.TEXT
GPUS = "nodes:\n  - {name: gpu, count: 4, cores: 16, memory: 64gb, gpus: 4}\n"
PLAIN = "machine: {cores: 8}\nqueues: [{name: all}]\n"
WHOLE = PLAIN.replace("cores: 8", "cores: 8, cores_per_node: 2, whole_nodes: true")
DIVIDED = (
    PLAIN.replace("name: all}", "name: a, partition: 4, tier: 1}, {name: b, partition: 4}") + "mode: partitioned\n"
)
FEW = f"{PLAIN}nodes: [{{name: cpu, count: 2, cores: 2}}, {{name: gpu, count: 2, cores: 2, gpus: 1}}]\n"


def edit(text: str, old: str, new: str) -> str:
    assert old in text
    return text.replace(old, new, 1)


def added(text: str, line: str) -> str:
    return f"{text}{line}\n"


typed, owned, qos = (partial(edit, text) for text in (TYPES, OWNED, QOS))
plain, tiers = (partial(added, text) for text in (PLAIN, TIERS))


def down(of: str, text: str = TYPES) -> str:
    return added(text, f"downtime: [{{begin: 2026-03-01, end: 2026-03-02, {of}}}]")


def short(pool: str, text: str = WHOLE) -> str:
    return added(text, f"shortpools: [{pool}]")


def throttle(line: str, text: str = THROTTLES) -> str:
    return added(text, f"  - {line}")


def resources(limits: str) -> str:
    return throttle(f"{{queue: short, max_run_resources: {limits}}}", GPUS + THROTTLES)


def hours(of: str) -> str:
    return plain(f"hours: [{{queue: {of}}}]")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        # types of nodes
        (typed("cores: 192}", "cores: 193}"), "have 192 cores, the machine 193"),
        (typed("name: gpu", "name: cpu"), "has this name already"),
        (typed("boards: 1", "gpus: 1"), "gpus has a key of its own"),
        (typed("walltime: [0, 48h]", "nodes: [gpus]"), "gpus: no nodes have this name, did you mean gpu"),
        (f"{TYPES}held_jobs: reserve\n", "nodes of several types go with held_jobs: pass only: limits are planned"),
        (typed("cores: 192}", "cores: 192, cores_per_node: 32, whole_nodes: true}"), "go with whole_nodes: false only"),
        (typed("memory: 192gb", "memory: 192 pounds"), "memory"),
        (down("cores: 8"), "out of service whole: write nodes, or types like {cpu: 1}"),
        (down("types: {gpus: 1}"), "gpus: no nodes have this name, did you mean gpu"),
        *((down(f"types: {{gpu: {count}}}"), "gpu: from 1 to the 2 that there are") for count in (0, 3)),
        (down("types: {gpu: many}"), "how many nodes of each type by name, like {gpu: 2}"),
        (down("types: {gpu: 1}, nodes: [0]"), "and nodes are given: leave one out"),
        (down("nodes: [9]"), "there is no node 9: they are counted from 0 to 5"),
        (down("types: {gpu: 1}", PLAIN), "the site has no types of nodes"),
        # partitions of them
        (
            owned("{gpu: 1}, nodes", "{gpu: 5}, nodes"),
            "queues[1].partition = {gpu: 5}: 5 nodes of gpu, of which there are 2",
        ),
        (owned("{gpu: 1}, nodes", "{gpus: 1}, nodes"), "gpus: no nodes have this name, did you mean gpu"),
        (owned("{cpu: 4, gpu: 1}", "{cpu: 3, gpu: 1}"), "partitions have 3 nodes of cpu, of 4: 1 missing"),
        (owned("nodes: [gpu]", "nodes: [cpu]"), "has gpu, which its jobs may not use: they are bound to cpu"),
        (owned("{gpu: 1}, nodes", "2, nodes"), "write how many of each, like {cpu: 1}"),
        (owned("{gpu: 1}, nodes", "{gpu: x}, nodes"), "not allowed here: a whole number of cores"),
        (
            owned("gpu: 1}}\n  - {name: b, partition: {gpu: 1}", "gpu: 2}}\n  - {name: b, reservation: true"),
            "no job spans partitions where nodes are of several types",
        ),
        (owned("gpus: 4}", "gpus: 4, weight: -1}"), "nodes[1].weight = -1: not allowed here: a whole number from 0 to"),
        (owned("nodes: [gpu]", "partition_nodes: {gpu: 1}"), "no such key: partition takes them"),
        (
            down("partition: b, types: {cpu: 2}", OWNED),
            "the partition b has no such nodes: name types that it has",
        ),
        (down("partition: a, types: {gpu: 2}", OWNED), "the partition a has 1 of these nodes"),
        *(
            (owned("{name: a,", f"{{name: a, billing: '{billing}',"), "not allowed here: like 'CPU=1.0")
            for billing in ("CPU", "CPU=", "CPU=1..2", "CPU=.", "CPU=-1", "CPU=1,")
        ),
        # shortpools
        (short("{cores: 9, walltime: 2h}"), "shortpools[0].cores = 9: are more than the machine's 8"),
        (short("{cores: 3, walltime: 2h}"), "shortpools[0].cores = 3: not a whole number of nodes of 2 cores"),
        (short("{cores: 2}"), "shortpools[0].walltime: missing"),
        (short("{cores: 2, walltime: 0}"), "shortpools[0].walltime = 0: no job is as short"),
        (short("{cores: 2, walltime: 2h, days: []}"), "shortpools[0].days = []: are none"),
        (short("{cores: 2, walltime: 2h, begin: 8}"), "a time of the day like 08:00"),
        (
            short("{cores: 2, walltime: 2h, queue: all}"),
            "no such key; known are cores, types, walltime, days, begin, end",
        ),
        (short("{types: {gpu: 1}, walltime: 2h}", PLAIN), "the site has no types of nodes: write cores"),
        (short("{cores: 2, walltime: 2h}", FEW), "kept whole: write how many of each, like {cpu: 1}"),
        (short("{types: {gpu: 3}, walltime: 2h}", FEW), "gpu: from 1 to the 2 that there are"),
        (short("{types: {gup: 1}, walltime: 2h}", FEW), "gup: no nodes have this name, did you mean gpu"),
        (short("{types: {gpu: 1}, cores: 2, walltime: 2h}", FEW), "those of its types: leave one of the two out"),
        (short("{types: 1, walltime: 2h}", FEW), "how many nodes of each type by name"),
        # QOS
        (qos("name: free", "name: gold"), "qos[2].name = gold: gold stands in qos[0] too"),
        (qos("exempt: all", "exempt: [max_jobs]"), "qos[2].exempt = [max_jobs]: 'max_jobs' is none of all, max_run"),
        (
            qos("target: 1.5", "target: 0.5"),
            "qos[0].target = 0.5: not allowed here: an expansion factor, a number from",
        ),
        (qos("[long]", "[lng]"), "qos[0].queues = [lng]: no queue is called lng, did you mean long?"),
        (qos("groups: [staff]", "users: [ann]"), "qos[1].users = [ann]: ann stands in qos[0] too"),
        (qos("{qos: gold, ", "{qos: gld, "), "throttles[1].qos = gld: no QOS has this name, did you mean gold?"),
        (qos("{each: qos, ", "{each: qos, qos: silver, "), "has each: qos and qos"),
        (
            qos("priority: 100", "priority: high"),
            "qos[0].priority = high: not allowed here: a number from -1e10 to 1e10",
        ),
        (qos("exempt: all", "exemptions: all"), "qos[2].exemptions = all: no such key"),
        # throttles and the depth of reservations
        (
            throttle("{each: user, user: bob, max_run: 1}"),
            "throttles[4] = {each: user, user: bob, max_run: 1}: has each and user",
        ),
        (throttle("{queue: shrt, max_run: 1}"), "[4].queue = shrt: no queue has this name, did you mean short?"),
        (
            throttle("{each: account, queue: long, max_run: 1}"),
            "throttles[4].each = account: not allowed here: user, group or qos",
        ),
        (throttle("{group: staff}"), "limits nothing"),
        (throttle("{each: user, max_run_cores: 3}"), "throttles[1] is for each user too"),
        (
            throttle("{queue: long, max_run: 3, max_runs: 3}"),
            "throttles[4].max_runs = 3: no such key, did you mean max_run?",
        ),
        (resources("{gpu: 4}"), "[4].max_run_resources = {gpu: 4}: no node has gpu, did you mean gpus?"),
        (resources("{boards: 4}"), "no node has boards; nodes have gpus, memory; write it into nodes"),
        (resources("{gpus: 0}"), "max_run_resources = {gpus: 0}: not allowed here: limits of what nodes have"),
        (resources("{cores: 4}"), "cores have a limit of their own, max_run_cores"),
        (plain("reservation_depth: 3\nreserve: queues"), "reservation_depth = 3: goes with reserve: cores"),
        (
            plain("reserve: queues\nheld_jobs: reserve"),
            "line 3: reserve = queues: queues goes with held_jobs pass only",
        ),
        # tiers
        (DIVIDED, "queues of different tiers go with mode: shared"),
        (tiers("reserve: nodes"), "queues of different tiers go with reserve: cores or nothing"),
        (tiers("reservation_depth: 3"), "queues of different tiers go with reservation_depth: 1"),
        (down("cores: 8", TIERS), "downtime: is not simulated with queues of different tiers"),
        (
            tiers("nodes: [{name: cpu, count: 4, cores: 4}]\nreserve: queues"),
            "queues of different tiers go with reserve: cores, nothing or nodes",
        ),
        (edit(TIERS, "requeue", "kill"), "off, suspend, checkpoint or requeue"),
        (edit(TIERS, "tier: 1", "tier: -1"), "a whole number from 0 to 65533"),
        # hours, licences and downtimes
        (hours("al, begin: 08:00, end: 18:00, max_run: 1"), "no queue has this name"),
        (hours("all, begin: 08:00, end: 08:00, max_run: 1"), "is its begin"),
        (hours("all, begin: 08:00, end: 18:00"), "limits nothing"),
        (hours("all, days: [], begin: 08:00, end: 18:00, max_run: 1"), "hours[0].days = []: are none"),
        (hours("all, begin: 8, end: 18:00, max_run: 1"), "a time of the day like 08:00"),
        (hours("all, days: [monday], begin: 08:00, end: 18:00, max_run: 1"), "a list of mon, tue"),
        (hours("all, begin: 08:00, end: 18:00, max_run_cores: 8, max_run: -1"), "a whole number from 0 up"),
        (hours("all, begin: 08:00, end: 18:00, max_run: 1, max_runs: 1"), "no such key, did you mean max_run"),
        *((plain(f"licences: {given}"), "like {matlab: 20}") for given in ("{matlab: -1}", "[matlab]")),
        (down("queue: all, users: [ann]", PLAIN), "leave one out"),
        (edit(down("cores: 8", PLAIN), "2026-03-02", "2026-03-01"), "is not after its begin 2026-03-01"),
        (edit(down("cores: 8", PLAIN), "2026-03-02", "2026-03-02T00:00Z"), "and the other none: write both alike"),
        # the routing queue and shares
        (plain("routing: all"), "the one that leads to the others needs its own"),
        (plain("shares: [{name: ann, group: staff}]"), "shares[0].group = staff: 'staff' is no group of the tree"),
        (plain("fairshare: {decay_time: 0}"), "fairshare.decay_time = 0: is at least a second"),
    ],
)
def test_a_mistake_is_one_message(text: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(text)
    assert words in str(caught.value)
    assert len(caught.value.problems) == 1


@pytest.mark.parametrize("part", [part for part in PARTS if part not in ("licences", "strategies")])
def test_a_mistake_in_any_key_says_what_is_allowed(part: str) -> None:
    annotation = str(SiteFields.model_fields[part].annotation)
    model = next(each for each in Model.__subclasses__() if each.__name__ in annotation)
    rest = "".join(line for line in PLAIN.splitlines(keepends=True) if not line.startswith(part))
    for key in model.model_fields:
        item = f"{{{key}: [[[1]]]}}"
        with pytest.raises(ConfigError) as caught:
            parse(f"{rest}{part}: {f'[{item}]' if annotation.startswith('tuple') else item}\n")
        message = next(problem.message for problem in caught.value.problems if problem.path.endswith(key))
        assert not message.endswith(": "), key
