"""Types of nodes from `pbsnodes -av`, and queues that are bound to some of them."""

import json
import re
from copy import deepcopy
from dataclasses import replace

import pytest

from qconf.config import dump, parse
from qconf.errors import ExportError, InputError
from qconf.export import exporter
from qconf.export.nodes import Node, read_nodes
from qconf.export.pbs.init import derive
from qconf.export.pbs.server import Scheduler, Server
from tests.qconf.export.pbs.model import PbsServer, commands
from tests.qconf.export.sites import FRESH, pbs, pbs_files

SERVER = """\
create resource gpunode type = boolean, flag = h
create resource site type = string_array, flag = h
create queue cpu queue_type = Execution, enabled = True, started = True
create queue gpu queue_type = Execution, enabled = True, started = True
create queue large queue_type = Execution, enabled = True, started = True
set server scheduling = True
set server default_queue = cpu
"""
STRICT = "strict_ordering: True ALL\n"
LINE = f'{STRICT}resources: "ncpus, mem, arch, host, vnode, ngpus, site"\n'
PLAIN = {"arch": "linux", "ncpus": "32", "mem": "196608mb"}
GPU = {**PLAIN, "ngpus": "4", "gpunode": "True"}
LARGE = {**PLAIN, "mem": "2tb", "site": "large,test"}


def nodes_of(tmp_path, groups, attributes=None, *, as_json=False):
    """Write and read what pbsnodes prints of nodes, by prefix of their names: how many, and what each has."""
    found = {f"{prefix}{i}": held for prefix, (count, held) in groups.items() for i in range(1, count + 1)}
    more = {name: (attributes or {}).get(name, {}) for name in found}
    if as_json:
        held = {name: {**more[name], "resources_available": resources} for name, resources in found.items()}
        lines = [json.dumps({"timestamp": 1, "nodes": held})]
    else:
        lines = []
        for name, resources in found.items():
            held = {"state": "free", **more[name]} | {f"resources_available.{key}": of for key, of in resources.items()}
            lines += [name, *(f"     {key} = {of}" for key, of in held.items()), ""]
    (tmp_path / "nodes").write_text("\n".join(lines) + "\n")
    return read_nodes(str(tmp_path / "nodes"))


def found_of(tmp_path, groups, statements="", line=LINE, attributes=None, **how):
    (tmp_path / "sched_config").write_text(line)
    nodes = nodes_of(tmp_path, groups, attributes, **how)
    return derive(Server.parse(SERVER + statements), nodes=nodes, scheduler=Scheduler.read(tmp_path / "sched_config"))


def bound(found):
    return {queue.name: queue.nodes for queue in found.config.queues}


THREE = {"c": (4, PLAIN), "g": (2, GPU), "m": (1, LARGE)}


@pytest.mark.parametrize("as_json", [False, True])
def test_three_types_and_the_queues_bound_to_them(tmp_path, as_json):
    statements = "set queue gpu default_chunk.gpunode = True\nset queue large default_chunk.site = large\n"
    found = found_of(tmp_path, THREE, statements, as_json=as_json)
    config = found.config
    alike = {"cores": 32, "memory": 196608}
    assert [each.model_dump(exclude_defaults=True) for each in config.nodes] == [
        {"name": "c", "count": 4, **alike, "hosts": "c[1-4]"},
        {"name": "g", "count": 2, **alike, "gpus": 4, "features": ("gpunode",), "hosts": "g[1-2]"},
        {"name": "m", "count": 1, "cores": 32, "memory": 2 * 1024**2, "hosts": "m1"},
    ]
    assert bound(found) == {"cpu": None, "gpu": ("g",), "large": ("m",)}
    machine = config.machine
    assert (config.mode, config.reserve, machine.cores, machine.cores_per_node) == ("shared", "nodes", 7 * 32, 32)
    assert parse(dump(config)) == config
    assert not [each for each in found.warnings if not each.startswith("no Route queue")]


