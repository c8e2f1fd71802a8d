"""The script that moves jobs into the pool, run as it is exported."""

from qconf.config import parse
from tests.qconf.export.pbs.model import PbsServer
from tests.qconf.export.pbs.running import job, run_script
from tests.qconf.export.sites import FRESH, HYBRID, NODES, pbs_files


def run_promotion(tmp_path, listing, text=HYBRID):
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


def test_promotion_of_jobs_too_wide_for_their_partition(tmp_path):
    text = HYBRID.replace("partition: 32", "partition: 8").replace("cores: 24", "cores: 48")
    _, moved = run_promotion(
        tmp_path, {"1.h": job("small", 16, "01:00:00", 0), "2.h": job("small", 8, "01:00:00", 0)}, text=text
    )
    assert moved == ["small_p 1.h"]
