import pickle
import re
import string
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parsim.model import formula
from parsim.model.system import ORDERS
from parsim.model.workload import MAX_CORES, MAX_DURATION
from qconf.config import (
    ConfigError,
    FairshareConfig,
    MachineConfig,
    PoolConfig,
    QueueConfig,
    ShareConfig,
    SiteConfig,
    Target,
    ThrottleConfig,
    dump,
    format_clock,
    format_duration,
    load,
    over_limit,
    parse,
    parse_duration,
    route,
    too_wide,
)
from qconf.errors import InputError
from qconf.evaluation.feasibility import fixed_violations
from qconf.history import clean, read
from qconf.inert import inert
from tests.beside import TRACES

ROOT = Path(__file__).parents[2]
CONFIGS = ROOT / "configs"

HYBRID = """\
machine: {name: tiny, cores: 96, cores_per_node: 8, whole_nodes: true}
mode: hybrid
order: fcfs
queues:
  - {name: small, cores: [1, 16], walltime: [0, 24:00:00], priority: 40, partition: 32,
     starvation: 1d, max_run: 6}
  - {name: medium, cores: [17, 40], walltime: [0, 2h30m], priority: 80, partition: 40}
  - {name: large, cores: [41, 96], walltime: [0, 1-12:00:00], priority: 100, reservation: true}
pool: {cores: 24, placement: combined, entry: move}
fixed: [queues.large, "queues.*.max_user_run"]
"""


def mistakes(text):
    with pytest.raises(ConfigError) as caught:
        parse(text, "site.yaml")
    return caught.value.problems


def only(text):
    (problem,) = mistakes(text)
    return problem


def test_reads_every_field_and_the_system_has_its_values():
    config = parse(HYBRID)
    assert config.machine == MachineConfig(name="tiny", cores=96, cores_per_node=8, whole_nodes=True)
    assert config.grid == 8
    assert [queue.walltime for queue in config.queues] == [(0, 86400), (0, 9000), (0, 36 * 3600)]
    small, _, large = config.queues
    assert (small.starvation, small.max_run, large.reservation, large.partition) == (86400, 6, True, 0)
    assert config.pool == PoolConfig(cores=24, placement="combined", entry="move")
    assert config.threshold == 40
    system = config.system()
    assert system.partition_cores == (32, 40, 0, 24)
    assert (system.pool.threshold, system.pool.entry) == (40, "move")
    assert (system.queues[0].max_run, system.queues[2].reservation) == (6, True)


@pytest.mark.parametrize(
    ("old", "new", "tau"),
    [
        ("pool: {", "pool: {reference: small, ", 20),
        ("pool: {", "pool: {threshold: 7.5, ", 7.5),
        ("", "", 40),
        ("medium", "middle", 40),  # without medium half of the middle queue
        ("medium, cores: [17, 40], walltime: [0, 2h30m], priority: 80", "middle, cores: [17, 40], priority: 10", 20),
    ],
)
def test_threshold(old, new, tau):
    assert parse(HYBRID.replace(old, new, 1)).threshold == tau


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.yaml")), ids=lambda path: path.stem)
def test_shipped_configurations_load_without_warnings(path):
    config = load(path)
    assert config.warnings() == []
    assert parse(dump(config)) == config
    assert config.system().cores == config.machine.cores
    widest = max(config.queues, key=lambda queue: queue.cores[1])
    assert widest.reservation or config.nodes


@pytest.mark.parametrize(
    ("site", "trace", "jobs"),
    [
        ("sdsc-sp2", "SDSC-SP2-1998-4.2-cln", 54034),
        ("kth-sp2", "KTH-SP2-1996-2.1-cln", 27992),
        ("hpc2n", "HPC2N-2002-2.1-cln", 202876),
    ],
)
def test_every_job_of_a_real_trace_that_survives_cleaning_has_a_queue(site, trace, jobs):
    path = TRACES / f"{trace}.swf.gz"
    if not path.exists():
        pytest.skip(f"{path} is not here")
    history = clean(read([path]), load(CONFIGS / f"{site}.yaml"))
    assert len(history) == jobs
    assert set(history.dropped.reason) <= {"no run time"}


