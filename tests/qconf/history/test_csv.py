"""The history CSV: what it takes, and one message with file, line, column and value for what it does not."""

import re
from pathlib import Path

import pytest

from qconf.errors import InputError
from qconf.history import clean, derive_config, read
from qconf.history.history import history_lines

HEADER = "job_id,submit,runtime,walltime,cores,queue,user,start,end,state"
GOOD = "a,1000,60,100,4,small,ann,1005,1065,completed"


def table(*rows, header=HEADER):
    return "\n".join((header, *rows, ""))


def test_a_row(write):
    assert read(write(table(GOOD))).table.iloc[0].to_dict() == {
        "job_id": "a", "submit": 1000, "runtime": 60, "walltime": 100, "cores": 4, "queue": "small",
        "user": "ann", "start": 1005, "end": 1065, "state": "completed", "group": "", "needs": "",
            "qos": "", "account": "", "file": 0, "line": 2,
    }  # fmt: skip


@pytest.mark.parametrize("name", ["group", "Account"])
def test_the_group_of_a_job_is_read_where_there_is_one(write, name):
    records = read(write(table(f"{GOOD},chem", GOOD.replace("a,", "b,", 1) + ",", header=f"{HEADER},{name}")))
    assert records.table["group"].tolist() == ["chem", ""]


def test_a_row_of_an_earlier_file_is_the_same_job_and_equal_tasks_of_one_file_are_not(write):
    other = GOOD.replace("1000", "1001")
    records = read([write(table(GOOD, GOOD, other), "a.csv"), write(table(GOOD, other.replace("a,", "b,")), "b.csv")])
    assert records.table[["job_id", "submit"]].values.tolist() == [["a", 1000], ["a", 1000], ["a", 1001], ["b", 1001]]
    assert records.dropped[["job_id", "line", "reason"]].values.tolist() == [["a", 2, "in an earlier file too"]]


def test_a_quote_left_open_does_not_swallow_the_rest(write):
    rows = [GOOD.replace("a,", f"{i},", 1) for i in range(9)]
    rows[3] = rows[3].replace("small", '"small')
    with pytest.raises(InputError, match=r"line 5.*a quote is left open"):
        read(write(table(*rows).rstrip("\n")))


def test_order_of_columns_is_free_and_others_stay_out(write):
    records = read(write("queue,extra,cores,walltime,runtime,submit,job_id\nsmall,x y,4,100,60,1000,0007\n"))
    assert records.table.iloc[0][["job_id", "queue", "cores", "user", "end"]].tolist() == ["0007", "small", 4, "", -1]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("3600", 3600), ("3600.0", 3600), ("01:00:00", 3600), ("1-00:00:00", 86400), ("72:00:00", 259200),
     ("2h30m", 9000),      ("90m", 5400), ("1d12h", 129600), ("45s", 45), ("", -1), ("-1", -1), ("59.2", 60)],
)  # fmt: skip
def test_durations(write, text, seconds):
    assert read(write(table(f"a,0,{text},{text},4,q,u,,,"))).table[["runtime", "walltime"]].values.tolist() == [
        [seconds] * 2
    ]


BAD = [
    ("a,1000,sixty,100,4,q,u,,,", "line 3: runtime = 'sixty': not a duration"),
    ("a,1000,nan,100,4,q,u,,,", "line 3: runtime = 'nan': not a duration"),
    ("a,1000,inf,100,4,q,u,,,", "line 3: runtime = 'inf': not a duration"),
    ("a,1000,60,24:00,4,q,u,,,", "line 3: walltime = '24:00': not a duration"),
    ("a,1000,60,00:60:00,4,q,u,,,", "line 3: walltime = '00:60:00': not a duration"),
    ("a,1000,60,-3600,4,q,u,,,", "line 3: walltime = '-3600': is negative"),
    ("a,1000,60,99999999999,4,q,u,,,", "line 3: walltime = '99999999999': is absurd"),
    ("a,yesterday,60,100,4,q,u,,,", "line 3: submit = 'yesterday': not a time"),
    ("a,2016-02-30,60,100,4,q,u,,,", "line 3: submit = '2016-02-30': not a time"),
    ("a,-5,60,100,4,q,u,,,", "line 3: submit = '-5': is negative"),
    ("a,1e300,60,100,4,q,u,,,", "line 3: submit = '1e300': is absurd"),
    ("a,1000,60,100,4.5,q,u,,,", "line 3: cores = '4.5': is not a whole number"),
    ("a,1000,60,100,four,q,u,,,", "line 3: cores = 'four': not a number"),
    ("a,1000,60,100,9999999999,q,u,,,", "line 3: cores = '9999999999': is absurd"),
    (",1000,60,100,4,q,u,,,", "line 3: job_id = '': is missing"),
    ("a,1000,60,100", "line 3: cells: 4 cells where the header has 10"),
    ("a,1000,60,100,4,q,u,,,,,", "line 3: cells: 12 cells where the header has 10"),
    ("a,1000,60,100,4,q,u,1065,1005,", "line 3: end = '1005': is before the start, '1065'"),
]


