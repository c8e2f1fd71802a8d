"""Shortpools as standing reservations of PBS: commands of the plan, the script that moves jobs, and back."""

from __future__ import annotations

import time

import pytest
from click.testing import CliRunner

from qconf.cli import qconf
from qconf.config import load, parse
from qconf.export import exporter
from qconf.export.pbs.server import Server
from qconf.history.closures import read_standing, shortpools
from tests.qconf.export.pbs.listings import listing
from tests.qconf.export.pbs.running import run_script

SITE = """\
machine: {cores: 16, cores_per_node: 2}
queues:
  - {name: work, cores: [1, 16], walltime: [0, 20h]}
  - {name: long, cores: [1, 16], walltime: [20h, 50h]}
shortpools:
  - {cores: 6, walltime: 2h, days: [mon, tue, wed, thu, fri], begin: "08:00", end: "18:00"}
  - {cores: 2, walltime: 10m, days: [sat], begin: "22:00", end: "06:30"}
  - {cores: 1, walltime: 5m}
"""
SHOWN = """\
Resv ID: S12.server
Reserve_Name = shortpool_7200_1
Reserve_Owner = root@server
reserve_state = {state}
reserve_start = {start}
reserve_end = Mon Nov 30 18:00:00 2026
reserve_duration = 36000
queue = S12
Resource_List.ncpus = 6
Resource_List.nodect = 6
reserve_rrule = FREQ=WEEKLY;COUNT=260;BYDAY=MO,TU,WE,TH,FR

Resv ID: R13.server
Reserve_Name = course
reserve_start = Mon Nov 30 08:00:00 2026
reserve_duration = 36000
Resource_List.ncpus = 4
"""
MONDAY = "Mon Nov 30 08:00:00 2026"


def files(text=SITE):
    return exporter("pbs")().export(parse(text)).files


def test_what_the_plan_does_is_read_back():
    assert shortpools(read_standing(files()["PLAN.md"])) == parse(SITE).shortpools


def test_the_reservations_come_again():
    plan = files()["PLAN.md"]
    assert (
        "start=$(date --date='next Mon 08:00' +%s)\n"
        'stop=$(date --date="@$((start + 36000))" +%Y%m%d%H%M)\n'
        'pbs_rsub -N shortpool_7200_1 -R $(date --date="@$start" +%Y%m%d%H%M) -E $stop '
        '-r "FREQ=WEEKLY;COUNT=260;BYDAY=MO,TU,WE,TH,FR" -l select=6:ncpus=1 -l place=free\n'
    ) in plan
    assert "qconf-pbs uninstall; python3 -I qconf-pbs end" in plan.partition("\n## Undo\n")[2]
    known = exporter("pbs")(current=Server.parse("set server scheduling = True")).export(parse(SITE)).files["PLAN.md"]
    assert "qconf-pbs uninstall\npython3 -I qconf-pbs end --back\n" in known.partition("\n## Undo\n")[2]
    assert "PBS reserves particular nodes, for 52 weeks" in plan
    whole = files(
        SITE.replace("cores_per_node: 2", "cores_per_node: 2, whole_nodes: true").replace("cores: 1,", "cores: 4,")
    )
    assert "-l select=3:ncpus=2 -l place=scatter:excl" in whole["PLAN.md"]
    plain = files(SITE.partition("shortpools")[0])
    assert "shortpool" not in "".join(name + text for name, text in plain.items() if name != "qconf-pbs")


def test_init_reads_what_pbs_rstat_shows(tmp_path):
    (tmp_path / "server").write_text(listing("work:"))
    (tmp_path / "rstat").write_text(SHOWN.format(state="RESV_CONFIRMED", start=MONDAY))
    arguments = ["init", "--from-pbs", f"{tmp_path}/server", "--cores", "16", "--downtimes", f"{tmp_path}/rstat"]
    done = CliRunner().invoke(qconf, [*arguments, "-o", f"{tmp_path}/site.yaml"])
    assert done.exit_code == 0, done.output
    assert load(tmp_path / "site.yaml").shortpools == parse(SITE).shortpools[:1]
    assert not load(tmp_path / "site.yaml").downtime


@pytest.fixture
def server(tmp_path):
    """Runs the script beside commands of PBS that print what a server of our own holds."""

    def run(jobs, state="RESV_RUNNING", *arguments):
        start = time.strftime("%a %b %d %H:%M:%S %Y", time.gmtime(time.time() - 3600))
        shown = SHOWN.format(state=state, start=start)
        (tmp_path / "pbs_rstat").write_text(f"#!/bin/sh\ncat <<END\n{shown}END\n")
        (tmp_path / "pbs_rstat").chmod(0o755)
        done, moved = run_script(tmp_path, files()["qconf-shortpool"], jobs, *arguments, tool="qmove")
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines(), moved

    return run


def job(cores, walltime, state="Q", minute=0, queue="work"):
    qtime = f"Wed Nov 25 17:{minute:02d}:00 2026"
    wanted = {"ncpus": cores, "walltime": walltime}
    return {"job_state": state, "queue": queue, "qtime": qtime, "Resource_List": wanted}


def test_short_jobs_are_moved_as_far_as_there_is_room(server):
    jobs = {
        "1.s": job(2, "02:00:00", minute=5),
        "2.s": job(2, "02:00:01", minute=1),  # too long
        "3.s": job(4, "01:00:00", minute=9),  # no room behind the others
        "4.s": job(1, "00:10:00", minute=2),
        "5.s": job(1, "00:10:00", "R", minute=2),
        "6.s": job(2, "00:10:00", "R", queue="S12"),
    }
    assert server(jobs) == (["4.s: to S12", "1.s: to S12"], ["S12 4.s", "S12 1.s"])


def test_nothing_is_moved_out_of_the_hours_or_in_a_dry_run(server):
    jobs = {"1.s": job(2, "01:00:00")}
    assert server(jobs, "RESV_CONFIRMED") == ([], [])
    assert server(jobs, "RESV_RUNNING", "--dry-run") == (["1.s: to S12"], [])
