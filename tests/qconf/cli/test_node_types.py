"""Every command on nodes of several types, with months before the one that counts."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from tests.qconf.cli.commands import invoke

pytestmark = pytest.mark.usefixtures("few_resamples")
DATA = Path(__file__).parents[3] / "data" / "mixed"
MONTHS = ("2026-01", "2026-02", "2026-03")
SITE = """
machine: {name: small, cores: 256}
nodes:
  - {name: cpu, count: 5, cores: 32, memory: 192gb}
  - {name: gpu, count: 2, cores: 32, memory: 512gb, gpus: 4}
  - {name: bigmem, count: 1, cores: 32, memory: 2tb}
mode: shared
queues:
  - {name: cpu, cores: [1, 160], walltime: [0, 48h]}
  - {name: gpu, cores: [1, 64], walltime: [0, 48h]}
  - {name: bigmem, cores: [1, 32], walltime: [0, 48h]}
"""
BY_CORES = {"dp-nlp", "dqr", "hybrid", "exact", "mqb", "planned-fcfs", "planned-sjf", "planned-ljf", "conservative"}
BY_CORES |= {"dynp", "dynp-bounds", "pp"}


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """A fiftieth of the jobs of the sample, on a tenth of its nodes."""
    folder = tmp_path_factory.mktemp("mixed")
    (folder / "site.yaml").write_text(SITE)
    for month in MONTHS:
        head, *jobs = gzip.decompress((DATA / f"mixed-{month}.csv.gz").read_bytes()).decode().splitlines()
        (folder / f"{month}.csv").write_text("\n".join([head, *jobs[::50]]) + "\n")
    return ["--config", str(folder / "site.yaml"), *(str(folder / f"{month}.csv") for month in MONTHS)]


def test_a_month_after_another_one(given, tmp_path) -> None:
    """Of strategies that go by cores the reason is shown; the others are trained on the months before."""
    wanted = ("fcfs-easy", "gpu-nodes-closed", "auto", *sorted(BY_CORES))
    words = ["--month", "2026-02", "--strategies", ",".join(wanted), "--workers", 1, "--out", tmp_path / "out"]
    assert invoke("tune", *given, *words).exit_code == 0
    rows = json.loads((tmp_path / "out" / "run.json").read_text())["strategies"]
    assert {*wanted} <= {row["name"] for row in rows}
    by_cores = {row["name"] for row in rows if "goes by numbers of cores" in row["ineligible"]}
    assert by_cores == BY_CORES
    assert {row["name"] for row in rows if row["config"] is None} == BY_CORES


@pytest.mark.slow
@pytest.mark.parametrize("month", MONTHS)
def test_every_month_of_the_sample(month, tmp_path) -> None:
    config = DATA.parents[1] / "configs" / "mixed.yaml"
    files = [DATA / f"mixed-{each}.csv.gz" for each in MONTHS]
    words = ["--config", config, "--month", month, "--workers", 2, "--out", tmp_path / "out"]
    assert invoke("tune", *files, *words).exit_code == 0


@pytest.mark.slow
@pytest.mark.parametrize("month", ["2016-01", "2016-02", "2016-03"])
def test_every_month_of_the_other_sample(month, tmp_path) -> None:
    files = sorted(DATA.parent.glob("*.csv.gz"))
    words = ["--config", DATA.parents[1] / "configs" / "cray-xc40.yaml", "--month", month, "--workers", 2]
    assert invoke("tune", *files, *words, "--out", tmp_path / "out").exit_code == 0