@pytest.mark.parametrize(("row", "message"), BAD)
def test_a_bad_value_is_named_with_its_line_and_the_fix(write, row, message):
    with pytest.raises(InputError) as caught:
        read(write(table(GOOD, row, GOOD)), strict=True)
    assert f"history.csv, {message}" in str(caught.value)
    assert str(caught.value).endswith(".")
    assert caught.value.fix


@pytest.mark.parametrize(("row", "message"), BAD)
def test_a_bad_row_is_dropped_with_its_line_and_reason(write, row, message):
    records = read(write(table(GOOD, row, GOOD)))
    assert records.table["line"].tolist() == [2, 4]
    assert (records.read, len(records.dropped)) == (3, 1)
    drop = records.dropped.iloc[0]
    assert (drop["job_id"], drop["line"]) == (row.split(",")[0], 3)
    assert Path(drop["file"]).name == "history.csv"
    value = re.search(r"(\w+) = ('[^']*')", message)
    if "cells" in message:
        assert drop["reason"] == "not as many cells as the header"
    elif message.startswith("line 3: end"):
        assert (drop["reason"], drop["detail"]) == ("ends before it starts", "start '1065', end '1005'")
    else:
        assert drop["reason"].startswith(value[1])
        assert drop["detail"] == value[2]


def test_of_a_row_the_first_mistake_counts_and_strict_stops_at_the_first_line(write):
    path = write(table(GOOD, "a,1000,60,100,4,q,u,9,8,", GOOD, "b,x,y,-5,z,q,u,,,", GOOD, GOOD))
    assert read(path).reasons == {"ends before it starts": 1, "submit not a time": 1}
    with pytest.raises(InputError, match=r"line 3: end = '8'.*Correct or remove the line"):
        read(path, strict=True)


def test_mostly_bad_rows_are_one_error(write):
    bad = [row for row, _ in BAD]
    path = write(table(*bad, *[GOOD] * (len(bad) - 1)))
    with pytest.raises(InputError) as caught:
        read(path)
    assert (
        f"line 2: runtime = 'sixty': not a duration; {len(bad)} of {2 * len(bad) - 1} rows cannot be read: 3 "
        in str(caught.value)
    )
    assert len(read(write(table(*bad, *[GOOD] * len(bad)))).dropped) == len(bad)


def test_a_row_of_the_wrong_width_that_goes_on_is_an_open_quote(write):
    with pytest.raises(InputError, match=r"line 3: a quote is left open: the row goes on to line 5. Close the quote"):
        read(write(table(GOOD, 'a,1000,60,100,4,"q,u,,,', GOOD, 'b,1000,60,100,4,q",u,,,', GOOD)))


def test_lines_are_counted_through_blanks_and_quoted_line_breaks(write):
    rows = ('"a\nb",1,60,100,4,q,u,,,', "", "c,2,60,100,4,q,u,,,", "d,x,60,100,4,q,u,,,")
    with pytest.raises(InputError, match="line 6: submit = 'x'"):
        read(write(table(*rows)), strict=True)
    assert read(write(table(*rows))).dropped["line"].tolist() == [6]
    assert read(write(table(*rows[:3]))).table["line"].tolist() == [2, 5]


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("job_id,submit,runtime,walltime,queue", "line 1: no column cores among job_id, submit"),
        ("job_id,submit,runtime,walltime,cores,queue,cores", "line 1: column = 'cores': two columns of this name"),
        ("job_id,submit,,,x", "line 1: no column runtime, walltime, cores, queue"),
    ],
)
def test_wrong_columns(write, header, message):
    with pytest.raises(InputError) as caught:
        read(write(table("a,1,2,3,4,q,7"[: 2 * len(header.split(",")) - 1], header=header)))
    assert message in str(caught.value)