@pytest.mark.parametrize(
    ("statements", "older", "nodes"),
    [
        ("set queue cpu default_chunk.gpunode = False\n", "", {"cpu": ("c", "m"), "gpu": None, "large": None}),
        ("", "g1 g2", {"cpu": ("c", "m"), "gpu": ("g",), "large": ("c", "m")}),
        ("", "g2", {"cpu": ("c", "g", "m"), "gpu": ("g-2",), "large": ("c", "g", "m")}),
        ("set queue large default_chunk.site = nowhere\n", "", {"cpu": None, "gpu": None}),
    ],
)
def test_a_queue_that_keeps_off_nodes_and_the_older_attribute_of_nodes(tmp_path, statements, older, nodes):
    found = found_of(tmp_path, THREE, statements, attributes={key: {"queue": "gpu"} for key in older.split()})
    assert bound(found) == nodes
    assert ("large: left out, it may use no node" in found.warnings) == ("large" not in nodes)


def test_what_is_not_on_the_schedulers_line_does_not_count_and_is_named(tmp_path):
    statements = "set queue large default_chunk.site = large\n"
    found = found_of(tmp_path, THREE, statements, line='resources: "ncpus, mem"\n')
    assert [each.gpus for each in found.config.nodes] == [0, 0, 0]
    assert bound(found) == {"cpu": None, "gpu": None, "large": None}
    said = " ".join(found.warnings)
    assert "nodes: ngpus was left out: not on the scheduler's line resources:, so PBS does not schedule it" in said
    assert "default_chunk.site = large: site is not on the scheduler's line resources:" in said
    every = derive(Server.parse(SERVER), nodes=nodes_of(tmp_path, THREE))
    assert [each.gpus for each in every.config.nodes] == [0, 4, 0]
    assert any("sched_config says: give it with --scheduler; all were taken" in each for each in every.warnings)


def test_nodes_that_are_alike_stay_cores(tmp_path):
    slightly = {f"n{i}": (1, {**PLAIN, "mem": f"{196608 + 1000 * i}mb"}) for i in range(3)}
    found = found_of(tmp_path, slightly)
    assert (found.config.nodes, found.config.machine.cores) == ((), 96)
    found = found_of(tmp_path, {"g": (2, GPU)})
    assert [(each.count, each.gpus) for each in found.config.nodes] == [(2, 4)]
    queue = "set queue gpu default_chunk.gpunode = True\n"
    found = found_of(tmp_path, {"n": (2, GPU), "o": (2, {**GPU, "gpunode": "False"})}, queue)
    assert bound(found) == {"cpu": None, "gpu": ("n",), "large": None}


def test_own_resources_sizes_and_nodes_of_a_higher_priority_first(tmp_path):
    groups = {"a": (1, {**PLAIN, "boards": "2", "scratch": "400gb", "ncpus": "64"}), "b": (1, PLAIN)}
    found = found_of(tmp_path, groups, line='resources: "ncpus, mem, boards"\n', attributes={"b1": {"Priority": "9"}})
    assert [(each.name, each.cores, dict(each.resources)) for each in found.config.nodes] == [
        ("b", 32, {}),
        ("a", 64, {"boards": 2}),
    ]
    assert "nodes: scratch was left out: no whole number" in found.warnings


def test_bindings_without_nodes_are_named(tmp_path):
    found = derive(Server.parse(f"{FRESH}set queue workq default_chunk.gpunode = True\n"), cores=8)
    assert any("bound to nodes by gpunode, which print server does not show: give --nodes" in w for w in found.warnings)


SIZES = "".join(
    f"n{n}\n     resources_available.ncpus = 8\n     resources_available.mem = {size}\n\n\n\n"
    for n, size in ((1, "8gb"), (2, "much"))
)


