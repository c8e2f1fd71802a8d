"""An implausible present: queues that no site would bear, each with its figures."""

import numpy as np
import pytest

from parsim import Workload
from qconf.config import MachineConfig, QueueConfig, SiteConfig
from qconf.evaluation.outcome import Outcome
from qconf.evaluation.period import Period
from qconf.evaluation.plausibility import _waiting, implausible
from tests.parsim.schedules import schedule
from tests.qconf.small import DAY, period, two

BASE = SiteConfig(machine=MachineConfig(cores=10**6), queues=(QueueConfig(name="slow"), QueueConfig(name="quick")))


def found(submit, wait, queue=None, counted=None):
    n = len(submit)
    w = Workload(submit, np.ones(n), np.full(n, 60), np.full(n, 60), queue=queue)
    outcome = Outcome(Period(w, BASE), schedule(w, BASE.system(), w.submit + np.asarray(wait)), counted)
    return implausible(outcome)


HOURLY = np.arange(0, 20 * DAY + 1, 3600)  # 481 jobs in 20 days


def test_a_queue_that_drains_is_plausible():
    assert found(HOURLY, np.full(481, 6 * 3600)) == []
    # Ever more jobs wait, but they have all started within a day after the last submission.
    assert found(HOURLY, HOURLY // 20) == []
    # The last job waits for four days, less than a quarter of the log.
    assert found(HOURLY, [*[0] * 480, 4 * DAY]) == []


def test_a_queue_whose_backlog_grows_to_the_end_never_drains():
    (text,) = found(HOURLY, HOURLY // 4)
    assert text == (
        "queue slow never drains: in the quarters of the log 12, 36, 60, 84 jobs wait on average; 96 of its 481 jobs "
        "still wait at the last submission, the last for 5.0 days more"
    )


def test_jobs_that_wait_long_after_the_last_submission():
    (text,) = found(HOURLY, [*[0] * 480, 6 * DAY])
    assert text == (
        "queue slow does not drain: 1 of its 481 jobs still waits at the last submission, the last for 6.0 days more, "
        "in a log of 20.0 days"
    )


def test_a_wait_longer_than_the_log_is_said_of_its_queue_alone():
    wait = [*[0] * 479, 21 * DAY, 0]
    assert found(HOURLY, wait, queue=[*[1] * 479, 0, 1]) == [
        "queue slow waits longer than the log: up to 21.0 days, in a log of 20.0 days"
    ]
    assert found(HOURLY, wait, counted=HOURLY < 19 * DAY) == []


def test_less_than_two_moments_are_no_log():
    assert found([5, 5], [9 * DAY, 0]) == []
    assert found([], []) == []


@pytest.mark.parametrize("seed", range(5))
def test_the_backlog_agrees_with_counting_every_second(seed):
    rng = np.random.default_rng(seed)
    submit = rng.integers(0, 40, 12)
    start = submit + rng.integers(0, 30, 12)
    seconds = np.arange(40)
    waiting = ((submit[:, None] <= seconds) & (seconds < start[:, None])).sum(axis=0)
    expected = waiting.reshape(4, 10).mean(axis=1)
    np.testing.assert_allclose(_waiting(submit, start, np.linspace(0, 40, 5)), expected)


def test_a_simulated_period_under_light_and_under_hopeless_load():
    light = period(two(mode="shared"), jobs=40)
    assert implausible(Outcome(light, light.simulate(light.base))) == []
    heavy = period(two(mode="shared"), jobs=2000)
    sentences = implausible(Outcome(heavy, heavy.simulate(heavy.base)))
    assert sentences
    assert all(each.startswith(("queue short ", "queue long ")) for each in sentences)
