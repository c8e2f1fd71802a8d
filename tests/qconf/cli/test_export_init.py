import pytest
from click.testing import CliRunner

from qconf.cli import qconf
from qconf.config import load, parse
from qconf.errors import QconfError
from qconf.text import as_json
from tests.qconf.export.pbs.model import PbsServer
from tests.qconf.export.sites import CRAY, FRESH, HYBRID


def run(*arguments):
    return CliRunner().invoke(qconf, [str(argument) for argument in arguments])


def written(*arguments):
    """Run a command that comes to its end."""
    done = run(*arguments)
    assert done.exit_code == 0, done.output
    return done


@pytest.fixture
def site(tmp_path):
    path = tmp_path / "site.yaml"
    path.write_text(HYBRID)
    return path


def test_export_writes_every_file(site, tmp_path):
    (tmp_path / "current").write_text(FRESH)
    done = written("export", site, "--nodes", "nid[01-12]", "--current", tmp_path / "current", "-o", tmp_path / "out")
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"queues.qmgr", "nodes.qmgr", "rollback.qmgr", "PLAN.md", "qconf-promote"} <= names
    assert "Left as they are" in done.stderr
    assert str(tmp_path / "out" / "PLAN.md") in done.stdout


def test_export_leaves_nothing_of_an_earlier_one(site, tmp_path):
    written("export", site, "--nodes", "nid[01-12]", "-o", tmp_path / "out")
    (tmp_path / "out" / "mine.txt").write_text("kept")
    written("export", CRAY, "-o", tmp_path / "out")
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"queues.qmgr", "sched_config.changes", "PLAN.md", "step", "qconf-pbs", "export.json", "mine.txt"}


def test_export_replaces_and_takes_away_nothing_but_its_own(site, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "PLAN.md").write_text("mine")
    refused = run("export", site, "--nodes", "nid[01-12]", "-o", out)
    assert "PLAN.md: is there already, and no export.json says that an export wrote it" in str(refused.exception)
    assert [path.name for path in out.iterdir()] == ["PLAN.md"]
    (out / "PLAN.md").unlink()
    (out / "job_submit.lua").write_text("mine")
    written("export", site, "--nodes", "nid[01-12]", "-o", out)
    assert (out / "nodes.qmgr").is_file()
    edited = out / "rollback.qmgr"
    edited.write_text("edited")
    slurm = run("export", site, "--target", "slurm", "--nodes", "nid[01-12]", "-o", out)
    assert "job_submit.lua: is there already" in str(slurm.exception)
    (out / "job_submit.lua").unlink()
    written("export", site, "--target", "slurm", "--nodes", "nid[01-12]", "-o", out)
    assert "PartitionName=small" in (out / "partitions.conf").read_text()
    assert not (out / "nodes.qmgr").exists()
    assert edited.read_text() == "edited"


def test_export_may_replace_what_a_run_wrote_beside_its_record(site, tmp_path):
    out = tmp_path / "run" / "pbs"
    out.mkdir(parents=True)
    (out / "PLAN.md").write_text("of the run")
    (out / "mine").write_text("mine")
    (tmp_path / "run" / "run.json").write_text('{"files": {"report.html": "", "pbs/PLAN.md": "", "pbs/x/y": ""}}')
    written("export", site, "--nodes", "nid[01-12]", "-o", out)
    assert (out / "PLAN.md").read_text().startswith("# Plan: tiny, mode hybrid")
    assert "nid01" in (out / "nodes.qmgr").read_text()
    assert (out / "mine").read_text() == "mine"


def test_export_does_not_overwrite_what_it_reads(site, tmp_path):
    printed = tmp_path / "queues.qmgr"
    printed.write_text("create queue old\nset queue old queue_type = Execution\nset queue old enabled = True\n")
    before = printed.read_text()
    refused = run("export", site, "--nodes", "nid[01-12]", "--current", printed, "-o", tmp_path)
    assert "queues.qmgr: is an input, and would be overwritten" in str(refused.exception)
    assert printed.read_text() == before


def test_export_writes_nothing_when_it_refuses(site, tmp_path):
    site.write_text(HYBRID.replace("name: small", 'name: "small;x"'))
    done = run("export", site, "-o", tmp_path / "out")
    assert isinstance(done.exception, QconfError)
    assert "small;x" in str(done.exception)
    assert not (tmp_path / "out").exists()


@pytest.fixture
def earlier(tmp_path):
    """A run directory of which only the record is there: as PBS takes it, as only a script can, and not at all."""
    config = parse(HYBRID)
    plain = {"ineligible": "", "not_exportable": ""}
    rows = [
        {"name": "current", "config": load(CRAY).model_dump(mode="json")} | plain,
        {"name": "hybrid", "config": config.model_dump(mode="json")} | plain | {"ineligible": "it is slow"},
        {"name": "auto", "config": config.replace(backfill=False).model_dump(mode="json")} | plain,
    ]
    folder = tmp_path / "log"
    folder.mkdir()
    record = {"verdict": "KEEP", "versions": {"qconf": "0"}, "strategies": rows, "files": {}}
    (folder / "run.json").write_text(as_json(record))
    return folder


