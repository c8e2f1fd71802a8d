"""The script behind reserve_after, run as it is exported; and when it is exported."""

from types import SimpleNamespace

import pytest

from qconf.config import parse
from qconf.export.directory import write_export
from qconf.export.nodes import read_nodes
from qconf.export.pbs.init import derive
from qconf.export.pbs.server import Server
from tests.qconf.export.pbs.model import PbsServer
from tests.qconf.export.pbs.running import job, run_hook, run_script
from tests.qconf.export.sites import HYBRID, pbs_files

DELAYED = """\
machine: {name: tiny, cores: 96, cores_per_node: 8}
order: "eligible_time / max(walltime, 1)"
reserve_after: 2h
queues:
  - {name: small, cores: [1, 16], walltime: [0, 24h]}
  - {name: large, cores: [17, 96], walltime: [0, 48h]}
"""
FILES = {"qconf_reserve.py", "qconf-reserve", "qconf-reserve.service", "qconf-reserve.timer", "qconf-reserve.cron"}
UNDO = "qselect -s BHQRSW | xargs -r -n 1 qalter -W topjob_ineligible=False"


def run(tmp_path, listing):
    return run_script(tmp_path, pbs_files(parse(DELAYED))["qconf-reserve"], listing, tool="qalter")


def waiting(waited, ineligible=None, queue="small", state="Q"):
    found = job(queue, 8, "01:00:00", waited, state)
    return found if ineligible is None else found | {"topjob_ineligible": ineligible}


def test_what_is_set_goes_by_the_wait(tmp_path):
    listing = {
        "1.host": waiting(0),
        "2.host": waiting(7100, "False", "large"),
        "3.host": waiting(7100, "True"),
        "4.host": waiting(7200, "True", "large"),
        "5.host": waiting(7200),
        "6.host": waiting(99999, "False"),
        "7.host": waiting(0, True),
        "8.host": waiting(99999, True),
    }
    done, calls = run(tmp_path, listing)
    assert done.returncode == 0, done.stderr
    assert calls == [  # queue by queue
        "-W topjob_ineligible=False 8.host",
        "-W topjob_ineligible=False 4.host",
        "-W topjob_ineligible=True 1.host",
        "-W topjob_ineligible=True 2.host",
    ]


def test_which_jobs_are_set(tmp_path):
    listing = {
        "1.host": waiting(0, state="R"),
        "2.host": waiting(99999, "True", state="H"),
        "3.host": waiting(0, queue="route"),
        "4.host": waiting(99999, "True", queue="other"),
        "5[].host": waiting(0),
        "6[].host": waiting(99999, "True", state="B"),  # its next subjobs may get a reservation
        "7[3].host": waiting(0),
        "8; rm -rf /": waiting(0),
    }
    done, calls = run(tmp_path, listing)
    assert done.returncode == 0, done.stderr
    assert calls == ["-W topjob_ineligible=False 6[].host", "-W topjob_ineligible=True 5[].host"]


def test_nothing_to_set_calls_nothing(tmp_path):
    for listing in ({}, {"1.host": waiting(0, "True"), "2.host": waiting(99999)}):
        done, calls = run(tmp_path, listing)
        assert (done.returncode, done.stdout, calls) == (0, "", [])


@pytest.mark.parametrize(
    ("queue", "ineligible"), [(None, True), ("route", True), ("small", True), ("large", True), ("other", None)]
)
def test_the_hook_sets_it_at_submission(monkeypatch, queue, ineligible):
    submitted = SimpleNamespace(queue=queue and SimpleNamespace(name=queue), topjob_ineligible=None)
    event = run_hook(monkeypatch, pbs_files(parse(DELAYED))["qconf_reserve.py"], submitted)
    assert (submitted.topjob_ineligible, event.accepted) == (ineligible, 1)


def test_without_a_server_the_undo_by_hand_takes_it_back():
    undo = pbs_files(parse(DELAYED))["PLAN.md"].partition("\n## Undo\n")[2]
    assert undo.index("qconf-pbs uninstall") < undo.index(UNDO)


@pytest.mark.parametrize(
    "text",
    [
        DELAYED.replace("reserve_after: 2h\n", ""),
        DELAYED.replace("reserve_after: 2h", "backfill: false\nreserve_after: 2h"),
        HYBRID + "reserve_after: 2h\n",
    ],
)
def test_nothing_is_written_where_it_plays_no_part(text):
    config = parse(text)
    files = pbs_files(config, nodes=read_nodes("n[1-12]"))
    assert not FILES & set(files)
    assert not any("topjob_ineligible" in each for each in files.values())
    assert files == pbs_files(config.replace(reserve_after=0), nodes=read_nodes("n[1-12]"))


def test_a_later_export_without_it_takes_its_files_away(tmp_path):
    write_export(tmp_path, pbs_files(parse(DELAYED)))
    assert {path.name for path in tmp_path.iterdir()} >= FILES
    write_export(tmp_path, pbs_files(parse(DELAYED).replace(reserve_after=0)))
    assert not FILES & {path.name for path in tmp_path.iterdir()}


def test_pbs_does_not_hold_it():
    printed = PbsServer(pbs_files(parse(DELAYED))["queues.qmgr"]).printed()
    again = derive(Server.parse(printed), cores=96).config
    assert again.reserve_after == 0
    assert again.order == parse(DELAYED).order
