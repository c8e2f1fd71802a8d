"""Periods of a history, and what it gives to parsim."""

from dataclasses import replace
from itertools import pairwise

import pandas as pd
import pytest

from qconf.config import SiteConfig
from qconf.errors import InputError
from qconf.history import clean, derive_config, read

CSV = "job_id,submit,runtime,walltime,cores,queue,user\n"


def at(*moments, queue="q"):
    return CSV + "".join(
        f"{i},{moment},60,100,4,{queue},{'ann' if i % 2 else ''}\n" for i, moment in enumerate(moments)
    )


@pytest.fixture
def history(write):
    def build(text, timezone="UTC"):
        records = read(write(text), timezone=timezone)
        return clean(records, derive_config(records, 64))

    return build


def test_a_month_is_a_calendar_month(history):
    whole = history(at("2016-01-31T23:59:59", "2016-02-01", "2016-02-29T23:59:59", "2016-03-01"))
    month = whole.month("2016-02")
    assert month.jobs["job_id"].tolist() == ["1", "2"]
    assert (month.read, len(month.dropped), month.outside) == (4, 0, 2)
    assert month.jobs["row"].tolist() == [1, 2]


def test_a_month_goes_by_the_zone_of_the_log(history, write):
    assert len(history(at("2016-01-31T23:30:00Z"), "Europe/Stockholm").month("2016-02")) == 1
    # 2016-01-31T23:30:00Z
    swf = "; UnixStartTime: 1454283000\n; TimeZoneString: Europe/Stockholm\n; MaxProcs: 9\n"
    records = read(write(swf + "1 0 0 60 4 -1 -1 4 100 -1 1 1 1 -1 -1 -1 -1 -1\n"))
    assert len(clean(records, derive_config(records)).month("2016-02")) == 1


@pytest.mark.parametrize("label", ["2016-13", "2016-00", "feb", "2016-2", "0000-01", "9999-12"])
def test_what_is_no_month(history, label):
    with pytest.raises(InputError, match="month"):
        history(at("2016-01-31")).month(label)


def test_an_empty_month_is_refused_with_the_span_of_the_history(history):
    with pytest.raises(InputError, match=r"no job was submitted between 2017-05-01.*2016-01-31T00:00:00"):
        history(at("2016-01-31")).month("2017-05")


def test_periods_by_month_cover_the_span(history):
    whole = history(at("2015-11-20", "2016-02-03"))
    periods = whole.periods("month")
    assert [label for label, _, _ in periods] == ["2015-11", "2015-12", "2016-01", "2016-02"]
    assert all(end == start for (_, _, end), (_, start, _) in pairwise(periods))
    assert sum(((whole.jobs["submit"] >= a) & (whole.jobs["submit"] < b)).sum() for _, a, b in periods) == 2


def test_months_before_are_whole_and_have_enough_jobs(history):
    days = [
        f"2016-{month:02d}-{day:02d}"
        for month, count in ((1, 3), (2, 1), (3, 2), (4, 4))
        for day in range(1, count + 1)
    ]
    whole = history(at(*days))

    def labels(date, fewest):
        second = int(pd.Timestamp(date, tz="UTC").timestamp()) - whole.epoch
        return [month.date(month.span[0])[:10] for month in whole.months_before(second, fewest)]

    assert labels("2016-04-01", 2) == ["2016-01-01", "2016-03-01"]
    assert labels("2016-03-31T23:59:59", 1) == ["2016-01-01", "2016-02-01"]
    assert labels("2016-01-01", 1) == []


def test_periods_by_days_start_with_the_first_job(history):
    whole = history(at("2016-01-10T06:00:00", "2016-02-10"))
    day = pd.Timestamp("2016-01-10T06:00:00").timestamp()
    assert whole.periods("30d") == [
        ("2016-01-10", day, day + 30 * 86400),
        ("2016-02-09", day + 30 * 86400, day + 60 * 86400),
    ]
    with pytest.raises(InputError, match="Write month, or days such as 30d"):
        whole.periods("week")


def test_periods_have_labels_of_their_own_on_a_day_of_25_hours(history):
    whole = replace(history(at("2023-10-28T22:15:00", "2023-10-31")), timezone="Europe/Stockholm")
    labels = [label for label, _, _ in whole.periods("1d")]
    assert labels == ["2023-10-29", "2023-10-29T23:15", "2023-10-30"]


def test_between_counts_what_it_leaves_out_twice(history):
    part = history(at(*range(10))).between(2, 9).between(None, 5)
    assert (part.span, part.outside, part.read) == ((2, 4), 7, 10)


def test_the_workload_has_the_indices_of_the_configuration(history):
    whole = history(at(1, 2, 3))
    config = SiteConfig.model_validate({"machine": {"cores": 64}, "queues": [{"name": "p"}, {"name": "q"}]})
    workload = whole.workload(config)
    assert workload.queue.tolist() == [1, 1, 1]
    assert workload.user.tolist() == [-1, 0, -1]
    with pytest.raises(InputError, match="queue = 'q': the configuration has no such queue"):
        whole.workload(SiteConfig.model_validate({"machine": {"cores": 64}, "queues": [{"name": "p"}]}))


def test_shifting_the_clock_changes_nothing_but_the_submits(history):
    early, late = history(at(5, 9, 7)), history(at(1005, 1009, 1007))
    assert (late.jobs["submit"] - early.jobs["submit"] == 1000).all()
    assert late.jobs.drop(columns="submit").equals(early.jobs.drop(columns="submit"))