def test_export_of_a_strategy_of_a_run(earlier, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = (earlier / "run.json").read_bytes()
    done = written("export", "--run", "log", "--strategy", "hybrid", "--nodes", "nid[01-12]")
    out = tmp_path / "reports" / "log-hybrid" / "pbs"
    assert load(out / "config.yaml") == parse(HYBRID)
    assert "# ineligible: it is slow" in (out / "config.yaml").read_text()
    assert "note: hybrid is ineligible: it is slow" in done.stderr
    assert {path.name for path in out.iterdir()} >= {"config.yaml", "queues.qmgr", "PLAN.md", "qconf-promote"}
    assert set(done.stdout.split()) == {
        str(path.relative_to(tmp_path)) for path in out.iterdir() if path.name != "export.json"
    }
    assert (earlier / "run.json").read_bytes() == before
    # the same files as those of its configuration
    written("export", out / "config.yaml", "--nodes", "nid[01-12]", "-o", tmp_path / "again")
    for path in (tmp_path / "again").iterdir():
        assert path.name == "export.json" or path.read_bytes() == (out / path.name).read_bytes()


def test_of_what_is_not_exportable_the_configuration_is_written(earlier, tmp_path):
    done = run("export", "--run", earlier, "--strategy", "auto", "-o", tmp_path / "out")
    assert isinstance(done.exception, QconfError)
    assert "backfill: false on a partitioned machine" in str(done.exception)
    assert f"Only the configuration was written: {tmp_path / 'out' / 'config.yaml'}" in str(done.exception)
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"config.yaml", "export.json"}
    assert load(tmp_path / "out" / "config.yaml") == parse(HYBRID).replace(backfill=False)


def test_export_of_an_unknown_strategy_writes_nothing(earlier, tmp_path):
    done = run("export", "--run", earlier, "--strategy", "nosuch", "-o", tmp_path / "out")
    assert "no such strategy in this run. Choose among current, hybrid, auto." in str(done.exception)
    assert not (tmp_path / "out").exists()


def test_init_from_pbs_and_back(tmp_path):
    written("export", CRAY, "-o", tmp_path / "out")
    printed = tmp_path / "print_server.txt"
    printed.write_text(PbsServer((tmp_path / "out" / "queues.qmgr").read_text()).printed())
    written("init", "--from-pbs", printed, "--cores", 35232, "--name", "cray", "-o", tmp_path / "site.yaml")
    assert load(tmp_path / "site.yaml").names == load(CRAY).names
    again = run("init", "--from-pbs", printed, "-o", tmp_path / "site.yaml")
    assert "is there already" in str(again.exception)
    written("init", "--from-pbs", printed, "-o", tmp_path / "site.yaml", "--force")
    text = (tmp_path / "site.yaml").read_text()
    assert "# * machine.cores = 22800 is a guess" in text


def test_init_from_a_history_alone(tmp_path):
    history = tmp_path / "history.csv"
    rows = "1,0,10,60,4,small\n2,5,10,120,8,big\n3,5,10,120,99,big\n"
    history.write_text("job_id,submit,runtime,walltime,cores,queue\n" + rows)
    done = written("init", "--history", history, "--cores", 16)
    found = "jobs wider than the machine of 16 cores are left out: 1 of big"
    assert f"warning: {found}\n" in done.stderr
    assert f"# * {found}\n" in done.stdout
    (tmp_path / "site.yaml").write_text(done.stdout)
    config = load(tmp_path / "site.yaml")
    assert config.machine.cores == 16
    assert sorted(config.names) == ["big", "small"]


def test_init_takes_the_machine_from_a_history(tmp_path):
    (tmp_path / "print_server.txt").write_text(FRESH)
    history = tmp_path / "log.swf"
    history.write_text("; MaxProcs: 64\n1 0 0 10 4 -1 -1 4 60 -1 1 1 1 -1 1 -1 -1 -1\n")
    done = written("init", "--from-pbs", tmp_path / "print_server.txt", "--history", history)
    assert "cores: 64" in done.stdout