def test_cray_is_table_one():
    config = load(CONFIGS / "cray-xc40.yaml")
    assert [(q.name, q.cores, q.walltime) for q in config.queues] == [
        ("idqueue", (8, 256), (0, 7200)),
        ("small", (24, 1032), (0, 86400)),
        ("small72", (24, 1032), (86400, 259200)),
        ("medium", (1033, 8208), (0, 86400)),
        ("large", (8209, 22800), (0, 86400)),
    ]
    assert all(queue.max_run for queue in config.queues)


def test_every_mistake_at_once_with_its_line():
    text = """\
machine: {name: x, cores: 350, cores_per_node: 24, whole_nodes: true}
mode: hybird
order: "queue_priority * bogus"
quues: 3
queues:
  - {name: a, cores: [8, 256], walltime: [0, 2h], starvation: 24:00, max_run: 0}
  - {name: a, cores: [9, 2], walltime: [24h, 24:00:00], prioriti: 3, reservation: yes}
  - 7
  - {cores: [1, 228], max_run_cores: 3}
pool: {cores: 5}
"""
    assert [(p.line, p.path) for p in mistakes(text)] == [
        (1, "machine.cores"),
        (2, "mode"),
        (3, "order"),
        (4, "quues"),
        (6, "queues[0].starvation"),
        (6, "queues[0].max_run"),
        (7, "queues[1].cores"),
        (7, "queues[1].walltime"),
        (7, "queues[1].reservation"),
        (7, "queues[1].prioriti"),
        (7, "queues[1].name"),
        (8, "queues[2]"),
        (9, "queues[3].name"),
        (9, "queues[3].max_run_cores"),
        (10, "pool.cores"),
    ]
    with pytest.raises(
        InputError, match=r"^site\.yaml: the configuration has 15 mistakes\n  line 1: machine\.cores = 350: "
    ):
        parse(text, "site.yaml")


def edit(old, new):
    assert old in HYBRID
    return HYBRID.replace(old, new)


