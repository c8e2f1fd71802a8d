"""Fairshare to PBS and back: the tree, the settings of the scheduler, the order."""

from __future__ import annotations

from pathlib import Path

import pytest

from qconf.config import SiteConfig, parse
from qconf.errors import ExportError, InputError
from qconf.export import exporter
from qconf.export.pbs.fairshare import read_shares
from tests.qconf.export.sites import written

PBS = exporter("pbs")
SITE = """machine: {name: m, cores: 64}
order: ORDER
queues:
  - {name: work, cores: [1, 64], walltime: [0, 24h]}
fairshare: {decay_time: 12h, decay_factor: 0.9958826, unknown_shares: 5, charges: {cores: 0.5, gpus: 20, memory: 1}}
shares:
  - {name: alice, shares: 2, group: physics}
  - {name: physics, shares: 60}
  - {name: bob, shares: 40}
"""


def site(order: str) -> SiteConfig:
    return parse(SITE.replace("ORDER", order))


def exported(config: SiteConfig) -> dict[str, str]:
    return dict(PBS().export(config).files)


@pytest.mark.parametrize(
    "order", ["fairshare", '"(0.01 + fairshare_factor) * eligible_time"', '"fairshare_perc - fairshare_tree_usage"']
)
def test_round_trip(order: str, tmp_path: Path):
    config = site(order)
    written(tmp_path, exported(config))
    read = PBS.of(scheduler=str(tmp_path / "sched_config.changes")).read  # as if the files were those of the server
    found = read(tmp_path / "queues.qmgr", cores=64, name="m", shares=tmp_path / "resource_group").config
    assert (found.order, found.fairshare) == (config.order, config.fairshare)
    assert {share.name: share for share in found.shares} == {share.name: share for share in config.shares}


def test_the_order_by_fairshare_is_the_scheduler_s_own():
    files = exported(site("fairshare"))
    assert "job_sort_formula" not in files["queues.qmgr"]
    assert "fair_share: true\tALL" in files["sched_config.changes"]
    assert "resource_group.before" in files["PLAN.md"]
    assert "fair_share: false\tALL" in exported(site('"fairshare_factor"'))["sched_config.changes"]
    classic = exported(site('"fair_share * eligible_time"'))["queues.qmgr"]
    assert 'job_sort_formula = "fairshare_factor * eligible_time"' in classic
    without = exported(site("lxf"))  # which leaves shares alone
    assert "resource_group" not in without
    assert "fairshare" not in without["sched_config.changes"] + without["PLAN.md"]
    said = "The configuration has no shares: resource_group becomes empty"  # where the site may have some
    assert said in exported(site("fairshare").replace(shares=(), fairshare=None))["PLAN.md"]
    assert said not in files["PLAN.md"]


@pytest.mark.parametrize("order", ['"fairshare_target"', '"fair_share"'])
def test_what_pbs_has_not_is_refused(order: str):
    config = site(order)
    config = config.replace(fairshare=config.fairshare.model_copy(update={"fair_share": "tree"}))
    with pytest.raises(ExportError, match="PBS"):
        PBS().export(config)


@pytest.mark.parametrize(
    ("text", "message"),
    [("alice 10 root\n", "line 1"), ("a 10 root 5\na 11 root 5\n", "twice"), ("a 10 b 5\n", "has no line")],
)
def test_a_file_that_is_no_resource_group_is_refused(text: str, message: str, tmp_path: Path):
    path = tmp_path / "resource_group"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_shares(path)