def test_downtimes_of_types_of_nodes(tmp_path):
    (tmp_path / "slurm.conf").write_text("NodeName=a CPUs=8 Gres=gpu:2\nNodeName=b CPUs=8\nPartitionName=p Nodes=ALL\n")
    (tmp_path / "events").write_text(
        "NodeName|TimeStart|TimeEnd|State|Reason|User|TRES\n"
        "a|2026-03-01T08:00:00|2026-03-01T10:00:00|DOWN*|failed|root|cpu=8,mem=1M,billing=8\n"
        "b|2026-03-01T08:00:00|2026-03-01T10:00:00|DOWN*|failed|root|cpu=8,mem=1M,billing=8\n"
        "x|2026-03-01T08:00:00|2026-03-01T10:00:00|DOWN*|failed|root|cpu=8,mem=1M,billing=8\n"
    )
    shown = (
        "ReservationName={} StartTime=2026-03-09T08:00:00 EndTime=2026-03-09T{}:00:00 Nodes=b CoreCnt={} Users=ann\n"
    )
    (tmp_path / "reservations").write_text(RESERVED + shown.format("part", 17, 4) + shown.format("whole", 18, 8))
    given = [word for name in ("events", "reservations") for word in ("--downtimes", tmp_path / name)]
    done = written("init", "--from-slurm", tmp_path / "slurm.conf", *given)
    assert "1 times: 1 nodes that the configuration does not have are left out" in done.stderr
    assert "1 times: of a reservation of parts of nodes, as many whole nodes as its cores fill are taken" in done.stderr
    assert "shortpools: left out, they name no types of nodes" in done.stderr
    config = parse(done.stdout)
    assert [each.gpus for each in config.nodes] == [2, 0]
    assert [(each.end[8:13], each.nodes, each.cores, each.users) for each in config.downtime] == [
        ("01T10", (0, 1), None, ()),
        ("09T18", (1,), None, ("ann",)),
    ]


RESERVED = """\
ReservationName=shortpool_7200_1 StartTime=2026-01-05T08:00:00 EndTime=2026-01-05T18:00:00 Duration=10:00:00
   Nodes=n[1-2] NodeCnt=2 CoreCnt=16 Features=(null) PartitionName=p Flags=FLEX,IGNORE_JOBS,WEEKDAY,SPEC_NODES
   TRES=cpu=16
   Users=-daemon Groups=(null) Accounts=(null) Licenses=(null) State=INACTIVE BurstBuffer=(null) Watts=n/a
   MaxStartDelay=(null)
"""
FOR_ANN = """\
ReservationName=course StartTime=2026-01-05T08:00:00 EndTime=2026-01-05T18:00:00 Duration=10:00:00
   Nodes=n[1-2] NodeCnt=2 CoreCnt=16 Features=(null) PartitionName=p Flags=SPEC_NODES
   TRES=cpu=16
   Users=ann Groups=(null) Accounts=(null) Licenses=(null) State=INACTIVE BurstBuffer=(null) Watts=n/a
   MaxStartDelay=(null)
"""


@pytest.mark.parametrize("text", [RESERVED, FOR_ANN])
@pytest.mark.parametrize(
    ("parameters", "reserving"),
    [("bf_busy_nodes,bf_job_part_count_reserve=1", ("queues", 1)), ("bf_job_part_count_reserve=3", ("cores", 3))],
)
def test_what_is_kept_goes_with_reservations_of_several_jobs(tmp_path, text, parameters, reserving):
    (tmp_path / "slurm.conf").write_text(
        f"SchedulerParameters={parameters}\nNodeName=n[1-4] CPUs=8\nPartitionName=p Nodes=ALL\n"
    )
    (tmp_path / "reservations").write_text(text)
    done = written("init", "--from-slurm", tmp_path / "slurm.conf", "--downtimes", tmp_path / "reservations")
    config = parse(done.stdout)
    assert (config.reserve, config.reservation_depth) == reserving
    assert len(config.shortpools) + len(config.downtime) == 1


def test_tiers_go_without_shortpools(tmp_path):
    (tmp_path / "slurm.conf").write_text(
        "PreemptType=preempt/partition_prio\nPreemptMode=REQUEUE\nNodeName=n[1-4] CPUs=8\n"
        "PartitionName=p Nodes=ALL PriorityTier=2\nPartitionName=q Nodes=ALL\n"
    )
    (tmp_path / "reservations").write_text(RESERVED)
    done = written("init", "--from-slurm", tmp_path / "slurm.conf", "--downtimes", tmp_path / "reservations")
    assert "downtime and shortpools: left out, queues of different tiers go without" in done.stderr
    config = parse(done.stdout)
    assert (config.shortpools, [queue.tier for queue in config.queues]) == ((), [1, 0])


def test_shares_that_are_not_given_are_named(tmp_path):
    weights = "PriorityType=priority/multifactor\nPriorityWeightFairshare=1000\n"
    (tmp_path / "slurm.conf").write_text(f"{weights}NodeName=n[1-4] CPUs=8\nPartitionName=p Nodes=ALL\n")
    (tmp_path / "shares").write_text("root|||1\nphysics|root||60\nphysics||alice|2\n")
    missing = "shares: every user has an equal one; --shares gives those of the batch system"
    done = run("init", "--from-slurm", tmp_path / "slurm.conf")
    assert missing in done.stderr
    done = run("init", "--from-slurm", tmp_path / "slurm.conf", "--shares", tmp_path / "shares")
    assert missing not in done.stderr
    assert len(parse(done.stdout).shares) == 2