@pytest.mark.parametrize(
    ("text", "path", "message"),
    [
        (edit("cores: 24,", "cores: 16,"), "queues", "8 missing"),
        (edit("cores: 24,", "cores: 32,"), "queues", "8 too many"),
        (edit("partition: 32", "partition: 31"), "queues[0].partition", "24 or 32"),
        (edit("partition: 32,", ""), "queues[0].partition", "missing: mode hybrid needs"),
        (edit("mode: hybrid", "mode: partitioned"), "queues", "counts in mode hybrid only"),
        (edit("reservation: true", "reservation: true, partition: 8"), "queues[2].partition", "owns no partition"),
        (edit("pool: {cores: 24, placement: combined, entry: move}\n", ""), "pool", "missing: mode hybrid needs one"),
        (edit("name: medium", "name: small"), "queues[1].name", "queues[0] has this name"),
        (edit("[41, 96]", "[41, 97]"), "queues[2].cores", "machine's 96"),
        (edit("[41, 96]", "[97, 98]"), "queues[2].cores", "no job can enter"),
        (edit("[17, 40]", "[40, 17]"), "queues[1].cores", "no job can enter"),
        (edit("[17, 40]", "[0, 17]"), "queues[1].cores", "at least 1"),
        (edit("[17, 40]", "17-40"), "queues[1].cores", "two values"),
        (edit("[0, 2h30m]", "[2h30m, 9000]"), "queues[1].walltime", "no job can enter"),
        (edit("[0, 2h30m]", "[0, 24:00]"), "queues[1].walltime", "HH:MM:SS"),
        (edit("max_run: 6", "max_run_cores: 7"), "queues[0].max_run_cores", "8 cores"),
        (edit("max_run: 6", "max_run: 6.5"), "queues[0].max_run", "whole number"),
        (edit("max_run: 6", "max_run: '6'"), "queues[0].max_run", "whole number"),
        (edit("priority: 40", "priority: .nan"), "queues[0].priority", "above 0"),
        (edit("priority: 40", "priority: true"), "queues[0].priority", "above 0"),
        (edit("priority: 40", "priority: 0"), "queues[0].priority", "above 0"),
        (edit("entry: move", "entry: mov"), "pool.entry", "either or move"),
        (edit("entry: move", "entri: move"), "pool.entri", "did you mean entry?"),
        (edit("entry: move", "reference: larg"), "pool.reference", "did you mean large?"),
        (edit("queues.large", "queues.lrge"), "fixed[0]", "did you mean queues.large?"),
        (edit("order: fcfs", "order: fcsf"), "order", "did you mean fcfs?"),
        (edit("order: fcfs", "order: 1 +"), "order", "not an expression"),
        (edit("order: fcfs", "order: eligble_time / walltime"), "order", "is unknown; a formula may name"),
        (edit("order: fcfs", "order: __import__('os')"), "order", "letters, digits"),
        (edit("order: fcfs", "order: open(ncpus)"), "order", "is not one of the functions"),
        (edit("mode: hybrid", "mode: hybrid\nmode: shared"), "mode", "given twice, first in line 2"),
        (edit("name: small", "name: 'sm all'"), "queues[0].name", "no blank"),
        (edit("cores: 96,", "cores: 1e99,"), "machine.cores", "whole number"),
        (edit("cores: 96,", "cores: 99999999999999999999,"), "machine.cores", "whole number"),
        (edit("machine: {name: tiny, cores: 96, cores_per_node: 8, whole_nodes: true}\n", ""), "machine", "missing"),
        (edit("cores_per_node: 8", "cores_per_node: 800"), "machine.cores_per_node", "larger than the machine"),
    ],
)
def test_one_mistake_one_message(text, path, message):
    problem = only(text)
    assert problem.path == path
    assert message in problem.message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        ("# nothing\n", "empty"),
        ("- a\n", "expected keys"),
        ("just text", "expected keys"),
        ("machine: {cores: 3\n", "not YAML"),
        ("machine: &a {cores: 3}\nqueues: *a\n", "aliases"),
        ("\tmachine: 3", "not YAML"),
        ("a: \x00", "not YAML"),
        ("[" * 5000, "nested too deeply"),
    ],
)
def test_what_is_no_configuration_at_all(text, message):
    assert message in only(text).message


def test_a_control_character_is_named_by_its_line():
    assert only("machine: {cores: 3}\nmode: \x01\n").line == 2


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(InputError, match=r"there is no such file\. Check the path\."):
        load(tmp_path / "absent.yaml")
    bad = tmp_path / "bad.yaml"
    bad.write_bytes(b"machine: {cores: 3}\n# caf\xe9\n")
    with pytest.raises(ConfigError, match=r"line 2: byte 25 is not UTF-8"):
        load(bad)


def test_names_that_yaml_would_turn_into_something_else():
    config = parse(edit("name: small", "name: no").replace("name: medium", 'name: "72"'))
    assert config.names == ("no", "72", "large")
    assert parse(dump(config)) == config


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        (edit("max_run: 6", "max_run_cores: 8"), "queues[0].max_run_cores: "),
        (edit("max_run: 6", "max_user_cores: 8"), "queues[0].max_user_cores: "),
        (edit("[17, 40]", "[17, 48]"), "queues[1].partition: "),
        (edit("[17, 40]", "[1, 16]").replace("2h30m", "24h"), "queues[1]: "),
        (edit("order: fcfs", "order: lxf"), "order: "),
        (
            HYBRID + "targets: [{queue: small, p95_wait: 4}]\n",
            "targets[0].p95_wait: 4 seconds; for hours write 4h",
        ),
        (edit("[0, 2h30m]", "[0, 24]"), "queues[1].walltime: up to 24 seconds; for hours write 24h"),
    ],
)
def test_warnings(text, warning):
    (found,) = parse(text).warnings()
    assert found.startswith(warning)


