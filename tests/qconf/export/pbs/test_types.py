"""Types of nodes from `pbsnodes -av`, and queues that are bound to some of them."""

import json
import re
from dataclasses import replace

import pytest

from qconf.config import dump, parse
from qconf.errors import ExportError, InputError
from qconf.export import exporter
from qconf.export.nodes import Node, read_nodes
from qconf.export.pbs.init import derive
from qconf.export.pbs.scheduler import Scheduler
from qconf.export.pbs.server import Server
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
    found = {
        f"{prefix}{number}": resources
        for prefix, (count, resources) in groups.items()
        for number in range(1, count + 1)
    }
    more = attributes or {}
    path = tmp_path / "nodes"
    if as_json:
        held = {name: {**more.get(name, {}), "resources_available": resources} for name, resources in found.items()}
        path.write_text(json.dumps({"timestamp": 1, "nodes": held}))
    else:
        path.write_text(
            "".join(
                f"{name}\n     state = free\n"
                + "".join(f"     {key} = {value}\n" for key, value in more.get(name, {}).items())
                + "".join(f"     resources_available.{key} = {value}\n" for key, value in resources.items())
                + "\n"
                for name, resources in found.items()
            )
        )
    return read_nodes(str(path))


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
    assert [each.model_dump(exclude_defaults=True) for each in config.nodes] == [
        {"name": "c", "count": 4, "cores": 32, "memory": 196608, "hosts": "c[1-4]"},
        {
            "name": "g",
            "count": 2,
            "cores": 32,
            "memory": 196608,
            "gpus": 4,
            "features": ("gpunode",),
            "hosts": "g[1-2]",
        },
        {"name": "m", "count": 1, "cores": 32, "memory": 2 * 1024**2, "hosts": "m1"},
    ]
    assert bound(found) == {"cpu": None, "gpu": ("g",), "large": ("m",)}
    assert (config.mode, config.reserve, config.machine.cores, config.machine.cores_per_node) == (
        *("shared", "nodes"),
        *(7 * 32, 32),
    )
    assert parse(dump(config)) == config
    assert not [each for each in found.warnings if not each.startswith("no Route queue")]


def test_a_queue_that_keeps_off_nodes_and_the_older_attribute_of_nodes(tmp_path):
    found = found_of(tmp_path, THREE, "set queue cpu default_chunk.gpunode = False\n")
    assert bound(found) == {"cpu": ("c", "m"), "gpu": None, "large": None}
    found = found_of(tmp_path, THREE, attributes={"g1": {"queue": "gpu"}, "g2": {"queue": "gpu"}})
    assert bound(found) == {"cpu": ("c", "m"), "gpu": ("g",), "large": ("c", "m")}
    found = found_of(tmp_path, THREE, attributes={"g2": {"queue": "gpu"}})
    assert bound(found) == {"cpu": ("c", "g", "m"), "gpu": ("g-2",), "large": ("c", "g", "m")}


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


def test_a_queue_without_nodes_is_left_out(tmp_path):
    found = found_of(tmp_path, THREE, "set queue large default_chunk.site = nowhere\n")
    assert found.config.names == ("cpu", "gpu")
    assert "large: left out, it may use no node" in found.warnings


def test_bindings_without_nodes_are_named(tmp_path):
    found = derive(Server.parse(f"{FRESH}set queue workq default_chunk.gpunode = True\n"), cores=8)
    assert any("bound to nodes by gpunode, which print server does not show: give --nodes" in w for w in found.warnings)


def test_memory_that_is_no_size_has_its_line(tmp_path):
    (tmp_path / "nodes").write_text(
        "n1\n     resources_available.ncpus = 8\n     resources_available.mem = 8gb\n\n\n\n"
        "n2\n     resources_available.ncpus = 8\n     resources_available.mem = much\n"
    )
    nodes, message = (
        read_nodes(str(tmp_path / "nodes")),
        "nodes, line 7: n2: resources_available.mem = 'much': is no size",
    )
    with pytest.raises(InputError, match=message) as raised:
        derive(Server.parse(FRESH), nodes=nodes)
    assert "Write a size like 263842748kb" in str(raised.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is no JSON"),
        ("{}", "holds no nodes"),
        ('{"nodes": {"n1": 3}}', r"nodes.n1 = 3: has no attributes"),
        ('{"nodes": {"n1": {"resources_available": 3}}}', "are none by name"),
    ],
)
def test_json_that_is_none_of_pbsnodes(tmp_path, text, message):
    (tmp_path / "nodes").write_text(text)
    with pytest.raises(InputError, match=message) as raised:
        read_nodes(str(tmp_path / "nodes"))
    assert "Give the output of pbsnodes -av" in str(raised.value)


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


