"""The job mixes of the paper that brought Maui to PBS, and how they are timed."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from parsim import System, simulate
from studies import maui


@pytest.mark.parametrize(
    ("nodes", "share", "name"),
    [
        (33, 0.7, "large"),
        (32, 0.7, "medium"),
        (10, 1.0, "medium"),
        (9, 0.9, "small"),
        (6, 0.5, "debug"),
        (7, 0.5, None),
        (6, 0.4, None),
        (64, 0.19, "failed"),
        (64, 0.5, None),
    ],
)
def test_classes_of_the_paper(nodes: int, share: float, name: str | None):
    assert maui.classify(nodes, share) == name


@pytest.mark.parametrize("seed", range(5))
def test_a_mix_is_as_the_paper_says(seed: int):
    found = maui.mix(np.random.default_rng(seed))
    w = found.workload
    assert Counter(found.classes) == maui.MOST
    assert (w.cores * w.runtime).sum() == pytest.approx(maui.WORK, rel=1e-3)
    assert w.runtime.sum() == pytest.approx(maui.SEQUENTIAL, rel=1e-3)
    assert (w.runtime <= w.walltime).all()
    assert (w.submit <= maui.WITHIN).all()
    shares = w.runtime / w.walltime
    for name, cores, share in zip(found.classes, w.cores.tolist(), shares.tolist(), strict=True):
        if name in ("large", "medium", "small"):
            assert share > 0.699
            assert {"large": cores > 32, "medium": 9 < cores <= 32, "small": cores <= 9}[name]


def test_every_published_figure_has_ours_beside_it():
    times = maui.one(maui.mix(np.random.default_rng(1)).workload)
    assert times.keys() >= maui.PUBLISHED.keys()
    assert times["minimum"] <= min(times.values())
    assert max(times.values()) == times["sequential"]


def test_an_order_fills_the_machine_as_strict_fifo_does():
    workload = maui.mix(np.random.default_rng(2)).workload
    at_once = maui.filled(workload, np.arange(len(workload)))
    strict = maui.hours(simulate(workload, System(maui.NODES, backfill=False)))
    assert strict - 3 <= at_once <= strict


def test_requests_of_one_efficiency():
    w = maui.mix(np.random.default_rng(3), 0.5).workload
    assert np.allclose(w.runtime / w.walltime, 0.5, atol=0.01)


def test_the_report_names_all(capsys: pytest.CaptureFixture[str]):
    maui.report(2)
    printed = capsys.readouterr().out
    assert all(name in printed for name in maui.PUBLISHED)
