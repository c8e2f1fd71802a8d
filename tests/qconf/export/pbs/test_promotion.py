"""The script that moves jobs into the pool, run as it is exported."""

from qconf.config import parse
from tests.qconf.export.pbs.running import job, run_script
from tests.qconf.export.sites import HYBRID, pbs_files


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


def test_promotion_dry_run_moves_nothing(tmp_path):
    done, moved = run_promotion(tmp_path, {"2.host": job("small", 8, "01:00:00", 9999)}, "--dry-run")
    assert done.returncode == 0
    assert "2.host: priority factor" in done.stdout
    assert moved == []


def test_promotion_refuses_what_it_does_not_understand(tmp_path):
    due = {"2.host": job("small", 8, "01:00:00", 9999)}
    done, moved = run_promotion(tmp_path, due, "--dryrun")
    assert (done.returncode, moved) == (2, [])
    done, moved = run_promotion(tmp_path, '{"Jobs": {"1.host": {"Job_Name": 007}}}')
    assert (done.returncode, moved) == (1, [])
    assert done.stderr.startswith("qstat -f -F json: not JSON, nothing is moved")


def test_promotion_of_jobs_too_wide_for_their_partition(tmp_path):
    text = HYBRID.replace("partition: 32", "partition: 8").replace("cores: 24", "cores: 48")
    _, moved = run_promotion(
        tmp_path, {"1.h": job("small", 16, "01:00:00", 0), "2.h": job("small", 8, "01:00:00", 0)}, text=text
    )
    assert moved == ["small_p 1.h"]


def test_promotion_goes_on_after_a_job_it_does_not_understand(tmp_path):
    odd = job("small", 8, "01:00:00", 9999) | {"ctime": "yesterday"}
    done, moved = run_promotion(tmp_path, {"1.h": odd, "2.h": job("small", 8, "01:00:00", 9999)})
    assert done.returncode == 1
    assert moved == ["small_p 2.h"]
