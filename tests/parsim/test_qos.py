"""Quality of service: what orders and limits make of it, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from parsim import QOS, Queue, System, Throttle, Workload, explain, simulate
from parsim.model.formula import parse
from parsim.model.rising import never_falls
from parsim.prepare.columns import prepare
from parsim.prepare.order import pack_alike
from tests.parsim import schedules

NAMES = ("gold", "silver")


def starts(
    system: System, *, submit: list[int] | None = None, walltime: list[int] | None = None, **columns
) -> list[int]:
    n = len(columns["cores"])
    walltime = walltime or [10] * n
    jobs = Workload(submit=submit or [0] * n, runtime=walltime, walltime=walltime, qos_names=NAMES, **columns)
    return schedules.starts(jobs, system)


def test_the_priority_of_its_qos_puts_a_job_first():
    classes = [QOS("gold", priority=100), QOS("silver", priority=-1)]
    found = starts(System(1, order="qos_priority", qos=classes), cores=[1] * 4, qos=[1, -1, 0, 7])
    assert found == [30, 10, 0, 20]  # without a QOS, and with one that is not named, 0


def test_a_target_lets_a_job_pass_as_it_nears():
    # At 10 the second has the expansion factor 1.5, the third 1.9: what is left to the targets decides.
    system = System(1, order="qos_target_factor", qos=[QOS("gold", target=2), QOS("silver", target=4)])
    rows = {"submit": [0, 5, 1], "cores": [1] * 3}
    assert starts(system, **rows, qos=[-1, 0, 1]) == [0, 10, 20]
    assert starts(system, **rows, qos=[-1, 1, 0]) == [0, 20, 10]
    assert starts(system, **rows, qos=[-1, 1, -1]) == [0, 10, 20]  # without a target it is 0


def test_the_target_factor_is_that_of_the_rule():
    base = np.array([[1.0] * 4, [10.0] * 4, [1.0] * 4, [0.0] * 4, [1.0] * 4, [3.0] * 4, [2.5, 2.5, 2.5, 0.0]])
    waits = np.array([0.0, 5.0, 15.0, 15.0])
    assert parse("qos_target_factor").values(base, waits) == pytest.approx([1 / 1.5**2, 1.0, 1e8, 0.0])
    assert parse("qos_priority + qos_target").values(base, waits).tolist() == [5.5, 5.5, 5.5, 3.0]
    assert parse("qos_priority + qos_target_factor").values(base[:5], waits).tolist() == [0.0] * 4  # no QOS


def test_the_target_factor_never_falls():
    formula = parse("2 * qos_target_factor + eligible_time")
    columns = formula.columns(np.array([[1.0], [10.0], [1.0], [0.0], [1.0], [3.0], [2.5]]))
    assert formula.uses_eligible_time
    assert formula.uses_qos
    assert never_falls(formula, columns, 1e6)


def test_an_exempt_job_is_not_held_and_counts():
    queue = [Queue(max_run=1)]
    classes = [QOS("gold", exempt=["max_run"])]
    assert starts(System(4, queue, qos=classes), cores=[1] * 3, qos=[1, 0, 1]) == [0, 0, 10]
    assert starts(System(4, queue, qos=classes), cores=[1] * 3, qos=[0, 1, 1]) == [0, 10, 20]
    assert starts(System(4, queue, qos=[QOS("gold", exempt=["all"])]), cores=[1] * 3, qos=[0, 0, 0]) == [0, 0, 0]
    assert starts(System(4, queue), cores=[1] * 3, qos=[0, 0, 0]) == [0, 10, 20]


def test_an_exemption_is_from_the_limits_of_one_name():
    classes = [QOS("gold", exempt=["max_user_run"])]
    queue = [Queue(max_user_run=1, max_run_cores=3)]
    assert starts(System(8, queue, qos=classes), cores=[2, 1, 1], user=[0, 0, 0], qos=[0, 0, 0]) == [0, 0, 10]
    throttles = [Throttle("user", max_run=1)]  # of another name
    found = starts(System(8, queue, qos=classes, throttles=throttles), cores=[1, 1], user=[0, 0], qos=[0, 0])
    assert found == [0, 10]


def test_limits_of_each_qos_of_one_and_of_users_in_one():
    each = [Throttle("qos", max_run=1)]
    assert starts(System(8, throttles=each), cores=[1] * 5, qos=[0, 0, 1, -1, -1]) == [0, 10, 0, 0, 0]
    named = [*each, Throttle("qos", "gold", max_run=2)]
    assert starts(System(8, throttles=named), cores=[1] * 5, qos=[0, 0, 1, 1, 0]) == [0, 0, 0, 10, 10]
    users = [Throttle("user", max_run=1, qos="gold")]
    assert starts(System(8, throttles=users), cores=[1] * 4, user=[0, 0, 1, 0], qos=[0, 0, 0, 1]) == [0, 10, 0, 0]


def test_no_job_is_exempt_from_the_limits_of_its_qos():
    classes, throttles = [QOS("gold", exempt=["all"])], [Throttle(max_run=1, qos="gold")]
    assert starts(System(8, qos=classes, throttles=throttles), cores=[1] * 2, qos=[0, 0]) == [0, 10]


def test_an_exempt_job_enters_its_list():
    throttles = [Throttle("user", max_queued=1)]
    rows = {"cores": [1] * 3, "user": [0, 0, 0]}
    assert starts(System(8, throttles=throttles), **rows, qos=[0, 0, 0]) == [0, 10, 20]
    classes = [QOS("gold", exempt=["max_queued"])]
    assert starts(System(8, throttles=throttles, qos=classes), **rows, qos=[1, 0, 1]) == [0, 0, 10]


def test_a_wider_job_than_a_limit_may_be_exempt():
    queue = [Queue(max_run_cores=2)]
    with pytest.raises(ValueError, match="max_run_cores = 2"):
        starts(System(8, queue), cores=[4], qos=[0])
    assert starts(System(8, queue, qos=[QOS("gold", exempt=["max_run_cores"])]), cores=[4], qos=[0]) == [0]
    with pytest.raises(ValueError, match="max_run_cores = 2"):
        starts(System(8, queue, qos=[QOS("gold", exempt=["max_run_cores"])]), cores=[4], qos=[1])


def test_qos_parts_lines_only_where_it_is_read():
    jobs = Workload([0, 0], [1, 1], [9, 9], [9, 9], qos=[0, 1], qos_names=NAMES)
    prepared, nothing = prepare(jobs), np.empty((0, 2))
    classes = [QOS("gold", priority=5, exempt=["max_run"])]
    assert pack_alike(prepared, System(4, qos=classes), nothing).tolist() == [0, 0]
    limited = System(4, [Queue(max_run=1)], qos=classes)
    assert pack_alike(prepared, limited, nothing).tolist() == [0, 1]
    throttled = System(4, throttles=[Throttle("qos", max_run=1)])
    assert pack_alike(prepared, throttled, nothing).tolist() == [0, 1]


def test_the_explanation_names_the_limit_of_the_qos():
    jobs = Workload([0, 0], [1, 1], [10, 10], [10, 10], qos=[0, 0], qos_names=NAMES, user=[0, 0], user_names=("ann",))
    system = System(8, throttles=[Throttle("user", max_run=1, qos="gold")])
    assert explain(jobs, system, simulate(jobs, system), 1)[0].text == "held by max_run = 1 of user ann in qos gold"