def test_what_is_planned_for_the_top_job_is_simulated():
    text = "machine: {cores: 8, cores_per_node: 4}\nheld_jobs: reserve\nreserve: nodes\nqueues: [{name: a, max_run: 1}]"
    config = parse(text)
    system = config.system()
    assert (system.plans_limits, system.reserves_nodes, system.cores_per_node) == (True, True, 4)
    assert config.warnings() == []
    with pytest.raises(ConfigError, match="reserve = cpus: not allowed here: cores, nodes, queues, queue_nodes or n"):
        parse(text.replace("nodes\n", "cpus\n"))
    with pytest.raises(ConfigError, match="queue_nodes places jobs on nodes: describe them under nodes"):
        parse("machine: {cores: 8}\nreserve: queue_nodes\nqueues: [{name: a}]")
    with pytest.raises(ConfigError, match="reserve = nodes: nodes are told apart on machines of up to 16777216 cores"):
        parse(text.replace("cores: 8", "cores: 16777217"))


def test_hidden_by_two_queues_together():
    spans = (("a", (1, 8), (0, 3600)), ("b", (1, 9), (3600, 7200)), ("c", (2, 8), (60, 7000)))
    queues = [QueueConfig(name=name, cores=cores, walltime=walltime) for name, cores, walltime in spans]
    config = SiteConfig(machine=MachineConfig(cores=9), queues=queues)
    assert len(config.warnings()) == 1
    wider = queues[2].model_copy(update={"cores": (2, 9)})
    assert config.with_queues([*queues[:2], wider]).warnings() == []


def test_copies_are_checked_and_frozen():
    config = parse(HYBRID)
    parted = config.with_partitions([40, 56, 0])
    assert parted.mode == "partitioned"
    assert parted.pool is None
    assert [queue.partition for queue in parted.queues] == [40, 56, 0]
    assert parse(dump(parted)) == parted
    assert config.queues[0].partition == 32
    with pytest.raises(ConfigError, match="do not add up"):
        config.with_partitions([40, 48, 0])
    with pytest.raises(ConfigError, match=r"partition"):
        config.with_partitions([-8, 104, 0])
    with pytest.raises(ConfigError, match="order"):
        config.replace(order="nonsense(")
    with pytest.raises(ValueError, match="frozen"):
        config.mode = "shared"
    shared = config.replace(mode="shared", pool=None, order="lxf")
    assert shared.system().order == "lxf"


def test_with_queues_leaves_out_what_is_of_queues_that_are_gone():
    times = "begin: 2026-03-01, end: 2026-03-02"
    down = f"downtime: [{{{times}, queue: a}}, {{{times}, partition: a}}, {{{times}, partition: b, queue: b}}]\n"
    config = parse(f"machine: {{cores: 8}}\nqueues: [{{name: a}}, {{name: b}}]\n{down}")
    left = config.with_queues(config.queues[1:])
    assert [(each.queue, each.partition) for each in left.downtime] == [(None, None), ("b", "b")]
    assert "downtime" in fixed_violations(config, left)
    assert fixed_violations(config, config.with_queues(config.queues)) == []
    hybrid = parse(HYBRID)  # the patterns that still match stay
    assert hybrid.with_queues(hybrid.queues[:2], mode="shared").fixed == ("queues.*.max_user_run",)


TARGETS = """\
targets:
  - {queue: small, p95_wait: 4h}
  - {queue: large, weight: 3}
  - {group: physics, users: [alice, 12], p95_wait: 12h, weight: 0.5}
"""


def test_targets_are_no_part_of_what_is_simulated():
    plain, config = parse(HYBRID), parse(HYBRID + TARGETS)
    small, large, physics = config.targets
    assert (small.what, small.p95_wait, small.weight) == ("queue small", 14400, None)
    assert (large.what, large.p95_wait, large.weight) == ("queue large", None, 3.0)
    assert (physics.what, physics.users, physics.weight) == ("group physics", ("alice", "12"), 0.5)
    assert config.system() == plain.system()
    assert config.replace(targets=()) == plain
    assert dump(plain) in dump(config)
    assert dump(config).endswith(TARGETS.replace("12]", '"12"]'))


