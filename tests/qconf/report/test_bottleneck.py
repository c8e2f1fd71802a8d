"""Where GPUs are the bottleneck, all that speaks of the use of the machine and of its users goes by GPU-hours."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from parsim.metrics.nodes import ALL_NODES
from qconf.config import FairshareConfig, parse
from qconf.evaluation.guard_rails import GuardValues
from qconf.evaluation.holdout import Holdout
from qconf.evaluation.impact import impact
from qconf.evaluation.outcome import Outcome
from qconf.evaluation.period import Period
from qconf.evaluation.timeline import timeline
from qconf.history import History, clean, read
from qconf.recommend import Evaluated, Recommendation
from qconf.report import figures, verdict
from qconf.report.impact import losers
from qconf.report.run_directory import _plain
from qconf.report.tune_page import render
from qconf.strategies import Proposal
from tests.qconf.report import small

DAY = 86400
SITE = parse("""\
machine: {name: gpus, cores: 288}
nodes:
  - {name: cpu, count: 1, cores: 96}
  - {name: gpu, count: 2, cores: 96, gpus: 8}
queues:
  - {name: cpu, nodes: [cpu]}
  - {name: gpu, nodes: [gpu]}
""")


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> History:
    """Return a week of jobs of four GPUs and as many cores, more than there is room for, and some without GPUs."""
    return week(tmp_path_factory.mktemp("log"), (4, 4))


def week(folder: Path, gpus: tuple[int, int]) -> History:
    """Return the week with so many GPUs of every other job that has some."""
    rng, n = np.random.default_rng(0), 400
    plain = np.arange(n) % 8 == 0
    table = pd.DataFrame(
        {
            "job_id": np.arange(n),
            "submit": np.sort(rng.integers(0, 7 * DAY, n)),
            "runtime": rng.integers(600, 12_000, n),
            "walltime": 14_400,
            "cores": np.where(plain, 32, 4),
            "gpus": np.where(plain, 0, np.where(np.arange(n) % 2, *gpus)),
            "queue": np.where(plain, "cpu", "gpu"),
            "user": np.where(plain, "carl", np.where(np.arange(n) % 8 == 1, "greta", "gail")),
        }
    )
    path = folder / "log.csv"
    table.to_csv(path, index=False)
    return clean(read([path]), SITE)


@pytest.fixture(scope="module")
def outcomes(history: History) -> tuple[Outcome, Outcome]:
    period = Period.of(history, SITE)
    return tuple(Outcome(period, period.simulate(SITE.replace(order=order))) for order in ("fcfs", "ljf"))


@pytest.fixture(scope="module")
def found(outcomes: tuple[Outcome, Outcome]) -> Recommendation:
    present, changed = (Evaluated(SITE, each) for each in outcomes)
    return small.evaluated(SITE, outcomes, present=present, changed=changed)


def test_utilization_and_its_guard_rail_are_those_of_gpus(outcomes):
    before = outcomes[0]
    of_all = before.summary.nodes[ALL_NODES].resources
    assert of_all["gpus"]["utilization"] > 2 * of_all["cores"]["utilization"]
    used = pytest.approx(of_all["gpus"]["utilization"])
    assert (before.period.resource, before.summary["utilization_window"]) == ("gpus", used)
    assert (before.utilization, GuardValues.of(before.summary).utilization) == (used, used)
    line = timeline(before)
    assert (line.used * np.diff(line.edges)).sum() / np.ptp(line.edges) == used
    test = Holdout.of(before.period, 2 * DAY, 7 * DAY, 2 * DAY)
    resampled = test.resample(np.random.default_rng(1)).outcome(Proposal(SITE))
    assert resampled.utilization == pytest.approx(resampled.summary.nodes[ALL_NODES].resources["gpus"]["utilization"])


def test_users_and_groups_go_by_gpu_hours(outcomes, history):
    groups = {each.name: each for each in impact(*outcomes).groups}
    jobs = history.jobs
    assert groups["cpu"].share == 0  # and yet it has more core-hours
    assert groups["cpu"].core_seconds > groups["gpu"].core_seconds
    heavy = groups["2 users with over 10 % of the GPU-hours each"]
    assert heavy.jobs == (jobs["user"] != "carl").sum()
    assert groups["gpu"].share == heavy.share == 1
    assert groups["1 user with up to 1 % of the GPU-hours"].jobs == (jobs["user"] == "carl").sum()
    sizes = {each.name: each.jobs for each in groups.values() if each.kind == "size"}
    plain = (jobs["cores"] == 32).sum()
    assert sizes == {"jobs without GPUs": plain, "jobs of 2 to 8 GPUs": len(jobs) - plain}


def test_who_loses_goes_by_gpus(tmp_path):
    """All jobs with GPUs have four cores: those of eight GPUs that come behind those of one are named."""
    period = Period.of(week(tmp_path, (8, 1)), SITE)
    found = impact(*(Outcome(period, period.simulate(SITE.replace(order=order))) for order in ("ngpus", "-ngpus")))
    losing = [each.name for each in found.losers if each.kind == "size"]
    assert losing == ["jobs of 2 to 8 GPUs"]
    assert any(line.startswith("jobs of 2 to 8 GPUs ") for line in losers(found))
    assert not any("cores" in each.name for each in found.groups)


def test_the_verdict_names_the_bottleneck(found):
    title, lines = next(verdict.sections(found))
    gpus, cores = (found.rows[0].test.nodes[ALL_NODES].resources[name]["utilization"] for name in ("gpus", "cores"))
    assert (title, lines[0]) == ("The bottleneck", f"GPUs: {100 * gpus:.1f} % in use, {100 * cores:.1f} % of the cores")
    shared = replace(found.rows[0], config=found.rows[0].config.replace(order="fairshare"))
    plain, by_shares = (
        dict(verdict.sections(replace(found, rows=rows))) for rows in (found.rows, [shared, *found.rows[1:]])
    )
    assert [line for line in by_shares["The bottleneck"] if line not in plain["The bottleneck"]] == [
        "fair share charges jobs by other things than GPUs: fairshare.charges and billing of queues say what"
    ]
    by_gpus = replace(shared, config=shared.config.replace(fairshare=FairshareConfig(charges={"gpus": 1})))
    again = dict(verdict.sections(replace(found, rows=[by_gpus, *found.rows[1:]]), None))
    assert again["The bottleneck"] == plain["The bottleneck"]
    assert "The bottleneck" not in dict(verdict.sections(small.recommendation(), None))
    assert _plain(found.rows[0].test)["bottleneck"] == "gpus"
    assert "bottleneck" not in _plain(small.recommendation().rows[0].test)


def test_no_text_of_the_page_is_about_core_hours(found, history):
    page = render(found, figures.figures(found, history), history=history)
    said = ("GPU-hours a day", "GPU-hours, %", "jobs by their GPUs", "% of the GPUs", "GPUs times hours")
    assert [text for text in (*said, "GPU-hours of the jobs that wait") if text not in page] == []
    assert "core-hours" not in page.lower().replace("figure-core-hours", "")  # a figure's name is that of its file
