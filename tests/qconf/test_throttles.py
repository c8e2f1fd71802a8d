"""Throttles in configurations, histories and searches."""

from __future__ import annotations

from pathlib import Path

from qconf.config import SiteConfig, dump, parse
from qconf.evaluation.feasibility import fixed_violations
from qconf.evaluation.period import Period
from qconf.history import clean, read

SITE = """\
machine: {name: m, cores: 64}
queues:
  - {name: short, cores: [1, 64], walltime: [0, 1h]}
  - {name: long, cores: [1, 64], walltime: [1h, 24h]}
throttles:
  - {max_run: 40, max_run_core_seconds: 3000000}
  - {each: user, max_run: 4}
  - {user: ann, queue: long, max_run_cores: 32}
  - {each: group, max_run_cores: 48}
"""
LOG = """\
job_id,submit,runtime,walltime,cores,queue,user,start,end,state,group
1,1000,60,7200,40,long,ann,1000,1060,done,staff
2,1001,60,7200,40,long,bob,1001,1061,done,staff
3,1002,60,600,56,short,bob,1002,1062,done,
4,1003,60,600,56,short,bob,1003,1063,done,guests
"""


def site() -> SiteConfig:
    return parse(SITE)


def test_what_is_written_is_read():
    assert parse(dump(site())) == site()


def test_jobs_that_never_start_are_dropped_and_the_others_know_their_groups(tmp_path: Path):
    (tmp_path / "log.csv").write_text(LOG)
    history = clean(read([tmp_path / "log.csv"]), site())
    assert history.dropped[["job_id", "reason"]].values.tolist() == [
        ["1", "above a limit of throttles"],
        ["4", "above a limit of throttles"],
    ]
    period = Period.of(history, site())
    assert list(map(period.workload.group_name, period.workload.group.tolist())) == ["staff", ""]
    assert period.simulate(site()).start.tolist() == [1001, 1061]  # 40 and 56 cores


WITH_GPUS = SITE.replace("queues:", "nodes:\n  - {name: gpu, count: 4, cores: 16, memory: 64gb, gpus: 4}\nqueues:")
GPU_LOG = """\
job_id,submit,runtime,walltime,cores,queue,user,start,end,state,group,chunks
1,1000,60,600,4,short,ann,1000,1060,done,staff,1:ncpus=4:ngpus=4
2,1001,60,600,4,short,ann,1001,1061,done,staff,2:ncpus=2:ngpus=3
3,1002,60,600,4,short,bob,1002,1062,done,staff,2:ncpus=2:ngpus=3
4,1003,60,600,4,short,ann,1003,1063,done,staff,1:ncpus=4:ngpus=1
5,1003,60,600,4,short,ann,1003,1063,done,staff,
"""


def test_limits_of_what_nodes_have(tmp_path: Path):
    (tmp_path / "log.csv").write_text(GPU_LOG)
    config = parse(WITH_GPUS + "  - {user: ann, max_run_resources: {gpus: 4, memory: 128gb}}\n")
    assert config.throttles[-1].max_run_resources == {"gpus": 4, "memory": 131072}
    assert parse(dump(config)) == config
    history = clean(read([tmp_path / "log.csv"]), config)
    assert history.dropped[["job_id", "reason"]].values.tolist() == [["2", "above a limit of throttles"]]
    assert Period.of(history, config).simulate(config).start.tolist() == [1000, 1002, 1060, 1003]
    alike = config.with_all_alike()
    assert alike.throttles == config.throttles[:-1]


def test_depth_of_reservations():
    deep = parse(SITE + "reservation_depth: 3\n")
    assert deep.system().reservation_depth == 3
    every = parse(SITE + "reservation_depth: null\n")
    assert every.system().reservation_depth is None
    assert parse(dump(every)) == every


def test_no_search_changes_them():
    other = site().replace(throttles=site().throttles[:1])
    assert fixed_violations(site(), other) == ["throttles"]
    assert site().with_queues(site().queues[:1]).throttles == (*site().throttles[:2], site().throttles[3])