@pytest.mark.parametrize(
    ("text", "message", "fix"),
    [
        ("{", "is no JSON", "Give the output of pbsnodes -av"),
        ("{}", "holds no nodes", "Give the output of pbsnodes -av"),
        ('{"nodes": {"n1": 3}}', r"nodes.n1 = 3: has no attributes", "Give the output of pbsnodes -av"),
        ('{"nodes": {"n1": {"resources_available": 3}}}', "are none by name", "Give the output of pbsnodes -av"),
        (
            SIZES,
            *("nodes, line 7: n2: resources_available.mem = 'much': is no size", "Write a size like 263842748kb"),
        ),
    ],
)
def test_what_is_none_of_pbsnodes(tmp_path, text, message, fix):
    (tmp_path / "nodes").write_text(text)
    with pytest.raises(InputError, match=message) as raised:
        derive(Server.parse(FRESH), nodes=read_nodes(str(tmp_path / "nodes")))
    assert fix in str(raised.value)


def test_queues_of_a_divided_machine_that_share_nodes_are_bound(tmp_path):
    qlist = [{**PLAIN, "Qlist": text} for text in ("cpu", "cpu,gpu", "gpu,large")]
    groups = {name: (1, each) for name, each in zip("abc", qlist, strict=True)}
    statements = "".join(f"set queue {name} default_chunk.Qlist = {name}\n" for name in ("cpu", "gpu", "large"))
    line = LINE.replace("site", "site, Qlist")
    found = found_of(tmp_path, groups, statements, line)
    assert bound(found) == {"cpu": ("a", "b"), "gpu": ("b", "c"), "large": ("c",)}
    parted = {name: (1, {**PLAIN, "Qlist": queue}) for name, queue in zip("abc", ("cpu", "gpu", "large"), strict=True)}
    found = found_of(tmp_path, parted, statements, line)
    assert (found.config.mode, found.config.nodes) == ("partitioned", ())
    parted["c"] = (1, {**GPU, "Qlist": "large"})
    found = found_of(tmp_path, parted, statements, line)
    assert bound(found) == {"cpu": ("a",), "gpu": ("b",), "large": ("c",)}


def test_a_queue_beside_a_route_and_bound_to_no_node_may_use_any(tmp_path):
    """No route leads there, users name it: PBS places them on every node that has what they ask for."""
    statements = "set queue cpu default_chunk.Qlist = cpu\ncreate queue auto\nset queue auto queue_type = Route\n"
    statements += "set queue auto route_destinations = large\nset queue auto route_destinations += cpu\n"
    statements += "set queue auto enabled = True\nset queue auto started = True\nset server default_queue = auto\n"
    statements += "set queue large default_chunk.Qlist = cpu\n"
    groups = {"a": (2, PLAIN), "b": (3, {**PLAIN, "Qlist": "cpu"})}
    found = found_of(tmp_path, groups, statements, LINE.replace("site", "site, Qlist"))
    assert bound(found) == {"cpu": ("b",), "gpu": None, "large": ("b",)}
    alone = found_of(tmp_path, {"b": (3, {**PLAIN, "Qlist": "cpu"})}, statements, LINE.replace("site", "site, Qlist"))
    assert {queue.name for queue in alone.config.queues} == {"cpu", "gpu", "large"}


def test_nodes_that_are_given_whole_and_others(tmp_path):
    alone = {f"g{i}": {"sharing": "default_exclhost"} for i in (1, 2)}
    for more, queues in (("", []), ("set server resources_default.place = scatter:excl\n", ["cpu", "gpu", "large"])):
        config = found_of(tmp_path, {"c": (4, PLAIN), "g": (2, PLAIN)}, more, attributes=alone).config
        assert [(each.name, each.count, each.exclusive) for each in config.nodes] == [("c", 4, False), ("g", 2, True)]
        assert not config.machine.whole_nodes
        assert [queue.name for queue in config.queues if queue.exclusive] == queues
    alone |= {f"c{i}": {"sharing": "force_excl"} for i in (1, 2, 3, 4)}
    config = found_of(tmp_path, {"c": (4, PLAIN), "g": (2, GPU)}, attributes=alone).config
    assert [each.exclusive for each in config.nodes] == [True, True]


