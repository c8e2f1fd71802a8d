"""Fairshare to PBS and back: the tree, the settings of the scheduler, the order."""

from __future__ import annotations

from pathlib import Path

import pytest

from qconf.config import SiteConfig, parse
from qconf.errors import ExportError, InputError
from qconf.export import exporter
from qconf.export.pbs.fairshare import read_shares

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


def exported(config: SiteConfig, folder: Path) -> dict[str, str]:
    files = PBS().export(config).files
    for name, text in files.items():
        (folder / name).write_text(text)
    return files


def back(folder: Path) -> SiteConfig:
    """Return what init makes of the exported files, as if they were those of the server."""
    server = folder / "queues.qmgr"
    given = {"scheduler": str(folder / "sched_config.changes")}
    return PBS.of(**given).read(server, cores=64, name="m", shares=folder / "resource_group").config


@pytest.mark.parametrize(
    "order", ["fairshare", '"(0.01 + fairshare_factor) * eligible_time"', '"fairshare_perc - fairshare_tree_usage"']
)
def test_round_trip(order: str, tmp_path: Path):
    config = site(order)
    exported(config, tmp_path)
    found = back(tmp_path)
    assert found.order == config.order
    assert found.fairshare == config.fairshare
    assert {share.name: share for share in found.shares} == {share.name: share for share in config.shares}


def test_the_order_by_fairshare_is_the_scheduler_s_own(tmp_path: Path):
    files = exported(site("fairshare"), tmp_path)
    assert "job_sort_formula" not in files["queues.qmgr"]
    assert "fair_share: true\tALL" in files["sched_config.changes"]
    assert "resource_group.before" in files["PLAN.md"]
    files = exported(site('"fairshare_factor"'), tmp_path)
    assert "fair_share: false\tALL" in files["sched_config.changes"]


def test_an_order_without_shares_leaves_them_alone(tmp_path: Path):
    files = exported(site("lxf"), tmp_path)
    assert "resource_group" not in files
    assert "fairshare" not in files["sched_config.changes"] + files["PLAN.md"]


def test_the_classic_factor_is_pbs_s(tmp_path: Path):
    files = exported(site('"fair_share * eligible_time"'), tmp_path)
    assert 'job_sort_formula = "fairshare_factor * eligible_time"' in files["queues.qmgr"]


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


def test_an_empty_tree_is_said(tmp_path: Path):
    """The site may have one that the configuration does not."""
    said = "The configuration has no shares: resource_group becomes empty"
    files = exported(site("fairshare").replace(shares=(), fairshare=None), tmp_path)
    assert said in files["PLAN.md"]
    assert said not in exported(site("fairshare"), tmp_path)["PLAN.md"]