def test_nodes_that_qmgr_cannot_make_exclusive_are_named():
    text = SITE.replace("gpus: 4,", "gpus: 4, exclusive: true,")
    given = held_by(PbsServer(FRESH), THREE)
    whole = [replace(node, exclusive=node.name[0] == "g") for node in given]
    for nodes, named in ((given, "Nodes g are simulated with `sharing = default_excl`"), (whole, "")):
        notes = exporter("pbs")(nodes=nodes, current=Server.parse(FRESH)).export(parse(text)).notes
        assert [note[: len(named)] for note in notes if "which qmgr cannot set" in note] == [named] * bool(named)
        assert not any(note.startswith("Jobs share the nodes") for note in notes)
    notes = exporter("pbs")(current=Server.parse(FRESH)).export(parse(text)).notes
    assert any(note.startswith("Jobs share the nodes c, m in the simulation") for note in notes)


def test_nodes_whose_exclusive_jobs_pbs_lets_share_are_named():
    given = [
        replace(node, sharing="ignore_excl") if node.name[0] == "c" else node
        for node in held_by(PbsServer(FRESH), THREE)
    ]
    notes = exporter("pbs")(nodes=given, current=Server.parse(FRESH)).export(parse(SITE)).notes
    assert any(note.startswith("nodes c[1-4]: sharing = ignore_excl: PBS lets jobs") for note in notes)


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


def test_bound_queues_are_exported_come_back_and_are_written_once():
    groups = {"c": (4, PLAIN), "g": (2, GPU), "m": (1, {**PLAIN, "mem": "2tb"})}
    server = PbsServer(FRESH)
    server.load("create resource gpunode type = boolean, flag = h; create resource ngpus type = long, flag = nh")
    before, config = server.printed(), parse(SITE)
    nodes = held_by(server, groups)
    files = pbs_files(config, current=before, nodes=nodes)
    assert commands(files["nodes.qmgr"]) == [
        "set node c1,c2,c3,c4,m1 resources_available.q_cpu = True",
        "set node g1,g2 resources_available.q_gpu = True",
    ]
    for name in ("queues.qmgr", "nodes.qmgr"):
        server.load(files[name])
    assert [server.queues[name].get(f"default_chunk.q_{name}") for name in config.names] == ["True", "True", None]
    assert server.queues["gpu"]["resources_default.place"] == "excl"
    nodes = held_by(server, groups)
    line = 'resources: "ncpus, mem, arch, host, vnode, aoe, eoe, q_cpu, q_gpu, ngpus"'
    assert line in files["sched_config.changes"]
    again = derive(Server.parse(server.printed()), nodes=nodes)
    assert again.config == config
    second = pbs_files(config, current=server.printed(), nodes=nodes)
    assert (commands(second["queues.qmgr"]), "nodes.qmgr" in second) == ([], False)
    server.load(files["rollback.qmgr"])
    assert server.printed() == before
    assert not any(server.nodes.values())


def test_a_binding_that_holds_already_stays_and_another_is_replaced():
    server = PbsServer(FRESH)
    server.load(
        "create resource gpunode type = boolean, flag = h; create resource site type = string_array, flag = h\n"
        + "".join(f"create queue {n} queue_type = Execution, enabled = True, started = True\n" for n in ("cpu", "gpu"))
        + "set queue gpu default_chunk.gpunode = True; set queue cpu default_chunk.site = plain"
    )
    before, config = server.printed(), parse(SITE)
    groups = {"c": (4, PLAIN), "g": (2, GPU), "m": (1, LARGE)}
    files = pbs_files(config, current=before, nodes=held_by(server, groups))
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
    server = PbsServer(FRESH)
    server.load(f"create resource site type = string_array, flag = h\n{statement}")
    nodes = held_by(server, {"c": (4, PLAIN), "g": (2, GPU), "m": (1, LARGE)})
    nodes = [replace(node, queue=queue if node.name == "g1" else "") for node in nodes]
    with pytest.raises(ExportError, match=message):
        pbs_files(parse(SITE), current=server_text(server), nodes=nodes)