def test_targets_stay_but_those_of_queues_that_are_gone():
    config = parse(HYBRID + TARGETS)
    assert config.replace(order="sjf").targets == config.targets
    renamed = config.queues[0].model_copy(update={"name": "tiny"})
    assert config.with_queues([renamed, *config.queues[1:]]).targets == config.targets[1:]


@pytest.mark.parametrize(
    ("targets", "path", "message"),
    [
        ("[{queue: smal, p95_wait: 4h}]", "targets[0].queue", "no queue has this name, did you mean small?"),
        ("[{queue: xy, weight: 2}]", "targets[0].queue", "no queue has this name; the queues are small, medium, large"),
        ("[{queue: small}]", "targets[0]", "wants nothing"),
        ("[{p95_wait: 4h}]", "targets[0]", "is for a queue or for a group"),
        ("[{queue: small, group: a, users: [b], weight: 1}]", "targets[0]", "one of the two"),
        ("[{queue: small, users: [b], weight: 1}]", "targets[0].users", "name it with group"),
        ("[{group: a, users: b, weight: 1}]", "targets[0].users", "a list of users"),
        ("[{group: a b, users: [b], weight: 1}]", "targets[0].group", "no blank"),
        ("[{queue: small, p95_wait: 4 hours}]", "targets[0].p95_wait", "not a duration"),
        ("[{queue: small, weight: 0}]", "targets[0].weight", "above 0"),
        ("[{queue: small, weight: .inf}]", "targets[0].weight", "above 0"),
        ("[{queue: small, weigth: 2, p95_wait: 1h}]", "targets[0].weigth", "did you mean weight?"),
        ("[{queue: small, weight: 2}, {queue: small, weight: 3}]", "targets[1].queue", "targets[0] is for it already"),
        (
            "[{group: a, users: [u], weight: 2}, {group: b, users: [v, u], weight: 3}]",
            "targets[1].users",
            "u is in targets[0] too",
        ),
        ("[small]", "targets[0]", "like {queue: small"),
        ("{small: 4h}", "targets", "a list like [{queue: small"),
    ],
)
def test_one_mistake_in_targets_one_message(targets, path, message):
    problem = only(f"{HYBRID}targets: {targets}\n")
    assert (problem.line, problem.path) == (11, path)
    assert message in problem.message


def test_fixed_covers_what_lies_beneath():
    config = parse(HYBRID)
    for path in ("queues.large", "queues.large.priority", "queues[2].cores", "queues.small.max_user_run"):
        assert config.is_fixed(path), path
    for path in ("queues.small.priority", "queues", "queues[0].max_run", "pool.cores", "order"):
        assert not config.is_fixed(path), path


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        *((0, 0), (7200, 7200), ("7200", 7200), ("2h", 7200), ("2h30m", 9000), ("7d", 604800), ("1d2h3m4s", 93784)),
        *(("24:00:00", 86400), ("72:00:00", 259200), ("1-00:00:00", 86400)),
    ],
)
def test_durations(value, seconds):
    assert parse_duration(value) == seconds


@pytest.mark.parametrize(
    "value", ["", "24:00", "1-24:00:00", "-1", -1, 2.5, True, None, "2 h", "h", "30m2h", "²h", "9" * 400, 2**31]
)
def test_what_is_no_duration(value):
    with pytest.raises(ValueError):
        parse_duration(value)


@given(st.integers(0, MAX_DURATION))
def test_durations_come_back(seconds):
    assert parse_duration(format_duration(seconds)) == seconds
    assert parse_duration(format_clock(seconds)) == seconds


def ranges(low, high, *, gap):
    pair = st.tuples(st.integers(low, high), st.integers(low, high)).map(lambda p: (min(p), max(p)))
    return pair.filter(lambda p: p[1] - p[0] >= gap)


NAMES = st.text(min_size=1, max_size=8).filter(lambda t: t.isprintable() and inert(t) == t and not re.search(r"\s", t))


#: What may be reserved for jobs that wait; limits are planned with the first two alone.
RESERVING = [{"held_jobs": held, "reserve": what} for held in ("pass", "reserve") for what in ("cores", "nodes")]
RESERVING.append({"reserve": "queues"})


