"""What an export with --current changes: nothing where nothing was asked, and else what was asked alone."""

import re

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from qconf.cli import qconf
from qconf.config import FairshareConfig, dump, parse
from qconf.config.billing import weights
from qconf.export import ExportError, exporter
from tests.beside import SHARED
from tests.qconf.export.sites import QUICK, new_conf, written

SITES = [*(SHARED / "slurm" / "real").glob("site-*.conf"), SHARED / "slurm" / "slurm.conf.in"]
SITES += [*(SHARED / "cases" / "slurm").glob("*.conf")]
QOS = SHARED / "cases" / "slurm" / "pqos.txt"
SITE = """\
ClusterName=c
PriorityType=priority/multifactor
PriorityWeightAge=1000
PriorityWeightAssoc=7
SchedulerParameters=defer,bf_window=4000
NodeName=n[1-8] CPUs=4
PartitionName=DEFAULT DefaultTime=30 State=UP Novelty=9
PartitionName=short Nodes=ALL MaxTime=2:00:00 QOS=fast
PartitionName=long Nodes=ALL MaxTime=7-0 Default=YES AllowAccounts=chem,phys DefMemPerCPU=2000
PartitionName=other Nodes=ALL MaxTime=1-0 QOS=both
PartitionName=more Nodes=ALL MaxTime=1-0 QOS=both
PartitionName=closed Nodes=n1 State=DOWN MaxTime=60
"""
LONG = "DefaultTime=30 State=UP Novelty=9 Nodes=ALL Default=YES AllowAccounts=chem,phys DefMemPerCPU=2000"
TABLE = "Name|GrpJobs|MaxWall\nnormal||\nfast|9|1:00:00\nboth|20|\n"


def opened(folder, text=SITE, table=TABLE):
    """Return the exporter for a slurm.conf, and the configuration that `init` writes of it."""
    (folder / "slurm.conf").write_text(text)
    (folder / "qos").write_text(table)
    target = exporter("slurm").of(current=folder / "slurm.conf", qos=folder / "qos")
    found = exporter("slurm").of().read(folder / "slurm.conf", qos=folder / "qos").config
    return target, parse(dump(found, "as init writes it"))


def rows(export):
    """Return the table of a plan: old and new by the setting."""
    lines = re.findall(r"^\| (.*?) \| (.*?) \| (.*?) \| .*? \|$", export.files["PLAN.md"], re.MULTILINE)
    return {setting: (old, new) for setting, old, new in lines if setting not in ("setting", "---")}


@pytest.mark.skipif(not SITES[0].exists() if SITES else True, reason="the files of sites are not here")
@pytest.mark.parametrize("path", SITES, ids=lambda path: path.name)
def test_a_configuration_that_was_not_changed_has_nothing_to_load(path, tmp_path):
    for options in (["--qos", str(QOS)], []):
        made = CliRunner().invoke(qconf, ["init", "--from-slurm", str(path), *options])
        if made.exit_code:
            pytest.skip(f"init does not take it: {made.output[-200:]}")
        (tmp_path / "site.yaml").write_text(made.stdout)
        given = ["export", str(tmp_path / "site.yaml"), "--target", "slurm", "--current", str(path), *options]
        done = CliRunner().invoke(qconf, [*given, "-o", str(tmp_path / "out")])
        assert done.exit_code == 0, done.output
        assert "Your cluster is this configuration already" in done.output
        assert sorted(each.name for each in (tmp_path / "out").iterdir()) == ["PLAN.md", "export.json"]


