"""Orders by what jobs ask for beside cores: tried where the machine has it, and nowhere else."""

from __future__ import annotations

from dataclasses import replace

from parsim.model.formula import parse
from qconf.evaluation.period import Period, TrainingSet
from qconf.strategies.auto.candidates import REQUEST_EXPONENTS, by_requests
from qconf.strategies.auto.families import AutoOptions
from qconf.strategies.auto.search import climb
from tests.qconf.report.test_nodes import BASE, PERIOD, jobs


def test_factors_are_of_what_the_machine_has_and_jobs_ask_for() -> None:
    found = dict(by_requests(TrainingSet(PERIOD)))
    assert len(found) == 2 * len(REQUEST_EXPONENTS)
    assert found["jobs with GPUs earlier, by power 1"] == "(1 + ngpus) ** 1"
    assert found["jobs with memory later, by power 0.5"] == f"(1 + mem / {64 * 1024**2}) ** -0.5"
    alike = Period(PERIOD.workload, BASE.with_all_alike())
    assert list(by_requests(TrainingSet(alike))) == []
    without = Period(replace(jobs(), request=None, requests=()), BASE)
    assert list(by_requests(TrainingSet(without))) == []


def test_the_search_tries_them_behind_its_order() -> None:
    training = TrainingSet(PERIOD.between(0, 3 * 86400))
    found = climb(training, AutoOptions())
    assert {"order", "requests"} <= found.keys()
    formula = parse(found["requests"].config.order)
    assert formula.uses_requests
    assert found["requests"].config.order.endswith(found["order"].config.order)
    assert climb(training, AutoOptions(orders="multifactor")).keys().isdisjoint({"requests"})
