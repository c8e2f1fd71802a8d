"""An export of what differs from a server's slurm.conf: it changes that alone, and its undo leaves nothing of it."""

import pytest

from qconf.config import dump, parse
from qconf.export import exporter
from qconf.export.directory import write_export
from tests.real_slurm.conftest import NODES, problems
from tests.servers.rehearsal import Plan, saved
from tests.servers.slurm import rehearse
from tests.servers.slurm_changes import shown
from tests.servers.slurm_jobs import tasks
from tests.servers.slurm_server import PrivateSlurm

LINES = """\
SchedulerType=sched/backfill
PriorityType=priority/multifactor
PriorityWeightAge=1000
PriorityMaxAge=7-0
SchedulerParameters=defer,bf_interval=1,bf_max_job_test=200
PartitionName=DEFAULT DefaultTime=5 State=UP GraceTime=30
PartitionName=short Nodes=ALL MaxTime=1:00:00 QOS=fast AllowAccounts=all,root
PartitionName=long Nodes=ALL MaxTime=7-0 Default=YES DefMemPerCPU=1 OverTimeLimit=3 Hidden=YES
PartitionName=closed Nodes=n1 State=DOWN MaxTime=60 DisableRootJobs=YES
"""


def changed(config, name, **update):
    queues = [queue.model_copy(update=update) if queue.name == name else queue for queue in config.queues]
    return config.replace(queues=tuple(queues))


CHANGES = {
    "order": (
        lambda config: config.replace(order="min(eligible_time, 86400) + (60 if walltime <= 3600 else 0)"),
        {("", name) for name in ("PriorityMaxAge", "PriorityWeightAge", "PriorityWeightPartition", "JobSubmitPlugins")},
    ),
    "limit": (lambda config: changed(config, "short", max_run=2), set()),
    "partition": (lambda config: changed(config, "long", walltime=(0, 3 * 86400)), {("long", "MaxTime")}),
    "charges": (
        lambda config: changed(config, "long", billing="CPU=2,Mem=0.5G").replace(
            qos=tuple(each.model_copy(update={"usage_factor": 0.25}) for each in config.qos)
        ),
        {("long", "TRESBillingWeights"), ("long", "TRES")},  # the latter counts what is billed
    ),
    "no qos": (lambda config: config.replace(qos=(), throttles=()), set()),
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_differs_is_loaded_alone_and_comes_back(what, tmp_path):
    change, words = CHANGES[what]
    lines = LINES.replace(" QOS=fast", "")
    with PrivateSlurm(NODES, lines, accounting=True) as server:
        server.run("sacctmgr -i add qos fast,slow; sacctmgr -i modify qos fast set GrpJobs=5 MaxWall=60")
        server.run("sacctmgr -i modify qos slow set GrpJobs=3 UsageFactor=0.5")
        server.run("sed -i 's/^PartitionName=short /&QOS=fast /' /etc/slurm/slurm.conf; systemctl restart slurmctld")
        server.wait("scontrol ping | grep -q UP", "no controller")
        for name, command in (("slurm.conf", "cat /etc/slurm/slurm.conf"), ("qos", "sacctmgr -P show qos")):
            (tmp_path / name).write_text(server.run(command).stdout)
        files = {"current": tmp_path / "slurm.conf", "qos": tmp_path / "qos"}
        found = exporter("slurm").of().read(files["current"], qos=files["qos"]).config
        config = parse(dump(found, "as init writes it"))
        assert list(exporter("slurm").of(**files).export(config).files) == ["PLAN.md"]
        write_export(tmp_path / "export", exporter("slurm").of(**files).export(change(config)).files)
        plan = Plan(tmp_path / "export")
        plan.put(server)
        submit = "sbatch --parsable --output=/dev/null --begin=now+1day --ntasks=1 --wrap true"
        jobs = [server.run(f"{submit} {words}", user="alice").stdout.strip() for words in ("", "--partition=short")]
        before, there, held = saved(server), shown(server), tasks(server)
        assert problems(server, plan.steps) == []
        loaded = shown(server)
        differ = {key for key in {*loaded, *there} if loaded.get(key) != there.get(key)}
        assert differ - {("", "PriorityCalcPeriod")} == words
        if what == "limit":
            qos = server.run("sacctmgr -nP show qos fast format=GrpJobs,MaxWall").stdout.strip()
            assert qos == "2|01:00:00"
        if what == "charges":
            factor = server.run("sacctmgr -nP show qos normal format=UsageFactor").stdout.strip()
            assert factor == "0.250000"
        if what == "no qos":
            qos = server.run("sacctmgr -nP show qos slow format=GrpJobs,UsageFactor").stdout.strip()
            assert qos == "|1.000000"
        assert problems(server, plan.undo) == []
        assert saved(server) == before
        assert shown(server) == there
        for of in (held, tasks(server)):
            assert [of[job]["Partition"] for job in jobs] == ["long", "short"]


@pytest.mark.parametrize("what", [what for what in CHANGES if what != "no qos"])  # slurm.conf alone names no QOS
def test_it_is_rehearsed_on_the_slurm_conf_that_it_was_made_from(what, tmp_path):
    nodes = "".join(f"NodeName={name} CPUs={cores}\n" for name, cores in NODES.items())
    (tmp_path / "slurm.conf").write_text(f"ClusterName=m\n{nodes}{LINES}")
    of = exporter("slurm").of(current=tmp_path / "slurm.conf")
    write_export(tmp_path / "export", of.export(CHANGES[what][0](of.read(tmp_path / "slurm.conf").config)).files)
    found = rehearse(tmp_path / "export", current=tmp_path / "slurm.conf")
    assert (found.problems, found.rolled_back) == ([], True)
    assert found.jobs == 6