@st.composite
def site_configs(draw):
    grid = draw(st.sampled_from([1, 1, 8, 24]))
    nodes = draw(st.integers(4, 400))
    machine = nodes * grid
    count = draw(st.integers(1, 4))
    mode = draw(st.sampled_from(["shared", "partitioned", "hybrid"]))
    cuts = sorted(draw(st.lists(st.integers(0, nodes), min_size=count, max_size=count)))
    if mode == "partitioned":
        cuts[-1] = nodes
    sizes = [grid * (b - a) for a, b in zip([0, *cuts[:-1]], cuts, strict=True)]
    limit = st.none() | st.integers(machine, MAX_CORES)
    queues = [
        QueueConfig(
            name=name,
            cores=draw(ranges(1, machine, gap=0) | st.just((1, MAX_CORES))),
            walltime=draw(ranges(0, MAX_DURATION, gap=1) | st.just((0, MAX_DURATION))),
            priority=draw(st.floats(1e-6, 1e6) | st.integers(1, 1000).map(float)),
            partition=size,
            reservation=size == 0 and draw(st.booleans()),
            starvation=draw(st.none() | st.integers(0, MAX_DURATION)),
            max_run=draw(st.none() | st.integers(1, 1000)),
            max_run_cores=draw(limit),
            max_user_run=draw(st.none() | st.integers(1, 1000)),
            max_user_cores=draw(limit),
        )
        for name, size in zip(draw(st.lists(NAMES, min_size=count, max_size=count, unique=True)), sizes, strict=True)
    ]
    pool = PoolConfig(
        cores=machine - sum(sizes),
        threshold=draw(st.none() | st.floats(0, 1e6)),
        placement=draw(st.sampled_from(["pool", "combined"])),
        entry=draw(st.sampled_from(["either", "move"])),
        starving_first=draw(st.booleans()),
    )
    return SiteConfig(
        machine=MachineConfig(name=draw(NAMES), cores=machine, cores_per_node=grid, whole_nodes=grid > 1),
        mode=mode,
        order=draw(st.sampled_from(["fcfs", "sjf", "lxf", "queue_priority * (1 + eligible_time / max(walltime, 1))"])),
        backfill=draw(st.booleans()),
        reserve_after=draw(st.sampled_from([0, 0, 1, 86400, 100_000])),
        **draw(st.sampled_from(RESERVING)),
        queues=queues,
        pool=pool if mode == "hybrid" else None,
        fixed=draw(st.sampled_from([(), ("queues.*.max_run", "pool"), ("order",)])),
        targets=draw(targets([queue.name for queue in queues])),
    )


@st.composite
def targets(draw, queues):
    users = st.text(min_size=1, max_size=8)
    parts = [{"queue": name} for name in draw(st.lists(st.sampled_from(queues), unique=True, max_size=3))]
    parts += [
        {"group": f"g{i}", "users": [user]} for i, user in enumerate(draw(st.lists(users, unique=True, max_size=2)))
    ]
    wait, weight = st.integers(0, MAX_DURATION), st.floats(1e-6, 1e6) | st.integers(1, 9).map(float)
    wanted = st.fixed_dictionaries({"p95_wait": wait}, optional={"weight": weight})
    return tuple(Target(**part, **draw(wanted | st.fixed_dictionaries({"weight": weight}))) for part in parts)


@settings(max_examples=50)
@given(site_configs())
def test_what_is_written_is_read_back(config):
    text = dump(config, "by a test")
    assert parse(text) == config
    assert dump(parse(text), "by a test") == text


@settings(max_examples=200)
@given(st.data())
def test_mutilated_files_give_a_configuration_or_one_message(data):
    text = HYBRID
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text)))
        upto = data.draw(st.integers(at, min(at + 12, len(text))))
        text = text[:at] + data.draw(st.text(string.printable + "é\u2028\U0001f600", max_size=6)) + text[upto:]
    try:
        config = parse(text, "site.yaml")
    except ConfigError as error:
        config, message = None, str(error)
    if config is None:
        assert re.match(r"site\.yaml: the configuration has [0-9]+ mistakes?\n  ", message)
    else:
        assert parse(dump(config)) == config


