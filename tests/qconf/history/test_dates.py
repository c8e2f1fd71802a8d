"""Columns of times: the usual forms are found, and what reads two ways is refused with both readings."""

from datetime import UTC
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qconf.errors import InputError
from qconf.history import read
from qconf.history.dates import Times, TwoReadingsError, check_format
from qconf.history.times import instant

FIRST = 1790841600  # 2026-10-01 08:00
HEADER = "job_id,submit,runtime,walltime,cores,queue\n"


def seconds(*texts, where=UTC, form=None):
    times = Times(where, form)
    times.add(pd.Series(texts, dtype="str"))
    return [None if np.isnan(value) else value for value in times.settled()[0].tolist()]


@pytest.mark.parametrize(
    "text",
    ["2026-10-01T08:00:00", "2026-10-01 08:00", "2026-10-01T08:00:00Z", "2026-10-01 10:00:00+02:00", "2026-10-01T08",
     "2026/10/01 08:00", "2026/10/1 8:00", "2026.10.01 08:00:00", "01.10.2026 08:00", "1.10.2026 08:00:00",
     "1 Oct 2026 08:00", "01-Oct-2026 08:00:00", "1 October 2026 8:00 AM", "Oct 1, 2026 8:00 am",
     "October 1 2026 08:00",
     "Thu Oct  1 08:00:00 2026", "1790841600", "1790841600000", "1790841600000000", "1790841600000000000",
     "20261001080000", "202610010800"],
)  # fmt: skip
def test_usual_forms(text):
    assert seconds(text, "", "-1", f" {text} ") == [FIRST, -1, -1, FIRST]


@pytest.mark.parametrize(
    ("first", "settling", "second"),
    [("10/01/2026 8:00 AM", "10/13/2026 8:00 AM", FIRST), ("01/10/2026 08:00", "13/10/2026 08:00", FIRST),
     ("01-10-2026 08:00", "31-10-2026", FIRST), ("10/10/2026", "11/11/2026", FIRST - 8 * 3600 + 9 * 86400)],
)  # fmt: skip
def test_the_whole_column_settles_whether_day_or_month_comes_first(first, settling, second):
    assert seconds(first, settling)[0] == second
    assert seconds(settling, "junk", first)[2] == second


@pytest.mark.parametrize(
    ("texts", "value", "message", "flags"),
    [
        (("", "10/01/2026 8:00 AM", "10/12/2026 8:00 AM"), "10/01/2026 8:00 AM",
         "reads two ways, 2026-01-10 08:00 (day first) and 2026-10-01 08:00 (month first)",
         ("'%d/%m/%Y %I:%M %p'", "'%m/%d/%Y %I:%M %p'")),
        (("10/13/2026", "10/10/2026", "13/10/2026"), "13/10/2026",
         "has the day first, and '10/13/2026' in the same column the month", ("'%d/%m/%Y'", "'%m/%d/%Y'")),
        (("20261001", "", "20261031"), "20261001", "the date 2026-10-01 and the Unix second of 1970-08-23 12:03:21",
         ("%Y%m%d", "epoch")),
    ],
)  # fmt: skip
def test_two_readings_are_refused_and_the_flag_settles_them(texts, value, message, flags):
    with pytest.raises(TwoReadingsError) as caught:
        seconds(*texts)
    assert caught.value.value == value
    assert message in str(caught.value)
    found = set()
    for flag in flags:
        assert f"--date-format {flag}" in caught.value.fix
        found.add(seconds(value, form=check_format(flag.strip("'")))[0])
    assert len(found - {None}) == len(flags) - ("13/10" in value)


def test_a_given_format_comes_first_and_settles_the_order_of_other_spellings():
    texts = ("10/02/2026 8:00 AM", "10/02/2026", "13/10/2026", "2026-10-02", "1790841600")
    expected = [FIRST + 86400, FIRST + 57600, None, FIRST + 57600, FIRST]
    assert seconds(*texts, form="%m/%d/%Y %I:%M %p") == expected
    assert seconds("01.10.26 08:00", form="%d.%m.%y %H:%M") == [FIRST]


@pytest.mark.parametrize(
    "text", ["now", "today", "nan", "NaT", "2026-02-30", "32.01.2026", "10/2026", "1e400", "13/13/2026"]
)
def test_no_time(text):
    assert seconds("2026-10-01", text, "now")[1:] == [None, None]


@given(st.lists(st.datetimes(pd.Timestamp("1980-01-01"), pd.Timestamp("2080-01-01")), min_size=1, max_size=20))
@settings(max_examples=50)
def test_local_times_are_those_of_single_ones(moments):
    where = ZoneInfo("Australia/Lord_Howe")  # its clocks move by half an hour
    texts = [f"{moment:%Y-%m-%d %H:%M:%S}" for moment in moments]
    assert seconds(*texts, where=where) == [instant(text, where) for text in texts]
    assert seconds(*(f"{moment:%d.%m.%Y %H:%M:%S}" for moment in moments), where=where) == seconds(*texts, where=where)


@pytest.mark.parametrize("text", ["%H:%M", "%Q", "", "noon", "%m/%Y"])
def test_a_format_without_a_date_is_refused(text):
    with pytest.raises(InputError, match="--date-format = "):
        check_format(text)


def test_a_csv_says_where_it_reads_two_ways_and_which_flag_settles_it(write):
    path = write(HEADER + "a,,60,100,4,q\nb,01/02/2026 08:00,60,100,4,q\n")
    with pytest.raises(InputError, match=r"line 3: submit = '01/02/2026 08:00': reads two ways.*--date-format '%d/%m"):
        read(path)
    month_first = read(path, date_format="%m/%d/%Y %H:%M")
    assert month_first.table["submit"].tolist() == [-1, instant("2026-01-02T08:00")]
    with pytest.raises(InputError, match=r"--date-format = '%d.%m.%Y': no time of the file is written so"):
        read(path, date_format="%d.%m.%Y")


def test_a_format_is_for_csv(write):
    path = write("1 0 0 10 4 -1 -1 4 60 -1 1 1 1 -1 1 -1 -1 -1\n", "a.swf")
    with pytest.raises(InputError, match=r"a.swf: --date-format = '%d.%m.%Y': the times of swf have one form"):
        read(path, date_format="%d.%m.%Y")
