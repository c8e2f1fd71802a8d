"""Formulas that order nothing, or have no value, for the jobs of a history."""

from dataclasses import replace

import numpy as np
import pytest

from parsim import Workload
from qconf.config import MachineConfig, QueueConfig, SiteConfig
from qconf.evaluation.order import order_warnings

JOBS = Workload(
    submit=np.arange(4), cores=np.array([1, 2, 2, 8]), runtime=np.full(4, 60), walltime=np.array([60, 60, 3600, 7200])
)


def warnings(order, jobs=JOBS):
    site = SiteConfig(machine=MachineConfig(cores=8), queues=(QueueConfig(name="a", priority=7),))
    return order_warnings(site.replace(order=order), jobs)


@pytest.mark.parametrize(
    "order", ["fcfs", "lxf", "eligible_time", "walltime / ncpus", "1 + ncpus if walltime > 60 else 0"]
)
def test_what_orders_the_jobs_is_right(order):
    assert warnings(order) == []


@pytest.mark.parametrize("order", ["5", "queue_priority", "eligible_time * 0", "1 if ncpus < 9 else eligible_time"])
def test_a_formula_that_is_the_same_for_every_job_is_first_come_first_served(order):
    assert warnings(order) == [f"order: {order} is the same for every job of this history: first come, first served"]


@pytest.mark.parametrize(
    ("order", "jobs", "example"),
    [
        ("ncpus + 10 ** walltime", 2, "2 cores, 3600 s of walltime, 0 s of waiting"),
        ("1 / (ncpus - 2) + eligible_time", 2, "2 cores, 60 s of walltime, 0 s of waiting"),
        ("log(1e5 - eligible_time) + ncpus", 4, "1 cores, 60 s of walltime, 604800 s of waiting"),
    ],
)
def test_jobs_without_a_value_are_counted(order, jobs, example):
    (warning,) = warnings(order)
    assert warning.startswith(f"order: {order} has no value for {jobs} of the 4 jobs, such as one with {example} ")


def test_the_qos_of_jobs_orders_them():
    site = SiteConfig(machine=MachineConfig(cores=8), queues=(QueueConfig(name="a"),))
    site = site.replace(qos=[{"name": "gold", "priority": 5.0}, {"name": "aimed", "target": 2.0}])
    jobs = replace(JOBS, qos=[0, -1, 1, -1], qos_names=["gold", "aimed"])
    for order in ("qos_priority", "qos_target_factor", "qos_target"):
        assert order_warnings(site.replace(order=order), jobs) == []
        assert len(order_warnings(site.replace(order=order), JOBS)) == 1
    assert "for 3 of the 4 jobs" in order_warnings(site.replace(order="eligible_time + 1 / qos_priority"), jobs)[0]


def test_what_has_no_value_for_any_job_is_both():
    assert [text.partition(" ** walltime ")[2][:12] for text in warnings("1e300 ** walltime")] == [
        "has no value",
        "is the same ",
    ]