def server_text(server):
    return server.printed() + "".join(
        f"set server {key} = {value}\n" for key, value in server.server.items() if key.startswith("default_chunk")
    )


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
    before = Server.parse(
        FRESH + "create resource ngpus type = long, flag = nh\n"
        "set queue workq max_run_res.ngpus = [u:PBS_GENERIC=4]\nset queue workq max_run_res.mem = [o:PBS_ALL=1tb]\n"
        "set server max_queued_res.ngpus = [o:PBS_ALL=64]\n"
    )
    found = derive(before, cores=64)
    assert {
        "workq: max_run_res.ngpus = [u:PBS_GENERIC=4] is not simulated",
        "workq: max_run_res.mem = [o:PBS_ALL=1tb] is not simulated",
        "server: max_queued_res.ngpus = [o:PBS_ALL=64] is not simulated",
    } <= {*found.warnings}
    assert not any("has no place" in each for each in found.warnings)
    export = exporter("pbs")(current=before).export(found.config)
    assert commands(export.files["queues.qmgr"]) == []
    said = " ".join(export.notes)
    kept = "max_run_res.ngpus = [u:PBS_GENERIC=4], max_run_res.mem = [o:PBS_ALL=1tb]"
    assert f"Queue workq keeps {kept}; none was simulated." in said
    assert "The server keeps max_queued_res.ngpus = [o:PBS_ALL=64]; none was simulated." in said


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
    before, config = server.printed(), parse(LIMITED)
    groups = {"c": (4, PLAIN), "g": (2, {**PLAIN, gpus: "4", "gpunode": "True"}), "m": (1, {**PLAIN, "mem": "2tb"})}
    line = {"scheduler": Scheduler({"resources": {"non_prime": f"ncpus, mem, {gpus}, q_cpu, q_gpu"}})}
    files = pbs_files(config, current=before, nodes=held_by(server, groups), **line)
    assert {
        f'set server max_run_res.{gpus} = "[u:PBS_GENERIC=4],[u:ann=6]"',
        'set server max_run_res.mem = "[u:PBS_GENERIC=384gb]"',
        f"set queue gpu max_run_res.{gpus} = [o:PBS_ALL=7]",
        'set queue gpu max_run_res.mem = "[g:PBS_GENERIC=1000mb]"',
    } <= {*commands(files["queues.qmgr"])}
    for name in ("queues.qmgr", "nodes.qmgr"):
        server.load(files[name])
    nodes = held_by(server, groups)
    again = derive(Server.parse(server.printed()), nodes=nodes)
    own = [each for each in again.config.throttles if each.queue != "workq"]
    assert {each.what: each for each in own} == {each.what: each for each in config.throttles}
    assert not any("is not simulated" in each for each in again.warnings)
    second = pbs_files(config, current=server.printed(), nodes=nodes, **line)
    assert commands(second["queues.qmgr"]) == []
    server.load(files["rollback.qmgr"])
    assert server.printed() == before


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


DIVIDED = """\
machine: {name: pbs, cores: 224, cores_per_node: 32}
reserve: nodes
nodes:
  - {name: c, count: 4, cores: 32, memory: 192gb, hosts: "c[1-4]"}
  - {name: g, count: 2, cores: 32, memory: 192gb, gpus: 4, hosts: "g[1-2]"}
  - {name: m, count: 1, cores: 32, memory: 2tb, hosts: m1}
mode: partitioned
queues:
  - {name: cpu, cores: [1, 96], walltime: [0, 48h], partition: {c: 3}}
  - {name: gpu, cores: [1, 64], walltime: [0, 48h], partition: {c: 1, g: 2, m: 1}}
"""


def test_partitions_of_types_bind_queues_to_their_nodes():
    groups = {"c": (4, PLAIN), "g": (2, GPU), "m": (1, {**PLAIN, "mem": "2tb"})}
    server = PbsServer(FRESH)
    server.load("create resource ngpus type = long, flag = nh")
    before, config = server.printed(), parse(DIVIDED)
    files = pbs_files(config, current=before, nodes=held_by(server, groups))
    assert commands(files["nodes.qmgr"]) == [
        "set node c1,c2,c3 resources_available.q_cpu = True",
        "set node c4,g1,g2,m1 resources_available.q_gpu = True",
    ]
    for name in ("queues.qmgr", "nodes.qmgr"):
        server.load(files[name])
    assert [server.queues[name]["default_chunk.q_" + name] for name in config.names] == ["True", "True"]
    assert [server.queues[name]["backfill_depth"] for name in config.names] == ["1", "1"]
    assert "Qlist" not in files["queues.qmgr"] + files["sched_config.changes"]
    nodes = held_by(server, groups)
    again = derive(Server.parse(server.printed()), nodes=nodes).config
    of = {each.name: each.hosts for each in again.nodes}
    assert [[of[name] for name in queue.nodes] for queue in again.queues] == [["c[1-3]"], ["c4", "g[1-2]", "m1"]]
    second = pbs_files(config, current=server.printed(), nodes=nodes)
    assert (commands(second["queues.qmgr"]), "nodes.qmgr" in second) == ([], False)
    server.load(files["rollback.qmgr"])
    assert server.printed() == before
    assert not any(server.nodes.values())


def test_partitions_of_types_that_cannot_be_exported():
    with pytest.raises(ExportError, match="binding limits counts cores"):
        exporter("pbs")(binding="limits").export(parse(DIVIDED))
    with pytest.raises(ExportError, match="nodes m: queues are bound to nodes, and these have no names"):
        exporter("pbs")().export(parse(DIVIDED.replace(", hosts: m1", "")))
    empty = DIVIDED.replace("partition: {c: 3}", "partition: 0").replace("{c: 1,", "{c: 4,")
    with pytest.raises(ExportError, match="queue cpu: its partition has no nodes"):
        exporter("pbs")().export(parse(empty))