WORDS = {
    "MaxTime": ["30", "1-0", "UNLIMITED", "12:00:00", "infinite"],
    "DefaultTime": ["10", "0:30:00"],
    "Default": ["YES", "NO", "True", "0"],
    "MinNodes": ["1", "2"],
    "MaxNodes": ["3", "UNLIMITED"],
    "PriorityTier": ["1", "5", "20"],
    "PriorityJobFactor": ["1", "100"],
    "OverSubscribe": ["NO", "EXCLUSIVE", "FORCE:2"],
    "State": ["UP", "UP", "DOWN", "INACTIVE"],
    "Hidden": ["YES", "NO", "up", "FALSE"],
    "QOS": ["high", "p_gpu"],
    "AllowAccounts": ["ALL", "chem,phys"],
    "DenyQos": ["low"],
    "AllowGroups": ["staff"],
    "TRESBillingWeights": ["CPU=1.0,Mem=0.25G", '"CPU=1,GRES/gpu:a-1=20,gres/gpu=.5"', "Node=3", "mem=2"],
    "DefMemPerCPU": ["2000"],
    "LLN": ["YES"],
    "GraceTime": ["60"],
    "ExclusiveUser": ["YES"],
    "PreemptMode": ["REQUEUE", "OFF"],
    "MaxCPUsPerNode": ["2", "UNLIMITED"],
    "SelectTypeParameters": ["CR_Core"],
}
SETTINGS = {
    "PriorityType": ["priority/multifactor", "priority/basic"],
    "PriorityWeightAge": ["1000", "0"],
    "PriorityWeightFairshare": ["5000"],
    "PriorityWeightPartition": ["100"],
    "PriorityMaxAge": ["14-0"],
    "PriorityFlags": ["NO_FAIR_TREE", "CALCULATE_RUNNING", "max_tres", "DEPTH_OBLIVIOUS,MAX_TRES,NO_FAIR_TREE"],
    "SchedulerType": ["sched/builtin", "sched/backfill"],
    "SchedulerParameters": ["defer,bf_window=5000", "bf_max_job_user=7"],
    "PreemptType": ["preempt/partition_prio", "preempt/qos"],
    "SelectType": ["select/cons_tres", "select/linear"],
    "AccountingStorageEnforce": ["limits,qos"],
    "JobSubmitPlugins": ["lua"],
}


@st.composite
def words(draw, known):
    chosen = draw(st.lists(st.sampled_from(sorted(known)), max_size=5, unique=True))
    case = draw(st.sampled_from([str, str.lower, str.upper]))
    return [f"{case(name)}={draw(st.sampled_from(known[name]))}" for name in chosen]


@st.composite
def confs(draw):
    """A slurm.conf and the file that it includes: lines of DEFAULT, several partitions, and some of their words."""
    lines = ["ClusterName=c", *draw(words(SETTINGS)), "NodeName=n[1-4] CPUs=4", "NodeName=g[1-2] CPUs=8"]
    parts = []
    for number in range(draw(st.integers(1, 4))):
        if draw(st.integers(0, 3)) == 0:
            parts.append(f"PartitionName=DEFAULT {' '.join(draw(words(WORDS)))}")
        nodes = draw(st.sampled_from(["ALL", "n[1-4]", "g[1-2]", "n[1-2],g1"]))
        middle = draw(st.sampled_from([" ", " \\\n  "]))
        parts.append(f"PartitionName=p{number} Nodes={nodes}{middle}{' '.join(draw(words(WORDS)))} # p{number}")
    text = "".join(f"{line}\n" for line in parts)
    inside = draw(st.booleans())
    return "".join(f"{line}\n" for line in lines) + (text if inside else "include parts.conf\n"), text


def of_use(config, **update):
    return config.replace(fairshare=(config.fairshare or FairshareConfig()).model_copy(update=update))


ORDER = r"Priority.*|partition \S+: Priority(Tier|JobFactor)"
BILLING = r"partition \S+: TRESBillingWeights"
#: What is edited, and the settings that change by it.
EDITS = {
    "order: fcfs": (lambda config: config.replace(order="fcfs"), ORDER),
    "order: age": (lambda config: config.replace(order="min(eligible_time, 86400)"), ORDER),
    "billing: weights": (lambda config: changed(config, config.names[-1], billing="CPU=2,Mem=.5G,GRES/ssd=1"), BILLING),
    "billing: none": (lambda config: changed(config, config.names[0], billing=None), BILLING),
    "charges": (lambda config: of_use(config, charges={"cores": 0.5, "memory": 3, "gpus": 7}), BILLING),
    "charged: max": (lambda config: of_use(config, charged="max"), "PriorityFlags"),
    "charged: sum": (lambda config: of_use(config, charged="sum"), "PriorityFlags"),
    "fair_share": (lambda config: of_use(config, fair_share="classic"), "PriorityFlags"),
    "usage_factor": (
        lambda config: config.replace(
            qos=[each.model_copy(update={"usage_factor": each.usage_factor and 1.5}) for each in config.qos]
        ),
        "qos .* UsageFactor",
    ),
}