def test_sharing_that_is_not_simulated_as_it_is(tmp_path):
    odd = {"c1": {"sharing": "ignore_excl"}, "c2": {"sharing": "ignore_excl"}, "g1": {"sharing": "exclusive"}}
    found = found_of(tmp_path, {"c": (3, PLAIN), "g": (2, GPU)}, attributes=odd)
    first, second = (each for each in found.warnings if "sharing" in each)
    assert first.startswith("nodes c[1-2]: sharing = ignore_excl: PBS lets jobs that ask for excl share them")
    assert second == "nodes g1: sharing = exclusive: PBS has no such value: taken as default_shared"


def test_queues_whose_jobs_have_nodes_alone_need_the_nodes():
    found = derive(Server.parse(f"{FRESH}set queue workq resources_default.place = scatter:excl\n"), cores=8)
    assert any(each.startswith("workq: jobs have nodes alone by resources_default.place") for each in found.warnings)


@pytest.mark.parametrize(
    ("now", "of_server", "exclusive", "wanted"),
    [
        ("scatter", "", "true", "scatter:excl"),
        ("pack:shared", "", "true", "pack:excl"),
        ("exclhost", "", "true", "exclhost"),
        ("scatter:excl", "", "false", "scatter"),
        ("excl", "", "false", None),
        ("", "excl", "false", "free"),
        ("", "", "false", None),
    ],
)
def test_the_default_place_of_a_queue(now, of_server, exclusive, wanted):
    server = PbsServer(FRESH)
    server.load("create queue gpu queue_type = Execution, enabled = True, started = True")
    server.load(f"set queue gpu resources_default.place = {now}" if now else "")
    server.load(f"set server resources_default.place = {of_server}" if of_server else "")
    before, config = server.printed(), parse(SITE.replace("exclusive: true", f"exclusive: {exclusive}"))
    files = pbs_files(config, current=before, nodes=held_by(server, THREE))
    server.load(files["queues.qmgr"])
    assert server.queues["gpu"].get("resources_default.place") == wanted


def test_nodes_that_are_not_shared_as_they_are_simulated_are_named():
    text = SITE.replace("gpus: 4,", "gpus: 4, exclusive: true,")
    given = held_by(PbsServer(FRESH), THREE)

    def notes(text, nodes=None):
        return exporter("pbs")(nodes=nodes, current=Server.parse(FRESH)).export(parse(text)).notes

    whole = [replace(node, exclusive=node.name[0] == "g") for node in given]
    for nodes, named in ((given, "Nodes g are simulated with `sharing = default_excl`"), (whole, "")):
        found = notes(text, nodes)
        assert [note[: len(named)] for note in found if "which qmgr cannot set" in note] == [named] * bool(named)
        assert not any(note.startswith("Jobs share the nodes") for note in found)
    assert any(note.startswith("Jobs share the nodes c, m in the simulation") for note in notes(text))
    odd = [replace(node, sharing="ignore_excl") if node.name[0] == "c" else node for node in given]
    assert any(note.startswith("nodes c[1-4]: sharing = ignore_excl: PBS lets jobs") for note in notes(SITE, odd))


def test_the_default_place_of_a_route_plays_no_part():
    statements = (
        "create queue route queue_type = Route, route_destinations = cpu, enabled = True, started = True\n"
        "set queue route resources_default.place = excl\nset server default_queue = route\n"
    )
    found = derive(Server.parse(SERVER + statements), cores=32)
    assert any(each.startswith("route: resources_default.place = excl plays no part") for each in found.warnings)


