"""Predicted run times on Slurm: points that job_submit.lua gives by its table, and back."""

import os
import re
import time

import pytest

from qconf.config import parse
from qconf.config.multifactor import Multifactor
from qconf.errors import ExportError
from qconf.export import exporter
from qconf.export.estimates import OLDEST, PRIOR, VERSION, Estimates
from qconf.history import clean, read
from qconf.prediction.runtimes import Means
from tests.qconf.export.estimated import JOBS, write_log
from tests.qconf.export.sites import new_conf, slurm_files, slurm_read, written
from tests.qconf.export.slurm.test_scripts import OFFSET, SUBMIT, called, moved, needs_lua, waiting

ORDER = (
    "min(eligible_time, 86400) + (72 if walltime <= 3600 else 0)"
    " + (500 if estimate <= 600 else 20 if estimate <= 7100 else 0)"
)
SITE = (
    f"machine: {{name: m, cores: 64}}\norder: {ORDER}\nqueues: [{{name: work, cores: [1, 64], walltime: [0, 48h]}}]\n"
)
RECORD = {"user_id": 7, "partition": "work", "min_cpus": 1, "min_nodes": 1, "time_limit": 100, "job_state": 0}


@pytest.fixture
def log(tmp_path):
    return write_log(tmp_path / "log.csv")


def files_of(log, text=SITE, **options):
    return exporter("slurm").of(estimates=log, **options).export(parse(text)).files


def submitted(folder, files, user, cores, minutes=None, *, modify=False, table=None, seconds=False):
    """Submit a job; return its site factor, or the seconds expected, its nice value, and the lines said."""
    lua = files["job_submit.lua"].replace("/etc/slurm", str(folder))
    lua = lua.replace("of_class(EXPECTED, done", "(done") if seconds else lua
    (folder / "qconf_estimate.txt").write_text(files["qconf_estimate.txt"] if table is None else table)
    if table == "none":
        (folder / "qconf_estimate.txt").unlink()
    job = {"user_name": user, "num_tasks": cores, "nice": OFFSET + 7} | ({"time_limit": minutes} if minutes else {})
    does = "slurm_job_modify(one, other, {}, 7)" if modify else SUBMIT
    *said, last = called(folder, lua, f"{does}, one.site_factor or 'none', one.nice", (job, RECORD | {"nice": OFFSET}))
    assert last[0] == "0"
    return float(last[1]), int(float(last[2])) - OFFSET, [" ".join(words) for words in said]


@needs_lua
@pytest.mark.parametrize(
    ("user", "cores", "minutes"),
    [("ann", 4, 120), ("ann", 5, 120), ("ann", 1, 1), ("bob", 64, 1500), ("new", 4, 120), ("a.*", 1, 60)],
)
def test_lua_predicts_as_the_model_does(user, cores, minutes, tmp_path, log):
    model = Means()
    for name, of, limit, ran in sorted(JOBS, key=lambda job: JOBS.index(job) + job[3]):
        model.add(name, "", of, limit, ran / limit)
    found, _, said = submitted(tmp_path, files_of(log), user, cores, minutes, seconds=True)
    assert said == []
    assert found == pytest.approx(model.estimate(user, "", cores, 60 * minutes), rel=0.01)


@needs_lua
def test_points_are_the_site_factor_beside_the_nice_value(tmp_path, log):
    files = files_of(log)
    assert [submitted(tmp_path, files, "ann", *job) for job in ((1, 60), (4, 120), (64,))] == [
        (500, 7, []),
        (20, 79, []),
        (0, 79, []),  # as long as the queue takes
    ]
    assert submitted(tmp_path, files, "ann", 1, 60, modify=True)[:2] == (500, 7)
    endless = files_of(log, SITE.replace(", walltime: [0, 48h]", ""))
    assert submitted(tmp_path, endless, "ann", 1) == (0, 79, [])
    plain = files_of(log, SITE.replace("estimate", "ncpus"))
    assert "qconf_estimate.txt" not in plain
    assert "site_factor" not in plain["job_submit.lua"]


@needs_lua
@pytest.mark.parametrize(
    ("table", "why"),
    [
        ("none", "No such file"),
        ("", "another version"),
        (f"{VERSION}.1 {int(time.time())}\n", "another version"),
        (f"{VERSION} {int(time.time()) - 86400 * OLDEST - 9}\n", f"older than {OLDEST} days"),
        (f"{VERSION} {int(time.time())}\n*\t:=3\t\n", "arithmetic"),
    ],
    ids=["absent", "empty", "version", "old", "malformed"],  # no instant: each process collects them
)
def test_without_a_good_table_the_walltime_is_taken(table, why, tmp_path, log):
    files = files_of(log)
    for minutes, points in ((10, 500), (118, 20), (120, 0)):
        factor, _, said = submitted(tmp_path, files, "ann", 4, minutes, table=table)
        assert (factor, len(said)) == (points, 1)
        assert said[0].startswith("qconf: no prediction, the order takes the walltime: ")
        assert why in said[0]
    assert submitted(tmp_path, files, "ann", 4, 10, table=f"{VERSION} {int(time.time())}\n")[::2] == (500, [])