def charging(config):
    """What decides on the charges of jobs: by queue and by QOS; and how they count, where the order reads them."""
    default = dict(config.tree.charges)
    of_queues = {queue.name: weights(queue.billing) or default for queue in config.queues}
    use = (config.tree.charged, config.tree.fair_share) if config.is_fair else None
    return of_queues, {each.name: each.usage_factor for each in config.qos}, use


def after(folder, table, export):
    """Return what init reads once an export is loaded."""
    written(folder, export.files)
    words = dict(re.findall(r"modify qos (\S+) set UsageFactor=(\S+)", export.files.get("classes.sacctmgr", "")))
    lines = [line.split("|") for line in table.splitlines()]
    lines = [[*line[:-1], words.get(line[0], line[-1])] for line in lines]
    (folder / "qos").write_text("".join("|".join(line) + "\n" for line in lines))
    conf = folder / "slurm.conf"
    if "new-conf" in export.files:
        new_conf(folder, conf.read_text(), folder)
        conf = folder / "slurm.conf.after"
    return exporter("slurm").of().read(conf, qos=folder / "qos").config


@settings(QUICK, max_examples=40)
@given(site=confs(), edit=st.sampled_from([*EDITS]), factor=st.sampled_from(["1.000000", "0.250000", "0"]))
def test_of_any_slurm_conf_nothing_is_loaded_and_an_edit_changes_its_settings_alone(
    site, edit, factor, tmp_path_factory
):
    folder = tmp_path_factory.mktemp("site")
    (folder / "parts.conf").write_text(site[1])
    table = f"Name|GrpJobs|Priority|UsageFactor\nnormal||0|1.000000\nhigh|5|10|{factor}\n"
    try:
        target, config = opened(folder, site[0], table)
    except Exception:  # noqa: BLE001 - what init does not take
        return
    assert list(target.export(config).files) == ["PLAN.md"]
    change, settings = EDITS[edit]
    wanted = change(config)
    try:
        found = target.export(wanted)
    except ExportError:
        return
    assert [name for name in rows(found) if not re.fullmatch(settings, name, re.IGNORECASE)] == []
    assert "job_submit.lua" not in found.files
    assert {name for name in found.files if name.endswith(".sacctmgr")} <= {"classes.sacctmgr"}
    if not edit.startswith("order"):
        assert charging(after(folder, table, found)) == charging(wanted)


def test_of_an_order_alone_settings_are_written_alone(tmp_path):
    target, config = opened(tmp_path)
    found = target.export(config.replace(order="min(eligible_time, 86400)"))
    assert sorted(found.files) == ["PLAN.md", "load-conf", "move-jobs", "new-conf"]
    assert rows(found) == {
        "PriorityMaxAge": ("none", "1-00:00:00"),
        "PriorityWeightAge": ("1000", "86400"),
    } | {name: of for name, of in rows(found).items() if name in ("PriorityCalcPeriod", "PriorityType")}
    points = target.export(config.replace(order="min(eligible_time, 86400) + (60 if walltime <= 3600 else 0)"))
    assert "default_of(part_list)" in points.files["job_submit.lua"]
    assert "no queue takes" not in points.files["job_submit.lua"]
    assert rows(points)["JobSubmitPlugins"] == ("none", "lua")
    target, config = opened(tmp_path, f"JobSubmitPlugins=lua\n{SITE}")
    points = target.export(config.replace(order="min(eligible_time, 86400) + (60 if walltime <= 3600 else 0)"))
    assert rows(points)["job_submit.lua"] == ("the site's own", "the export's")


def changed(config, name, **update):
    queues = [queue.model_copy(update=update) if queue.name == name else queue for queue in config.queues]
    return config.replace(queues=tuple(queues))