SITE = """\
machine: {name: pbs, cores: 224, cores_per_node: 32}
reserve: nodes
nodes:
  - {name: c, count: 4, cores: 32, memory: 192gb, hosts: "c[1-4]"}
  - {name: g, count: 2, cores: 32, memory: 192gb, gpus: 4, features: [gpunode], hosts: "g[1-2]"}
  - {name: m, count: 1, cores: 32, memory: 2tb, hosts: m1}
queues:
  - {name: cpu, cores: [1, 128], walltime: [0, 48h], nodes: [c, m]}
  - {name: gpu, cores: [1, 64], walltime: [0, 48h], nodes: [g], exclusive: true}
  - {name: every, walltime: [0, 1h]}
"""


def held_by(server, groups, resources=()):
    """What pbsnodes would say of nodes, with the resources that a script gave them."""
    found = {f"{prefix}{i}": dict(held) for prefix, (count, held) in groups.items() for i in range(1, count + 1)}
    for name, attributes in server.nodes.items():
        found[name] |= {key.partition(".")[2]: value for key, value in attributes.items()}
    return [Node(name, int(held["ncpus"]), held.get("Qlist", ""), resources=held) for name, held in found.items()]


OF_SITE = {"c": (4, PLAIN), "g": (2, GPU), "m": (1, {**PLAIN, "mem": "2tb"})}


def around(server, config, groups=OF_SITE, **given):
    """Export for a server, load that, read it back, export again, which writes nothing, and undo all.

    Returns the files, what was read, and the queues that the server had then.
    """
    before = server.printed()
    files = pbs_files(config, current=before, nodes=held_by(server, groups), **given)
    for name in ("queues.qmgr", "nodes.qmgr"):
        server.load(files[name])
    nodes, queues = held_by(server, groups), deepcopy(server.queues)
    again = derive(Server.parse(server.printed()), nodes=nodes)
    second = pbs_files(config, current=server.printed(), nodes=nodes, **given)
    assert (commands(second["queues.qmgr"]), "nodes.qmgr" in second) == ([], False)
    server.load(files["rollback.qmgr"])
    assert server.printed() == before
    assert not any(server.nodes.values())
    return files, again, queues


def test_bound_queues_are_exported_come_back_and_are_written_once():
    server = PbsServer(FRESH)
    server.load("create resource gpunode type = boolean, flag = h; create resource ngpus type = long, flag = nh")
    config = parse(SITE)
    files, again, queues = around(server, config)
    made = [f"create resource q_{name} type=boolean, flag=h" for name in ("cpu", "gpu")]
    assert [each for each in commands(files["queues.qmgr"]) if each.startswith("create resource")] == made
    assert commands(files["nodes.qmgr"]) == [
        "set node c1,c2,c3,c4,m1 resources_available.q_cpu = True",
        "set node g1,g2 resources_available.q_gpu = True",
    ]
    assert [queues[name].get(f"default_chunk.q_{name}") for name in config.names] == ["True", "True", None]
    assert queues["gpu"]["resources_default.place"] == "excl"
    line = 'resources: "ncpus, mem, arch, host, vnode, aoe, eoe, q_cpu, q_gpu, ngpus"'
    assert line in files["sched_config.changes"]
    assert again.config == config


def test_a_binding_that_holds_already_stays_and_another_is_replaced():
    server = PbsServer(FRESH)
    server.load(
        "create resource gpunode type = boolean, flag = h; create resource site type = string_array, flag = h\n"
        + "".join(f"create queue {n} queue_type = Execution, enabled = True, started = True\n" for n in ("cpu", "gpu"))
        + "set queue gpu default_chunk.gpunode = True; set queue cpu default_chunk.site = plain"
    )
    before, config = server.printed(), parse(SITE)
    files = pbs_files(config, current=before, nodes=held_by(server, THREE))
    found = commands(files["queues.qmgr"])
    assert "unset queue cpu default_chunk.site" in found
    assert "set queue cpu default_chunk.q_cpu = True" in found
    assert not [each for each in found if "q_gpu" in each or "gpunode" in each]
    assert commands(files["nodes.qmgr"]) == ["set node c1,c2,c3,c4,m1 resources_available.q_cpu = True"]
    assert files["PLAN.md"].count("python3 -I qconf-pbs renew cpu\n") == 2  # and in the undo
    server.load(files["queues.qmgr"] + files["nodes.qmgr"])
    server.load(files["rollback.qmgr"])
    assert server.printed() == before
    unknown = pbs_files(config, current=before)  # nodes are not given: both are written
    assert {"set queue gpu default_chunk.q_gpu = True", "unset queue gpu default_chunk.gpunode"} <= {
        *commands(unknown["queues.qmgr"])
    }


