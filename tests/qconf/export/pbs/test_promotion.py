"""The script that moves jobs into the pool, run as it is exported."""

import fcntl
import json

import pytest

from qconf.config import parse
from tests.qconf.export.pbs.model import PbsServer
from tests.qconf.export.pbs.running import job, run_script
from tests.qconf.export.sites import FRESH, HYBRID, NODES, pbs_files


def run_promotion(tmp_path, listing, *arguments, text=HYBRID):
    script = pbs_files(parse(text))["qconf-promote"]
    return run_script(tmp_path, script, listing, *arguments, tool="qmove")


def test_promotion_moves_what_is_due_largest_factor_first(tmp_path):
    listing = {
        "1.host": job("small", 8, "01:00:00", 3500),  # factor 38.9 of 40
        "2.host": job("small", 8, "01:00:00", 3700),  # 41.1
        "3.host": job("medium", 24, "01:00:00", 3700),  # 82.2
        "4.host": job("medium", 25, "01:00:00", 99999),  # takes 32 cores, the pool has 24
        "5.host": job("small", 8, "01:00:00", 99999, "R"),
        "6.host": job("large", 48, "01:00:00", 99999),
        "7.host": job("small", 8, "01:00:00", 99999, "H"),
        "8[].host": job("small", 8, "01:00:00", 99999),
        "9; rm -rf /": job("small", 8, "01:00:00", 99999),
    }
    done, moved = run_promotion(tmp_path, listing)
    assert done.returncode == 0, done.stderr
    assert moved == ["small_p 8[].host", "medium_p 3.host", "small_p 2.host"]


def test_the_script_of_a_pool_that_is_no_more_is_taken_off_and_comes_back_with_the_undo():
    server = PbsServer(FRESH)
    server.load(pbs_files(parse(HYBRID), nodes=NODES, current=FRESH)["queues.qmgr"])
    config = parse(HYBRID)
    queues = [queue.model_copy(update={"partition": 0}) for queue in config.queues]
    shared = config.replace(mode="shared", pool=None, queues=queues)
    steps, undo = pbs_files(shared, nodes=NODES, current=server.printed())["PLAN.md"].split("\n## Undo\n")
    assert steps.index("qconf-pbs save") < steps.index("qconf-pbs uninstall") < steps.index("queues.qmgr")
    assert undo.index("qconf-pbs uninstall") < undo.index("qconf-pbs reinstall")


def test_promotion_dry_run_moves_nothing(tmp_path):
    done, moved = run_promotion(tmp_path, {"2.host": job("small", 8, "01:00:00", 9999)}, "--dry-run")
    assert done.returncode == 0
    assert "2.host: priority factor" in done.stdout
    assert moved == []


def test_promotion_refuses_what_it_does_not_understand(tmp_path):
    due = {"2.host": job("small", 8, "01:00:00", 9999)}
    done, moved = run_promotion(tmp_path, due, "--dryrun")
    assert (done.returncode, moved) == (2, [])


def test_promotion_of_jobs_too_wide_for_their_partition(tmp_path):
    text = HYBRID.replace("partition: 32", "partition: 8").replace("cores: 24", "cores: 48")
    _, moved = run_promotion(
        tmp_path, {"1.h": job("small", 16, "01:00:00", 0), "2.h": job("small", 8, "01:00:00", 0)}, text=text
    )
    assert moved == ["small_p 1.h"]


@pytest.mark.parametrize(
    "odd",
    [
        job("small", 8, "01:00:00", 9999) | {"ctime": "yesterday"},
        job("small", 8, "01:00:00", 9999) | {"Resource_List": "many"},
        '{"Job_Name": 007}',
        '"none"',
    ],
)
def test_promotion_goes_on_after_a_job_it_does_not_understand_and_names_it(tmp_path, odd):
    due = job("small", 8, "01:00:00", 9999)
    done, moved = run_promotion(tmp_path, {"1.h": due, "2.h": odd, "3.h": due, "4.h": due})
    assert done.returncode == 0  # nothing failed
    assert sorted(moved) == ["small_p 1.h", "small_p 3.h", "small_p 4.h"]
    assert done.stderr.startswith("2.h: not understood, left as it is")


def test_promotion_reads_what_is_no_utf_8(tmp_path):
    named = job("small", 8, "01:00:00", 9999)
    listed = json.dumps(named | {"Variable_List": {"PLACE": "caf\u00e9\n"}}, ensure_ascii=False)
    done, moved = run_promotion(tmp_path, {"1.h": listed.replace("\\n", "\n"), "2.h": named})
    assert (done.returncode, sorted(moved)) == (0, ["small_p 1.h", "small_p 2.h"])


def test_promotion_fails_where_pbs_does(tmp_path):
    listing = {"1.h": job("small", 8, "01:00:00", 9999), "2.h": job("small", 8, "01:00:00", 99999)}
    script = pbs_files(parse(HYBRID))["qconf-promote"]
    done, moved = run_script(tmp_path, script, listing, tool="qmove", body='[ "$2" = 1.h ]')
    assert (done.returncode, len(moved)) == (1, 2)
    done, moved = run_script(tmp_path, script, listing, tool="qstat", body="echo no server >&2; exit 1")
    assert done.returncode == 1
    assert done.stderr == "qstat: no server\n"


def test_promotion_does_not_wait_for_ever(tmp_path):
    listing = {"1.h": job("small", 8, "01:00:00", 9999), "seconds": 30}
    script = pbs_files(parse(HYBRID))["qconf-promote"].replace("monotonic() + 50", "monotonic() - 50")
    done, moved = run_script(tmp_path, script, listing, tool="qmove")
    assert (done.returncode, moved) == (1, [])
    assert "timed out" in done.stderr


def test_two_promotions_at_once_are_one(tmp_path):
    (tmp_path / "script").touch()
    with (tmp_path / "script").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        done, moved = run_promotion(tmp_path, {"2.host": job("small", 8, "01:00:00", 9999)})
    assert (done.returncode, moved) == (0, [])
    assert "another one is running" in done.stderr
