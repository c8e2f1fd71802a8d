"""Orders that are sums of points: small whole numbers, the site's policy as terms, told as a site tells its users."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsim.model.formula import parse
from qconf.config.points import MOST, points_of, ratio, term
from qconf.recommend.ladder import rung_of
from qconf.report.points import in_points, typical_table
from qconf.strategies.auto.families import General, Points
from qconf.strategies.auto.frame import Frame
from tests.qconf.strategies.auto.test_search import DAY, busy, first_come

HOUR = 3600


@pytest.mark.parametrize(
    ("order", "points"),
    [
        ("fcfs", {"eligible_time": 1.0}),
        ("sjf", None),
        ("lxf", None),
        ("eligible_time / walltime", None),
        ("2 * (eligible_time - walltime / 4) + 7", {"eligible_time": 2.0, "walltime": -0.5}),
        (
            "ncpus * -3 + 1 * eligible_time + (50 if eligible_time >= 9 else 0)",
            {"ncpus": -3.0, "eligible_time": 1.0, "starving": 50.0},
        ),
        ("eligible_time + 50 if walltime >= 9 else 0", None),
        ("1e28 if eligible_time >= 9 else eligible_time", None),
    ],
)
def test_a_sum_of_points_is_read_term_by_term(order, points):
    found = points_of(order)
    assert (None if found is None else dict(found)) == points


@given(st.floats(0.05, 5000))
def test_ratios_are_of_small_whole_numbers_and_near_what_is_wanted(wanted):
    waited, requested = ratio(wanted)
    assert requested / waited == pytest.approx(wanted, rel=0.42)
    assert min(waited, requested) == 1 or (waited, requested) in ((2, 3), (3, 2))
    assert waited <= MOST
    assert len(str(requested).rstrip("0")) <= 2


@given(st.floats(0.3, 1.6), st.sampled_from([0.0, 0.15]), st.integers(8, 10**6), st.floats(HOUR, 100 * DAY))
def test_a_day_more_of_walltime_costs_a_share_of_the_longest_wait(share, width, cores, longest):
    points = points_of(Points(share, width).formula(cores, longest))
    worth = -points["walltime"] * DAY / points["eligible_time"]  # seconds of waiting
    assert worth == pytest.approx(share * max(longest, DAY / 2), rel=0.6)
    if width:
        assert -points["ncpus"] * cores / points["eligible_time"] == pytest.approx(
            width * max(longest, DAY / 2), rel=0.6
        )


def test_priorities_and_starvation_periods_are_terms_that_keep_their_meaning():
    base = first_come()
    queues = [
        each.model_copy(update={"priority": 10.0 + 30 * i, "starvation": (1 + i) * DAY})
        for i, each in enumerate(base.queues)
    ]
    here = busy(base.with_queues(queues))
    config = Frame().config(here.period, Points(0.8).formula(base.machine.cores, 2 * DAY))
    points = points_of(config.order)
    assert points["queue_priority"] * (queues[-1].priority - 10) == pytest.approx(
        24 * HOUR * points["eligible_time"], rel=0.3
    )
    assert rung_of(here.period.base, config) == 1
    assert rung_of(here.period.base, Frame().config(here.period, General().formula(1000, DAY))) == 2

    longest = max(each.walltime[1] for each in queues)
    base_columns = np.array(
        [[10.0, 10.0 + 30 * (len(queues) - 1)], [longest, 60], [base.machine.cores, 1], [0, 0], [1, 1]]
    )
    starving, other = parse(config.order).values(base_columns, np.array([DAY, len(queues) * DAY - 1.0]))
    assert starving > other  # however long it is, and whatever the other has

    without = Frame(frozenset({"starvation", "priorities"})).formula(here.period.base, "eligible_time / 3600")
    assert without == "eligible_time / 3600"


def test_a_site_can_post_the_points():
    base = first_come()
    config = base.replace(order="eligible_time / 3600 - 2 * walltime / 3600 - ncpus / 200")
    assert in_points(config).startswith(
        "A waiting job has 1 point for each hour that it has waited, and loses 2 for each hour of walltime that it "
        "asks for and 1 for each 200 cores. The job with most points goes first."
    )
    assert in_points(base.replace(order="lxf")) == in_points(base.replace(order="fcfs")) == ""
    assert typical_table(base.replace(order="fcfs")) is None
    table = typical_table(config)
    assert table is not None
    assert list(table.headings) == ["job", "new", "after 6 h", "after 24 h", "after 72 h"]
    values = table.rows[0][1:]
    assert [float(each) for each in values[1:]] == [float(values[0]) + waited for waited in (6, 24, 72)]
    assert 3 <= len(table.rows) <= 5
    assert term(-0.5, "ncpus") == " - ncpus / 2"
