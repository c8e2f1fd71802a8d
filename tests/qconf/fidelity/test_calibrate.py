"""What wrote a log is found in the family, on half of the windows, and holds on the other half."""

import json
from dataclasses import replace

import numpy as np
import pytest

from parsim import simulate
from qconf.config import QueueConfig
from qconf.config.models import Downtime, ThrottleConfig
from qconf.errors import InputError
from qconf.fidelity.calibrate import Step, calibrate
from qconf.fidelity.family import PARTS, Family
from qconf.fidelity.windows import Recorded, cut, spans
from tests.qconf.fidelity.logs import DAY, HOUR, history, limited, site, workload, written

TRUE = {"order": site(order="sjf"), "backfill": site(backfill=False), "limits": limited(site(), max_user_run=2)}
SOME = {"lengths": (4 * HOUR, 12 * HOUR), "count": 14}


def family_of(given, log=None, windows=None):
    """The family that calibration searches from what is given, for the log that it writes."""
    log = log or written(given)
    recorded = Recorded.of(log, given)
    return Family.of(given, recorded, cut(recorded, windows or spans(recorded, count=14)), log)


@pytest.mark.parametrize("part", TRUE)
def test_what_wrote_the_log_is_found(part):
    true = TRUE[part]
    found = calibrate(written(true), site(), **SOME)
    assert found.given.total.agreement < 0.9
    assert found.found.total.agreement == 1.0
    assert found.found.grade.letter == "A"
    assert found.steps[0].part == part
    for name in ("order", "backfill"):
        assert getattr(found.verification.config, name) == getattr(true, name)
    assert [queue.max_user_run for queue in found.verification.config.queues] == [
        queue.max_user_run for queue in true.queues
    ]
    assert (found.found.total.counted.least, found.found.total.counted.most) == (0, 0)


def test_two_parts_are_found_one_after_the_other():
    true = limited(site(order="ljf"), max_user_run=3)
    found = calibrate(written(true), site(), **SOME)
    assert {step.part for step in found.steps} == {"order", "limits"}
    assert found.found.total.agreement == 1.0


@pytest.mark.parametrize(
    ("true", "text"),
    [
        (site(reservation_depth=None), "backfilling, a reservation for each job"),
        (site(reservation_depth=3), "backfilling, 3 reservations"),
        (site(throttles=(ThrottleConfig(max_eligible=5),)), "of all jobs 5 that wait are looked at"),
        (site(throttles=(ThrottleConfig(each="user", max_eligible=1),)), "of each user 1 that wait are looked at"),
    ],
)
def test_how_deep_a_site_backfills_is_found(true, text):
    log = written(true)
    given = site(throttles=(ThrottleConfig(max_run=64),))
    found = calibrate(log, given, **SOME, parts=("backfill",))
    assert found.steps[0].text == text
    assert found.verification.config.reservation_depth == true.reservation_depth
    assert 64 in [throttle.max_run for throttle in found.verification.config.throttles]
    assert found.found.total.agreement > found.given.total.agreement


def test_the_depth_is_searched_only_where_there_can_be_one():
    given = site(reserve="nodes")
    changes = family_of(given).changes(given, ("backfill",))
    assert {change.config.reservation_depth for change in changes} == {1}


@pytest.mark.parametrize("policy", ["shortpools", "tiers"])
def test_shortpools_go_with_any_depth_and_tiers_with_one_reservation(policy):
    changed = {"shortpools": ({"cores": 1, "walltime": HOUR},)}
    if policy == "tiers":
        changed = {"queues": (QueueConfig(name="short", walltime=(0, HOUR), tier=1), QueueConfig(name="long"))}
    given = site(**changed)
    idle = Downtime.model_validate({"begin": "2026-01-05T08:00", "end": "2026-01-05T12:00"})
    found = list(replace(family_of(given), dedicated=(idle,)).changes(given))
    assert ({change.config.reservation_depth for change in found} == {1}) == (policy == "tiers")
    assert any(change.part == "dedicated" for change in found) == (policy == "shortpools")


def test_what_is_right_stays():
    found = calibrate(written(site()), site(), **SOME)
    assert found.steps == ()
    assert found.verification.config == site()
    assert found.found is found.given


def test_workers_make_no_difference_and_the_number_of_trials_is_kept():
    log = written(TRUE["order"])
    one, two = (calibrate(log, site(), **SOME, workers=workers, parts=("order", "backfill")) for workers in (1, 2))
    assert json.dumps(one.document(), default=str) == json.dumps(two.document(), default=str)
    few = calibrate(log, site(), **SOME, trials=3)
    assert few.tried == 3
    assert one.tried > 3
    shares = []
    calibrate(log, site(), **SOME, parts=("order",), progress=lambda _, share: shares.append(share))
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def test_only_the_parts_that_are_named_are_searched():
    found = calibrate(written(TRUE["order"]), site(), **SOME, parts=("backfill",))
    assert all(step.part == "backfill" for step in found.steps)
    assert found.verification.config.order == "fcfs"


def test_too_few_windows_are_refused():
    with pytest.raises(InputError, match="too few to train on half of them"):
        calibrate(written(site()), site(), lengths=(4 * DAY, 4 * DAY))


def test_what_does_not_hold_on_the_other_windows_is_not_proposed(monkeypatch):
    wrong = site(order="ljf")

    def run(search, config, _):
        search._simulate([config, wrong])
        return wrong, (Step("order", "order ljf", 0.9),)

    monkeypatch.setattr("qconf.fidelity.calibrate._Search.run", run)
    found = calibrate(written(site()), site(), **SOME)
    assert found.steps
    assert "on the other windows it has an agreement of 0." in found.rejected
    assert found.rejected.endswith("what is given 1.000")
    assert found.verification.config == site()
    assert found.found is found.given


def test_every_change_of_the_family_lets_every_job_start_and_differs():
    given = site(
        queues=(
            QueueConfig(name="short", walltime=(0, 2 * HOUR), priority=2.0, max_run=5),
            QueueConfig(name="long", walltime=(2 * HOUR, DAY), starvation=DAY),
        )
    )
    w = workload()
    changes = list(family_of(given, written(given, w)).changes(given))
    assert {change.part for change in changes} == set(PARTS) - {"dedicated"}
    for change in changes:
        assert change.config != given
        assert (simulate(w, change.config.system()).start >= w.submit).all()


def test_hours_of_the_week_in_which_no_job_starts_are_found():
    w = workload(jobs=4000, days=90)

    # From 8 to 12 on each Monday nothing starts; day 4 of the epoch's scale is a Monday.
    def opened(second):
        into = (second - 4 * DAY) % (7 * DAY)
        return second + 12 * HOUR - into if 8 * HOUR <= into < 12 * HOUR else second

    narrow = replace(w, cores=np.ones_like(w.cores))
    start = np.array([opened(int(second)) for second in w.submit])
    log = history(narrow, start, site())
    found = family_of(site(), log, spans(Recorded.of(log, site()), (DAY, DAY), 90)).dedicated
    assert found
    assert {each.begin[11:16] for each in found} == {"08:00"}
    assert {each.end[11:16] for each in found} == {"12:00"}
