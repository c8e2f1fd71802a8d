"""Simulated waits compared with the actual ones."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from parsim import simulate
from qconf.errors import InputError
from qconf.fidelity.grade import Grade, with_grade
from qconf.history import Records
from qconf.history.deriving import check_size
from qconf.history.records import most_at_once
from qconf.recommend import recommend
from qconf.recommend.doubts import doubts
from qconf.recommend.fidelity import FEWEST, Fidelity, fidelity
from qconf.report.wording import fidelity_text
from tests.qconf.recommend.test_recommend import STARVED, history
from tests.qconf.small import SHORT, site

PAST = history(STARVED, jobs=200)
WAITS = simulate(PAST.workload(STARVED), STARVED.system()).wait


def fidelity_of(waits, span=PAST.span):
    """Fidelity for the same history in a log with the starts after these waits; -1 for an unknown start."""
    submit = PAST.jobs["submit"].to_numpy()
    start = np.where(np.asarray(waits) < 0, -1, submit + waits)
    return fidelity(replace(PAST, jobs=PAST.jobs.assign(start=start)), STARVED, span)


def test_waits_that_are_simulated_exactly_are_near():
    found = fidelity_of(WAITS)
    assert found.jobs == 200
    assert found.real_mean == found.mean == WAITS.mean()
    assert found.real_median == found.median == np.median(WAITS)
    assert found.correlation == pytest.approx(1.0)
    assert (found.grade.letter, found.grade.agreement) == ("A", 1.0)
    assert not found.doubtful
    assert list(doubts(PAST, STARVED, found, None, ())) == []


def test_the_waits_of_each_queue_and_day():
    found = fidelity_of(WAITS + 600)
    jobs = PAST.jobs.assign(real=WAITS + 600, mean=WAITS)
    dates = [PAST.date(second)[:10] for second in jobs["submit"]]
    assert len(found.days) == len({*zip(jobs["queue"], dates, strict=True)}) > 1
    assert [day.queue for day in found.days] == sorted((d.queue for d in found.days), key=STARVED.names.index)
    for day in found.days:
        own = jobs[(jobs["queue"] == day.queue) & (np.array(dates) == day.date)]
        assert (day.jobs, day.real_mean, day.mean) == (len(own), own["real"].mean(), own["mean"].mean())


def test_waits_under_another_configuration_are_far_apart():
    found = fidelity_of(3 * WAITS + 3600)
    assert found.grade.letter in "DE"
    assert "qconf fidelity shows which jobs are farthest off" in fidelity_text(found)
    assert f"waited {(3 * WAITS + 3600).mean() / 3600:.2f} h on average" in fidelity_text(found)


def test_only_jobs_whose_start_is_known_count():
    some = np.where(np.arange(200) < FEWEST, WAITS, -1)
    assert fidelity_of(some).jobs == FEWEST
    assert fidelity_of(some).mean == WAITS[:FEWEST].mean()
    assert fidelity_of(np.where(np.arange(200) < FEWEST - 1, WAITS, -1)) is None
    assert fidelity(PAST, STARVED, PAST.span) is None  # no start is known
    late = (int(PAST.jobs["submit"].iloc[150]), PAST.span[1])
    assert (fidelity_of(WAITS, late).jobs, fidelity_of(WAITS, late).mean) == (50, WAITS[150:].mean())


def test_without_waits_there_is_no_correlation():
    found = fidelity_of(np.zeros(200, dtype=np.int64))
    assert math.isnan(found.correlation)
    assert "correlation" not in fidelity_text(found)


@pytest.mark.parametrize("letter", "ABCDE")
def test_a_grade_of_d_or_e_is_a_doubt(letter):
    found = replace(Fidelity(100, 7200.0, 0.0, 7100.0, 0.0, 0.9), grade=Grade(letter, 0.6, 5.0, 80, 12))
    assert found.doubtful == (letter in "DE")
    assert f"Fidelity grade {letter}: simulated from what ran at the begin of 12 windows, 60 %" in fidelity_text(found)
    assert ("Gains are measured against the simulation" in fidelity_text(found)) == found.doubtful
    assert bool(list(doubts(PAST, STARVED, found, None, ()))) == found.doubtful


def test_the_same_waits_of_other_jobs_are_far():
    rng = np.random.default_rng(0)
    found = fidelity_of(rng.permutation(WAITS))
    assert found.mean == found.real_mean
    assert found.grade.letter in "DE"
    assert "the site may have had another configuration" in fidelity_text(found).lower()


def near(letter, recorded, simulated):
    return Fidelity(100, recorded, 0.0, simulated, 0.0, 0.12, grade=Grade(letter, 0.2, 5.0, 80, 12))


@pytest.mark.parametrize(
    ("recorded", "simulated", "cause"),
    [
        (128880.0, 24120.0, "limits, reservations or outages"),
        (24120.0, 128880.0, "a larger machine"),
        (24120.0, 25000.0, "another order"),
    ],
)
def test_a_doubt_has_the_figures_its_likeliest_cause_and_what_settles_it(recorded, simulated, cause):
    (found,) = doubts(PAST, STARVED, near("E", recorded, simulated), None, ())
    waits = f"mean wait {recorded / 3600:.2f} h recorded, {simulated / 3600:.2f} h simulated"
    assert found.what == f"simulated waits are far from those of the log (fidelity grade E; {waits})"
    assert found.cause.startswith(cause)
    assert found.command == "qconf fidelity LOG --config SITE.yaml --calibrate"


def test_a_configuration_carries_a_grade_where_the_log_gives_none():
    carries = with_grade(STARVED, Grade("D", 0.42, 5.0, 80, 12)).fidelity

    def found(near, carries):
        return [each.what for each in doubts(PAST, STARVED, near, carries, ())]

    says = "simulated waits are far from those of an earlier log (the configuration carries grade D)"
    assert found(None, carries) == found(Fidelity(100, 9.0, 0.0, 9.0, 0.0, 0.9), carries) == [says]
    assert found(near("B", 9.0, 9.0), carries) == []
    assert found(None, with_grade(STARVED, Grade("B", 0.8, 5.0, 80, 12)).fidelity) == found(None, None) == []


@pytest.mark.parametrize(("lost", "said"), [(22, False), (23, True)])
def test_a_tenth_of_the_jobs_that_the_configuration_cannot_run_is_a_doubt(lost, said):
    reasons = ["wider than the machine"] * (lost - 3) + ["fits no queue"] * 3 + ["no run time"] * 99
    past = replace(PAST, dropped=pd.DataFrame({"reason": reasons}), read=PAST.read + len(reasons))
    found = list(doubts(past, STARVED, None, None, ()))
    assert bool(found) == said
    if found:
        counts = f"{lost} of {200 + lost} jobs were dropped"
        assert found[0].what.startswith(
            f"{counts}: the configuration cannot run them ({lost - 3} wider than the machine"
        )
        assert found[0].cause == "the size of the machine, 64 cores in the configuration"


def test_more_cores_at_once_than_the_machine_has_are_a_doubt_and_twice_as_many_are_refused():
    jobs = PAST.jobs.assign(start=0, cores=1)
    for cores, said in ((1, False), (71, True)):
        jobs.loc[jobs.index[0], "cores"] = cores
        found = list(doubts(replace(PAST, jobs=jobs.iloc[:1], read=1), STARVED, None, None, ()))
        assert bool(found) == said
    assert found[0].what == "71 cores ran at once in the log, the configuration's machine has 64"
    records = Records(table=jobs.assign(cores=1), dropped=PAST.dropped)
    check_size(records, site(SHORT, mode="shared", cores=101))
    with pytest.raises(
        InputError, match=r"machine.cores = 1: 200 cores ran at once in the log. Write the machine's size"
    ):
        check_size(records, site({**SHORT, "cores": (1, 1), "partition": 1}, mode="shared", cores=1))


def test_at_once_an_end_comes_before_a_start_of_the_same_second():
    jobs = pd.DataFrame({"start": [0, 10, 10, -1], "runtime": [10, 5, 5, 9], "cores": [8, 3, 4, 100]})
    assert most_at_once(jobs) == 8
    assert most_at_once(jobs.assign(runtime=11)) == 15
    assert most_at_once(jobs.assign(start=-1)) == 0


def test_a_recommendation_has_the_grade_of_the_present_and_no_proposal_has_it():
    graded = with_grade(STARVED, Grade("C", 0.55, 5.0, 80, 12))
    found = recommend(history(graded, jobs=600), graded, strategies=("pp",))
    assert found.proposes
    assert found.graded == graded.fidelity
    assert found.config.fidelity is None
    assert all(row.config is None or row.config.fidelity is None for row in found.rows)
    kept = recommend(history(graded, jobs=30), graded, strategies=())
    assert kept.verdict == "KEEP"
    assert kept.config == graded
    assert recommend(history(STARVED, jobs=30), STARVED, strategies=()).graded is None
    edited = graded.replace(order="sjf")
    assert recommend(history(edited, jobs=30), edited, strategies=()).graded is None
