from contextlib import suppress

import numpy as np
import pytest

from qconf.config import ConfigError, dump, parse
from qconf.explore import fields
from tests.qconf.explore.served import SITE

BASE = parse(SITE)
WORK = np.array([1.0, 2.0, 1.0])


def test_a_field_has_the_value_of_the_yaml_and_what_it_was():
    config = fields.changed(BASE, {"queues.medium.max_run": "5"}, WORK)
    medium = fields.document(config, BASE)["queues"][1]["fields"]
    found = {each["key"]: each for each in medium}
    assert (found["max_run"]["value"], found["max_run"]["was"]) == ("5", "2")
    assert (found["walltime"]["low"], found["walltime"]["high"]) == ("2h", "12h")
    assert (found["cores"]["low"], found["cores"]["high"]) == ("1", "32")
    assert "nodes" not in found
    assert "tier" not in found


def test_differences_name_paths_and_both_values():
    config = fields.changed(BASE, {"queues.medium.max_run": "", "order": "sjf", "machine.cores": "128"}, WORK)
    assert fields.differences(BASE, config) == [
        {"path": "machine.cores", "before": "64", "after": "128"},
        {"path": "order", "before": "fcfs", "after": "sjf"},
        {"path": "queues.medium.max_run", "before": "2", "after": ""},
    ]
    assert fields.differences(BASE, BASE) == []
    turned = fields.changed(BASE, {}, WORK, order=["wide", "short", "medium"])
    assert fields.differences(BASE, turned) == [
        {"path": "queues", "before": "short, medium, wide", "after": "wide, short, medium"}
    ]
    without = parse(dump(BASE).replace("name: wide", "name: broad"))
    assert fields.differences(BASE, without)[:2] == [
        {"path": "queues.wide", "before": "there", "after": "removed"},
        {"path": "queues.broad", "before": "", "after": "new"},
    ]
    limited = BASE.replace(throttles=parse(f"{SITE}throttles: [{{each: user, max_run: 3}}]").throttles)
    assert fields.differences(BASE, limited) == [
        {"path": "throttles", "before": "", "after": "{each: user, max_run: 3}"}
    ]


@pytest.mark.parametrize("mode", ["partitioned", "hybrid"])
def test_a_machine_that_is_divided_begins_with_parts_by_the_work_of_queues(mode):
    config = fields.changed(BASE, {"mode": mode}, WORK)
    assert parse(dump(config)) == config
    (bar,) = fields.document(config, BASE)["bars"]
    sizes = {each["name"]: each["size"] for each in bar["parts"]}
    assert sum(sizes.values()) == bar["total"] == 64
    assert sizes["medium"] > sizes["short"]
    assert ("pool" in sizes) == (mode == "hybrid")
    assert fields.changed(config, {"mode": "shared"}, WORK).mode == "shared"


OF_NODES = parse(
    SITE.replace(
        "cores: 64}",
        "cores: 64}\nnodes: [{name: cpu, count: 3, cores: 16}, {name: gpu, count: 1, cores: 16, gpus: 4}]",
    ).replace("max_run: 2", "max_run: 2, nodes: [cpu]")
)


def test_the_cores_of_a_machine_follow_from_its_nodes():
    config = fields.changed(OF_NODES, {"nodes.gpu.count": "3"}, WORK)
    assert (config.machine.cores, config.nodes[1].count) == (96, 3)
    assert [each["path"] for each in fields.differences(OF_NODES, config)] == ["nodes.gpu.count"]


def test_parts_of_nodes_of_several_types_are_bars_of_each_type():
    config = fields.changed(OF_NODES, {"mode": "partitioned"}, WORK)
    cpu, gpu = fields.document(config, OF_NODES)["bars"]
    assert parse(dump(config)) == config
    assert [(each["name"], each["size"]) for each in cpu["parts"]] == [("short", 1), ("medium", 1), ("wide", 1)]
    assert [each["name"] for each in gpu["parts"]] == ["short", "wide"], "medium may not use it"
    assert [sum(each["size"] for each in bar["parts"]) for bar in (cpu, gpu)] == [3, 1]
    given = {"queues.short.partition": "{cpu: 2}", "queues.medium.partition": "{cpu: 1}"}
    given["queues.wide.partition"] = "{gpu: 1}"
    assert fields.document(fields.changed(config, given, WORK), OF_NODES)["bars"][0]["parts"][0]["size"] == 2
    with pytest.raises(ConfigError, match="no common pool"):
        fields.changed(OF_NODES, {"mode": "hybrid"}, WORK)


RICH = f"""{SITE}throttles: [{{each: user, max_run: 3}}, {{max_run: 9}}]
shares: [{{name: ann, shares: 2}}]
qos: [{{name: fast, priority: 5}}]
hours: [{{queue: short, begin: "08:00", end: "18:00", max_run: 1}}]
fairshare: {{decay_time: 2d}}
licences: {{fluent: 3}}
fixed: [queues.short.max_run]
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (SITE, RICH),
        (RICH, SITE),
        (RICH, RICH.replace("max_run: 9", "max_run: 8").replace("2d", "3d").replace("shares: 2", "shares: 4")),
        (SITE, SITE.replace("name: wide", "name: a.broad").replace("[1, 16]", "[1, 17]")),
        (SITE, dump(fields.changed(BASE, {"mode": "hybrid"}, WORK, order=("wide", "short", "medium")))),
        (dump(OF_NODES), dump(fields.changed(OF_NODES, {"mode": "partitioned"}, WORK))),
        (dump(OF_NODES), dump(OF_NODES).replace("gpu, c", "new, c").replace("t: 3", "t: 4").replace("64", "80")),
    ],
)  # fmt: skip
def test_each_difference_can_be_taken_back(old, new):
    base, config = parse(old), parse(new)
    for count in range(30):
        found = fields.differences(base, config)
        if not found:
            break
        for each in found:
            with suppress(ConfigError):  # what needs another one first
                config = fields.restored(config, base, each["path"])
        assert len(fields.differences(base, config)) < len(found), (count, found)
    assert config == base


@pytest.mark.parametrize(
    ("order", "terms"),
    [
        ("fcfs", []),
        ("2 * eligible_time + queue_priority", [(2.0, "eligible_time"), (1.0, "queue_priority")]),
        (
            "-walltime + ncpus * 3 - 0.5 * (ncpus * walltime)",
            [(-1.0, "walltime"), (3.0, "ncpus"), (-0.5, "ncpus * walltime")],
        ),
        ("(eligible_time + 1) ** 2", [(1.0, "(eligible_time + 1) ** 2")]),
    ],
)
def test_an_order_is_a_sum_of_points(order, terms):
    assert fields.terms(order) == terms
    if terms:
        assert fields.terms(fields.formula(terms)) == terms
        parse(SITE.replace("order: fcfs", f'order: "{fields.formula(terms)}"'))


def test_a_mistake_has_its_path():
    with pytest.raises(ConfigError) as found:
        fields.changed(BASE, {"queues.medium.max_run": "-1", "queues.short.cores": "[5, 2]"}, WORK)
    assert {each.path for each in found.value.problems} == {"queues[1].max_run", "queues[0].cores"}
