"""The scripts that run every minute beside PBS: what all do alike, and which jobs are moved into the pool."""

import fcntl
import json
from types import SimpleNamespace

import pytest

from qconf.config import parse
from tests.qconf.export.pbs.running import job, run_script
from tests.qconf.export.pbs.test_reservation_delay import DELAYED
from tests.qconf.export.sites import HYBRID, pbs_files

#: Of each: a site, the command that it gives, a job for it, how it is called and what is printed of it, a job that it
#: does not understand, and the argument that is the job.
SCRIPTS = {
    "qconf-promote": (
        *(HYBRID, "qmove", job("small", 8, "01:00:00", 9999), "small_p {}", "{}: priority factor "),
        *({"Resource_List": "many"}, "$2"),
    ),
    "qconf-reserve": (
        *(DELAYED, "qalter", job("small", 8, "01:00:00", 0), "-W topjob_ineligible=True {}", "{}: topjob_ineligible "),
        *({"ctime": 7}, "$3"),
    ),
}


@pytest.fixture(params=SCRIPTS)
def script(request, tmp_path):
    site, command, due, call, said, odd, argument = SCRIPTS[request.param]
    text = pbs_files(parse(site))[request.param]

    def run(listing, *arguments, text=text, tool=command, body=""):
        return run_script(tmp_path, text, listing, *arguments, tool=tool, body=body)

    def calls(*names):
        return [call.format(name) for name in names]

    return SimpleNamespace(run=run, text=text, due=due, calls=calls, said=said, odd=due | odd, argument=argument)


def test_a_dry_run_changes_nothing(script):
    done, calls = script.run({"1.h": script.due}, "--dry-run")
    assert (done.returncode, calls) == (0, [])
    assert done.stdout.startswith(script.said.format("1.h"))


def test_an_option_that_there_is_not_is_refused(script):
    done, calls = script.run({"1.h": script.due}, "--dryrun")
    assert (done.returncode, calls) == (2, [])


@pytest.mark.parametrize("odd", [{"ctime": "yesterday"}, '{"Job_Name": 007}', '"none"', None])
def test_a_job_that_is_not_understood_is_named_and_left(script, odd):
    strange = script.due | odd if isinstance(odd, dict) else odd or script.odd
    done, calls = script.run({"1.h": script.due, "2.h": strange, "3.h": script.due, "4.h": script.due})
    assert done.returncode == 0  # nothing failed
    assert sorted(calls) == script.calls("1.h", "3.h", "4.h")
    assert done.stderr.startswith("2.h: not understood, left as it is")


def test_what_is_no_utf_8_is_read(script):
    listed = json.dumps(script.due | {"Variable_List": {"PLACE": "caf\u00e9\n"}}, ensure_ascii=False)
    done, calls = script.run({"1.h": listed.replace("\\n", "\n"), "2.h": script.due})
    assert (done.returncode, sorted(calls)) == (0, script.calls("1.h", "2.h"))


def test_a_call_that_fails_does_not_stop_the_others(script):
    done, calls = script.run(dict.fromkeys(("1.h", "2.h"), script.due), body=f'[ "{script.argument}" = 1.h ]')
    assert (done.returncode, len(calls)) == (1, 2)


def test_it_fails_where_the_server_does(script):
    done, _ = script.run({"1.h": script.due}, tool="qstat", body="echo no server >&2; exit 1")
    assert (done.returncode, done.stderr) == (1, "qstat: no server\n")


def test_it_does_not_wait_for_ever(script):
    late = script.text.replace("monotonic() + 50", "monotonic() - 50")
    done, calls = script.run({"1.h": script.due, "seconds": 30}, text=late)
    assert (done.returncode, calls) == (1, [])
    assert "timed out" in done.stderr


def test_two_at_once_are_one(script, tmp_path):
    (tmp_path / "script").touch()
    with (tmp_path / "script").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        done, calls = script.run({"1.h": script.due})
    assert (done.returncode, calls) == (0, [])
    assert "another one is running" in done.stderr


def promoted(tmp_path, listing, text=HYBRID):
    return run_script(tmp_path, pbs_files(parse(text))["qconf-promote"], listing, tool="qmove")


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
    done, moved = promoted(tmp_path, listing)
    assert done.returncode == 0, done.stderr
    assert moved == ["small_p 8[].host", "medium_p 3.host", "small_p 2.host"]


def test_promotion_of_jobs_too_wide_for_their_partition(tmp_path):
    text = HYBRID.replace("partition: 32", "partition: 8").replace("cores: 24", "cores: 48")
    _, moved = promoted(
        tmp_path, {"1.h": job("small", 16, "01:00:00", 0), "2.h": job("small", 8, "01:00:00", 0)}, text=text
    )
    assert moved == ["small_p 1.h"]