@needs_lua
def test_a_user_is_found_in_a_large_table(tmp_path, log):
    words = "".join(f"{size}:{3600 * hours}=3.14,0.271\t" for size in range(12) for hours in range(1, 10))
    table = f"{VERSION} {int(time.time())}\n*\t:=9,0.5\t\n" + "".join(f"u{i}\t{words}\n" for i in range(1000))
    assert len(table) > 2_000_000
    found, *_ = submitted(tmp_path, files_of(log), "u999", 4, 120, table=table, seconds=True)
    weight = 3.14 / (3.14 + PRIOR)
    own = weight * 0.271 + (1 - weight) * 9 / (9 + PRIOR) * 0.5
    assert found == pytest.approx(7200 * own / (weight + (1 - weight) * 9 / (9 + PRIOR)), abs=1)


def test_what_is_loaded_comes_back_and_a_new_table_alone_is_written_for_it(tmp_path, log):
    files = written(tmp_path, files_of(log)) and files_of(log)
    new_conf(tmp_path, "ClusterName=m\nNodeName=n[1-8] CPUs=8\nPartitionName=old Nodes=ALL\n")
    found = slurm_read(tmp_path, (tmp_path / "slurm.conf.after").read_text())
    assert [each for each in found.warnings if "order" in each or "Priority" in each] == []
    assert Multifactor.of(found.config.order) == Multifactor.of(parse(SITE).order)
    current = tmp_path / "slurm.conf"
    assert list(exporter("slurm").of(current=current).export(found.config).files) == ["PLAN.md"]
    again = exporter("slurm").of(current=current, estimates=log).export(found.config)
    assert again.files["qconf_estimate.txt"] == files["qconf_estimate.txt"]
    assert sorted(again.files) == ["PLAN.md", "qconf_estimate.txt"]
    assert "install -m 644 qconf_estimate.txt /etc/slurm`" in again.notes[0]
    other = found.config.replace(order=found.config.order.replace("500", "600"))
    assert "qconf_estimate.txt" in exporter("slurm").of(current=current, estimates=log).export(other).files


def test_what_has_no_form_or_no_log_is_refused(log):
    with pytest.raises(ExportError, match="give a log of jobs with --estimates"):
        slurm_files(parse(SITE))
    for order in ("(eligible_time + estimate) / estimate", ORDER.replace("600 else 20", "600 else 900")):
        with pytest.raises(ExportError, match="Slurm's priority is a weighted sum and has no form for it"):
            files_of(log, SITE.replace(ORDER, order))
    assert Multifactor.of(ORDER.replace("72 if", "4294880500 if")) is None  # more than a priority holds
    assert Multifactor.of(ORDER.replace("500 if", "2147483647 if")) is None  # more than a site factor


@pytest.mark.parametrize("target", ["slurm", "pbs"])
def test_a_log_that_is_read_already_does_as_well(target, log):
    history = clean(read(log), parse(SITE))
    found = exporter(target)().meeting(None, history)
    assert found.check(parse(SITE)) == []
    assert found.export(parse(SITE)).files["qconf_estimate.txt"] == Estimates(log).table(parse(SITE))
    assert exporter(target)().check(parse(SITE)) != []


def test_waiting_jobs_have_points_by_their_walltime_once_and_lose_them_on_the_way_back(tmp_path, log):
    files = files_of(log)
    moving = files["move-jobs"].replace("/etc/slurm", str(tmp_path))
    written(tmp_path, files | {"move-jobs": moving}, "move-jobs", "job_submit.lua")
    row = "PartitionName=work MaxNodes=UNLIMITED MaxTime=UNLIMITED TotalCPUs=64 State=UP Default=YES\n"
    (tmp_path / "partitions.before").write_text(row)
    at = int(time.time()) - 100
    os.utime(tmp_path / "job_submit.lua", (at, at))
    jobs = [waiting(1, "work", 4, "10:00", 200), waiting(2, "work", 4, "5:00", 300, "JobHeldUser", priority=0)]
    jobs += [waiting(3, "work", 4, "2:00:00", 200), waiting(4, "work", 4, "2:00:00", 50)]

    def changed(*arguments):
        return [line for line in moved(tmp_path, jobs, *arguments, priority="multifactor") if "SiteFactor" in line]

    assert changed("--dry-run") == []
    assert changed() == [f"update JobId={job} SiteFactor={points}" for job, points in ((1, 500), (2, 500), (3, 0))]
    assert changed() == []
    os.utime(tmp_path / "job_submit.lua")  # the one of the undo
    assert changed("--back") == [f"update JobId={job} SiteFactor=0" for job in (1, 2, 3, 4)]
    assert changed("--back") == []
    (tmp_path / "job_submit.lua.before").write_text(files["job_submit.lua"])
    for left in ("expected", "job_submit.lua"):  # a plan that leaves it as it is
        (tmp_path / left).unlink()
    assert changed() == []
    assert re.search("rm -f .* expected expected.back", files["PLAN.md"])
