"""Maui's weighted priority as an order: its formula, what it does, and what is no priority."""

import pytest

from parsim import Workload, simulate
from parsim.naive.formula import formula_value
from qconf.config import ConfigError, dump, parse
from qconf.config.maui import FACTORS, FORM, Maui

SITE = "machine: {cores: 8}\nqueues:\n  - {name: short, priority: 3}\n  - {name: long}\norder: "


def value(weights, caps=(), **job):
    """Return what the formula makes of a job of an hour on four cores that has waited half an hour."""
    names = {"walltime": 3600, "eligible_time": 1800, "ncpus": 4, "queue_priority": 3, "fairshare_target": -7}
    names |= {"qos_priority": 8, "qos_target_factor": 0.25} | job
    return formula_value(Maui(weights, dict(caps)).formula, **names)


@pytest.mark.parametrize(
    ("component", "factor"), [*zip(FACTORS, (30, 1.5, -7, 3, 8, 0.25, 4, 3600, 14400), strict=True)]
)
def test_each_component_is_its_factor_times_its_weight(component, factor):
    assert value({component: 2.5}) == pytest.approx(2.5 * factor)
    assert value({"cores": 1, component: -2.5}) == pytest.approx(-2.5 * factor + 4 * (component != "cores"))


def test_a_cap_holds_the_factor_not_its_product():
    assert value({"queue_time": 2}, {"queue_time": 10}) == 20
    assert value({"expansion_factor": 100}, {"expansion_factor": 4}, eligible_time=36000) == 400
    for use, factor in ((-50, -20), (50, 20), (7, 7)):
        assert value({"fairshare": 3}, {"fairshare": 20}, fairshare_target=use) == 3 * factor
        assert value({"qos": 3}, {"qos": 20}, qos_priority=use) == 3 * factor


def test_weights_in_a_configuration_are_their_formula():
    config = parse(f"{SITE}{{maui: {{queue_time: 1, expansion_factor: {{weight: 10, cap: 100}}, cores: 10}}}}")
    weights = {"queue_time": 1, "expansion_factor": 10, "cores": 10}
    assert config.order == Maui(weights, {"expansion_factor": 100}).formula
    assert parse(dump(config)) == config
    assert parse(SITE + FORM).order == config.order.removesuffix(" + 10 * ncpus")


def test_jobs_start_by_the_sum():
    """A job of the whole machine ends at 100; then the second of the others has 62 - 20, the first 52, the last -38."""
    config = parse(
        "machine: {cores: 8}\nqueues:\n  - {name: a}\norder: {maui: {queue_time: 1, cores: 10, walltime: -0.0166667}}"
    )
    workload = Workload(
        submit=[0, 1, 2, 3], cores=[8, 5, 6, 8], runtime=[100, 50, 50, 50], walltime=[100, 60, 1200, 7200]
    )
    assert simulate(workload, config.system()).start.tolist() == [0, 100, 150, 200]
    config = config.replace(order=Maui({"queue_time": 1, "cores": 10}).formula)
    assert simulate(workload, config.system()).start.tolist() == [0, 200, 150, 100]


@pytest.mark.parametrize(
    ("order", "said"),
    [
        ("{maui: {account: 3}}", "no component account; there are queue_time, "),
        ("{maui: {queue: a}}", "weight of queue is no number up to 1e+12: 'a'"),
        ("{maui: {queue: true}}", "weight of queue is no number up to 1e+12: True"),
        ("{maui: {queue: {wight: 3}}}", "queue has a weight, and a cap or none"),
        ("{maui: {queue: {weight: 1, cap: 0}}}", "cap of queue is not above 0"),
        ("{maui: {queue: 0}}", "no component has a weight"),
        ("{maui: {}}", "no component has a weight"),
        ("{maui: 3}", "no order"),
        ("{mauis: {queue: 3}}", "no order"),
    ],
)
def test_what_is_no_priority_is_said(order, said):
    with pytest.raises(ConfigError) as error:
        parse(SITE + order)
    assert f"line 5: order = {order}: {said}" in str(error.value)
    assert FORM in str(error.value)