@pytest.mark.parametrize(
    ("statement", "queue", "message"),
    [
        ("", "gpu", r"node g1 has queue = gpu, which keeps .* off it: .* 'unset node g1 queue'"),
        ("set server default_chunk.site = all", "", "the server has default_chunk.site = all, which binds all queues"),
        ("create resource q_gpu type = long, flag = nh", "", "a resource q_gpu already that is no boolean"),
    ],
)
def test_what_binds_otherwise_is_refused(statement, queue, message):
    current = f"{FRESH}create resource site type = string_array, flag = h\n{statement}\n"
    nodes = [replace(n, queue=queue if n.name == "g1" else "") for n in held_by(PbsServer(FRESH), OF_SITE)]
    with pytest.raises(ExportError, match=message):
        pbs_files(parse(SITE), current=current, nodes=nodes)


def test_types_that_no_queue_is_bound_to_change_no_node():
    text = re.sub(r", (hosts: [^}]*|nodes: \[[^]]*\])", "", SITE)
    server = PbsServer(FRESH)
    server.load("create resource gpunode type = boolean, flag = h; create resource ngpus type = long, flag = nh")
    server.load("create queue gpu queue_type = Execution")
    server.load("set queue gpu default_chunk.gpunode = True, enabled = True, started = True")
    export = pbs(parse(text), current=server.printed())
    assert any(note.startswith("--nodes was not given: what nodes have") for note in export.notes)
    files = export.files
    assert "nodes.qmgr" not in files
    assert "gpunode" not in files["queues.qmgr"]
    assert "sched_config.changes" not in files
    assert "q_gpu" not in files["PLAN.md"]


def test_limits_of_other_resources_are_named_kept_and_not_simulated():
    own = {
        "workq": ("max_run_res.ngpus = [u:PBS_GENERIC=4]", "max_run_res.mem = [o:PBS_ALL=1tb]"),
        "server": ("max_queued_res.ngpus = [o:PBS_ALL=64]",),
    }
    lines = [f"set {'queue workq' if of == 'workq' else of} {each}" for of, held in own.items() for each in held]
    before = Server.parse(FRESH + "\n".join(["create resource ngpus type = long, flag = nh", *lines]))
    found = derive(before, cores=64)
    assert {f"{of}: {each} is not simulated" for of, held in own.items() for each in held} <= {*found.warnings}
    assert not any("has no place" in each for each in found.warnings)
    export = exporter("pbs")(current=before).export(found.config)
    assert commands(export.files["queues.qmgr"]) == []
    said = " ".join(export.notes)
    assert f"Queue workq keeps {', '.join(own['workq'])}; none was simulated." in said
    assert f"The server keeps {own['server'][0]}; none was simulated." in said


LIMITED = (
    SITE
    + """\
throttles:
  - {each: user, max_run: 30, max_run_resources: {gpus: 4, memory: 384gb}}
  - {user: ann, max_run_resources: {gpus: 6}}
  - {queue: gpu, max_run_resources: {gpus: 7}}
  - {each: group, queue: gpu, max_run_resources: {memory: 1000}}
"""
)