def test_a_partition_that_changes_keeps_all_else(tmp_path):
    target, config = opened(tmp_path)
    found = target.export(changed(config, "long", walltime=(0, 3 * 86400)))
    assert rows(found) == {"partition long: MaxTime": ("7-0", "3-00:00:00")}
    lines = [line for line in found.files["partitions.conf"].splitlines() if line.startswith("Part")]
    assert lines == [
        f"PartitionName=long {LONG} MaxTime=3-00:00:00",
        "PartitionName=short DefaultTime=30 State=UP Novelty=9 Nodes=ALL MaxTime=2:00:00 QOS=fast",
        "PartitionName=other DefaultTime=30 State=UP Novelty=9 Nodes=ALL MaxTime=1-0 QOS=both",
        "PartitionName=more DefaultTime=30 State=UP Novelty=9 Nodes=ALL MaxTime=1-0 QOS=both",
        "PartitionName=closed DefaultTime=30 State=DOWN Novelty=9 Nodes=n1 MaxTime=60",
    ]
    assert not {"job_submit.lua", "qos.sacctmgr"} & {*found.files}
    written(tmp_path, found.files, "new-conf", "partitions.conf")
    assert new_conf(tmp_path, SITE, tmp_path) == "long: MaxTime=7-0 becomes 3-00:00:00\n"
    assert [line for line in (tmp_path / "partitions.conf").read_text().splitlines() if line[:1] == "P"] == lines
    after = (tmp_path / "slurm.conf.after").read_text().splitlines()
    assert after == [line for line in SITE.splitlines() if "Partition" not in line] + ["include partitions.conf"]


def test_what_ends_is_named_and_a_new_partition_has_what_default_says(tmp_path):
    target, config = opened(tmp_path)
    queues = [queue for queue in config.queues if queue.name != "long"]
    queues.append(queues[0].model_copy(update={"name": "wide", "cores": (5, 32), "max_run": None}))
    found = target.export(config.replace(queues=tuple(queues)))
    gone = LONG.replace("ALL", "ALL MaxTime=7-0")
    assert rows(found)["partition long"] == (gone, "none")
    assert rows(found)["partition short: Default"] == ("none", "YES")
    wide = next(line for line in found.files["partitions.conf"].splitlines() if line.startswith("PartitionName=wide"))
    assert "DefaultTime=30 Novelty=9" in wide
    assert "no queue takes a job" in found.files["job_submit.lua"]


def test_limits_go_into_the_qos_that_the_partition_has_alone(tmp_path):
    target, config = opened(tmp_path)
    found = target.export(changed(config, "short", max_run=4))
    assert found.files["qos.sacctmgr"] == "modify qos fast set GrpJobs=4\n"
    assert rows(found) == {"qos fast set GrpJobs": ("9", "4")}
    assert sorted(found.files) == ["PLAN.md", "accounts", "qos.sacctmgr"]
    assert "load-conf" not in found.files["PLAN.md"].partition("## 1.")[2]
    lifted = target.export(changed(config, "short", max_run=None))
    assert lifted.files["qos.sacctmgr"] == "modify qos fast set GrpJobs=-1\n"
    shared = target.export(changed(config, "other", max_run=4))
    assert "modify qos other set GrpJobs=4" in shared.files["qos.sacctmgr"].splitlines()
    assert rows(shared)["partition other: QOS"] == ("both", "other")


def test_limits_of_a_qos_that_ends_are_lifted_also_where_none_is_left(tmp_path):
    table = "Name|Priority|GrpJobs|UsageFactor\nnormal|0||1.000000\ngold|20|5|1.000000\nslow|0||0.500000\n"
    target, config = opened(tmp_path, SITE.replace(" QOS=fast", "").replace(" QOS=both", ""), table)
    found = target.export(config.replace(qos=(), throttles=()))
    lifted = ["modify qos slow set UsageFactor=-1", "modify qos gold set GrpJobs=-1"]
    assert sorted(found.files["classes.sacctmgr"].splitlines()) == sorted(lifted)
    assert "accounts load classes.sacctmgr" in found.files["PLAN.md"]
    assert re.search(r"sacctmgr show qos (gold,slow|slow,gold) ", found.files["PLAN.md"])
    target, config = opened(tmp_path, table=TABLE.replace("\n", "|\n") + "slow||1:00:00|0.5\n")
    of_queues = target.export(config.replace(qos=(), throttles=()))  # which the site does not enforce
    assert "AccountingStorageEnforce" not in rows(of_queues)


def test_parts_alone(tmp_path):
    _, config = opened(tmp_path)
    wanted = changed(config.replace(order="min(eligible_time, 86400)"), "long", walltime=(0, 86400), max_run=5)
    files = {"current": tmp_path / "slurm.conf", "qos": tmp_path / "qos"}
    of = {part: rows(exporter("slurm").of(**files, only=(part,)).export(wanted)) for part in ("order", "queues")}
    assert all(name.startswith("Priority") for name in of["order"])
    assert of["queues"] == {"partition long: MaxTime": ("7-0", "1-00:00:00")}