def test_the_reference_of_the_file_names_every_key_and_every_name_of_a_formula():
    text = (ROOT / "docs" / "reference" / "configuration.md").read_text()
    models = (SiteConfig, MachineConfig, QueueConfig, PoolConfig, FairshareConfig, ShareConfig, Target, ThrottleConfig)
    keys = [name for model in models for name in model.model_fields if name != "partition_nodes"]
    listed = set(re.findall(r"`([a-z0-9_]+)`", text))
    assert {*keys, *formula.NAMES, *formula._CALLS, *ORDERS} <= listed
    (example,) = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    assert parse(example).mode == "hybrid"
    (targets,) = re.findall(r"\n    (targets:\n(?:      - .*\n)+)", text)
    assert len(parse(example + targets.replace("\n    ", "\n")).targets) == 3
    orders = re.findall(r'order: "(.*)"', text)
    assert len(orders) == 2
    assert all(formula.parse(order) for order in orders)


def test_settings_of_strategies_are_kept_as_they_are_written():
    text = "machine: {cores: 8}\nqueues:\n  - {name: a}\n"
    config = parse(text + "strategies: {samples: 50, pool-entry: move, weights: [1, 2.5], slack: 0.5}\n")
    assert config.strategies == {"samples": 50, "pool-entry": "move", "weights": (1, 2.5), "slack": 0.5}
    assert parse(dump(config)) == config
    assert hash(parse(dump(config))) == hash(config)
    assert config.replace(order="lxf").strategies == config.strategies
    with pytest.raises(
        ConfigError, match=r"line 5: strategies\.hybrid = \{samples: 5\}: not allowed here: settings by"
    ):
        parse(text + "strategies:\n  hybrid: {samples: 5}\n")
    with pytest.raises(ConfigError, match=r"line 4: strategies\.samples = 5: too few"):
        parse(text + "strategies: {samples: 5}\n", check_setting=lambda name, value: "too few")


def test_a_job_stays_in_the_queue_it_names_and_else_goes_to_the_first_that_admits_it():
    queues = [QueueConfig(name="a", cores=(1, 8)), QueueConfig(name="b", cores=(1, 16), walltime=(0, 3600))]
    cores, walltime, named = (
        np.array(column) for column in ((4, 4, 16, 16, 4), (60, 60, 60, 7200, -1), (1, -1, 0, 1, 1))
    )
    admitted = [queue.admits(cores, walltime) for queue in queues]
    assert route(named, admitted).tolist() == [1, 0, 1, -1, 1]  # an unknown walltime: by the cores alone


def test_ranges_are_compared_in_whole_nodes():
    queue = QueueConfig(name="a", cores=(1, 9))
    assert queue.admits(np.array([8, 16, 24]), np.array([60, 60, 60]), grid=8).tolist() == [True, True, False]


def test_jobs_above_a_limit_on_running_cores_are_too_wide_and_limits_per_user_need_a_user():
    config = parse("machine: {cores: 16}\nqueues: [{name: a, max_user_cores: 8}]\nqos: [{name: gold, exempt: all}]")
    (queue,), cores, has_user = config.queues, np.array([8, 9, 9]), np.array([True, True, False])
    assert over_limit(config, queue, "max_user_cores", cores, has_user).tolist() == [False, True, False]
    assert over_limit(config, queue, "max_run_cores", cores, has_user).tolist() == [False, False, False]
    assert too_wide(config, queue, cores, has_user).tolist() == [False, True, False]
    qos = np.array(["", "gold", ""], dtype=object)
    assert not too_wide(config, queue, cores, has_user, qos).any()


def test_mistakes_come_back_from_workers_as_they_were():
    with pytest.raises(ConfigError) as caught:
        parse("machine: {cores: 0}\nqueues: [{name: a}]\n")
    caught.value.add_note("--resume goes on")
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.problems, again.__notes__) == (
        str(caught.value),
        caught.value.problems,
        ["--resume goes on"],
    )