@pytest.mark.parametrize("gpus", ["ngpus", "naccelerators"])
def test_limits_of_what_nodes_have_come_back_and_go_with_the_undo(gpus):
    server = PbsServer(FRESH)
    server.load("create resource gpunode type = boolean, flag = h")
    server.load(f"create resource {gpus} type = long, flag = nh" if gpus == "ngpus" else "")
    server.load("set server max_run_res.mem = [o:PBS_ALL=1tb]; set queue workq max_run_res.mem = [p:atlas=3gb]")
    config = parse(LIMITED)
    groups = OF_SITE | {"g": (2, {**PLAIN, gpus: "4", "gpunode": "True"})}
    line = Scheduler({"resources": {"non_prime": f"ncpus, mem, {gpus}, q_cpu, q_gpu"}})
    files, again, _ = around(server, config, groups, scheduler=line)
    assert {
        f'set server max_run_res.{gpus} = "[u:PBS_GENERIC=4],[u:ann=6]"',
        'set server max_run_res.mem = "[u:PBS_GENERIC=384gb]"',
        f"set queue gpu max_run_res.{gpus} = [o:PBS_ALL=7]",
        'set queue gpu max_run_res.mem = "[g:PBS_GENERIC=1000mb]"',
    } <= {*commands(files["queues.qmgr"])}
    own = {each.what: each for each in again.config.throttles if each.queue != "workq"}
    assert own == {each.what: each for each in config.throttles}
    assert not any("is not simulated" in each for each in again.warnings)


def test_a_server_that_lacks_a_resource_is_given_it():
    files = pbs_files(parse(LIMITED), current=FRESH)
    assert "create resource ngpus type=long, flag=nh" in commands(files["queues.qmgr"])


def test_nodes_that_are_alike_have_a_type_where_what_they_have_is_limited(tmp_path):
    limit = "set server max_run_res.ngpus = [g:PBS_GENERIC=8]\nset server max_run_res.boards = [o:PBS_ALL=1]\n"
    found = found_of(tmp_path, {"g": (2, GPU)}, limit)
    assert [each.gpus for each in found.config.nodes] == [4]
    assert [(each.what, each.limits) for each in found.config.throttles] == [
        ("each group", {"max_run_resources.gpus": 8})
    ]
    assert "server: max_run_res.boards = [o:PBS_ALL=1] is not simulated" in found.warnings


DIVIDED = (
    SITE.partition("queues:")[0].replace("features: [gpunode], ", "")
    + """\
mode: partitioned
queues:
  - {name: cpu, cores: [1, 96], walltime: [0, 48h], partition: {c: 3}}
  - {name: gpu, cores: [1, 64], walltime: [0, 48h], partition: {c: 1, g: 2, m: 1}}
"""
)


def test_partitions_of_types_bind_queues_to_their_nodes():
    server = PbsServer(FRESH)
    server.load("create resource ngpus type = long, flag = nh")
    files, again, queues = around(server, config := parse(DIVIDED))
    assert commands(files["nodes.qmgr"]) == [
        "set node c1,c2,c3 resources_available.q_cpu = True",
        "set node c4,g1,g2,m1 resources_available.q_gpu = True",
    ]
    assert [queues[name]["default_chunk.q_" + name] for name in config.names] == ["True", "True"]
    assert [queues[name]["backfill_depth"] for name in config.names] == ["1", "1"]
    assert "Qlist" not in files["queues.qmgr"] + files["sched_config.changes"]
    of = {each.name: each.hosts for each in again.config.nodes}
    hosts = [[of[name] for name in queue.nodes] for queue in again.config.queues]
    assert hosts == [["c[1-3]"], ["c4", "g[1-2]", "m1"]]


@pytest.mark.parametrize(
    ("binding", "old", "new", "message"),
    [
        ("limits", "", "", "binding limits counts cores"),
        (None, ", hosts: m1", "", "nodes m: queues are bound to nodes, and these have no names"),
        (None, "{c: 3}}", "0}", "queue cpu: its partition has no nodes"),
    ],
)
def test_partitions_of_types_that_cannot_be_exported(binding, old, new, message):
    text = DIVIDED.replace(old, new).replace("{c: 1,", "{c: 4," if new == "0}" else "{c: 1,")
    with pytest.raises(ExportError, match=message):
        exporter("pbs")(**({"binding": binding} if binding else {})).export(parse(text))