def test_a_torn_last_line_is_dropped_and_counted(write):
    records = read(write(table(GOOD) + "b,1000,60"))
    assert (len(records.table), records.read) == (1, 2)
    assert records.dropped[["job_id", "line", "reason"]].values.tolist() == [["b", 3, "torn last line"]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (HEADER.encode() + b"\n\xff\xfe\n", "is not UTF-8"),
        (HEADER.encode() + b"\na\0b\n", "line 2: holds a zero byte"),
        (HEADER.encode() + b'\n"a,1,2\n', "cells where the header has 10|is no table"),
    ],
)
def test_no_table_at_all(write, content, message):
    with pytest.raises(InputError, match=message):
        read(write(content))


def test_no_row(write):
    records = read(write(HEADER + "\n"))
    assert records.read == 0
    with pytest.raises(InputError, match="no usable job among 0 records"):
        derive_config(records, 10)


def test_what_is_written_reads_the_same(write):
    rows = [
        "b,5,,,,,,,,",
        "a,1000,60,2h,4,small,ann,1005,1065,completed",
        '"c,""d""",2016-02-01,60,,8,x y,bob,,,running',
    ]
    first = read(write(table(*rows)))
    again = read(write("".join(history_lines(first.table, first.epoch)), "again.csv"))
    assert again.table.equals(first.table)


def test_fractions_are_counted_as_changes(write):
    records = read(write(table("a,10.5,59.2,100,4,q,u,,,")))
    assert records.changed == {"submit: fraction of a second cut": 1, "runtime: fraction of a second rounded up": 1}
    assert clean(records, derive_config(records, 8)).changed == records.changed


def jobs(*rows, header="job_id,submit,start,end,walltime,nodes,queue"):
    return table(*rows, header=header)


def test_run_times_from_start_and_end_where_there_is_no_column_of_them(write):
    header = "job_id,submit,start,end,walltime,cores,queue"
    records = read(write(jobs("a,10,20,80,100,4,q", "b,10,20,,100,4,q", "c,10,,80,100,4,q", header=header)))
    assert records.table["runtime"].tolist() == [60, -1, -1]
    assert records.changed == {"run time: from start to end": 1}
    given = read(write(table("a,10,50,100,4,q,u,20,80,")))
    assert (given.table["runtime"].tolist(), given.changed) == ([50], {})


def test_nodes_are_multiplied_by_the_cores_of_one(write):
    path = write(jobs("a,10,20,80,100,3,q", "b,10,20,80,100,,q", "c,10,20,80,100,0,q"))
    records = read(path, cores_per_node=24)
    assert records.table["cores"].tolist() == [72, -1, -1]
    assert records.changed["cores: nodes times cores per node"] == 1
    assert records.cores_per_node == 24
    with pytest.raises(InputError, match=r"line 1: the column nodes .* Give --cores-per-node"):
        read(path)
    header = "job_id,submit,start,end,walltime,NNodes,queue,cores_per_node"
    own = read(write(jobs("a,10,20,80,100,3,q,8", "b,10,20,80,100,3,q,", header=header)), cores_per_node=24)
    assert own.table["cores"].tolist() == [24, 72]
    assert own.cores_per_node is None
    both = read(write(jobs("a,10,20,80,100,3,q,7", header=header.replace("cores_per_node", "cores"))))
    assert both.table["cores"].tolist() == [7]


def test_more_nodes_than_a_machine_can_have_are_a_bad_row(write):
    rows = ["a,10,20,80,100,2000000000,q", "b,10,20,80,100,1,q"]
    assert read(write(jobs(*rows)), cores_per_node=24).reasons == {"nodes is absurd, more than 2147483647 cores": 1}
