"""Any table of jobs: its columns by name, by option, by what it is known for; its units; its files."""

import bz2
import json
import lzma
from contextlib import suppress
from datetime import datetime, time, timedelta

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qconf.errors import InputError
from qconf.history import read
from qconf.history.readers import formats
from qconf.history.readers.amounts import Numbers, duration
from qconf.history.readers.columns import PRESETS

HEADER = "job_id,submit,runtime,walltime,cores,queue"
ROWS = "a,1000,60,100,4,small\nb,2000,70,200,8,large\n"
CSV = f"{HEADER}\n{ROWS}"
VALUES = [["a", 1000, 60, 100, 4, "small"], ["b", 2000, 70, 200, 8, "large"]]


def rows(records, *names):
    return records.table[list(names or HEADER.split(","))].values.tolist()


def test_names_of_other_programs_whatever_their_case_and_blanks(write):
    header = "JobID,Submit Time,Elapsed,Requested Walltime,NCPUS,Partition,User\n"
    records = read(write(header + "1000,2026-02-01T00:19:20,146437,172800,64,short,bob\n"))
    assert rows(records, *HEADER.split(","), "user") == [["1000", 1769905160, 146437, 172800, 64, "short", "bob"]]


def test_a_walltime_that_was_used_is_refused_where_another_column_may_have_the_limits(write):
    path = write("id,submit_time,start_time,end_time,wall_time,time_limit,cpus,queue\n1,1000,1100,1160,60,600,4,q\n")
    with pytest.raises(InputError, match=r"walltime = 60: the column wall_time has the time that most .*time_limit is"):
        read(path)
    assert rows(read(path, columns={"walltime": "time_limit"}), "runtime", "walltime") == [[60, 600]]
    assert rows(read(path, columns={"walltime": "wall_time"}), "runtime", "walltime") == [[60, 60]]


def test_steps_of_slurm_jobs_in_a_table_are_no_jobs(write):
    ids = ["4", "4.batch", "4.0", "5_3", "5_3.extern", "6.1", "srv.7"]
    text = "".join(f"{row},{name},1000,1100,1160,600,4,q\n" for row, name in enumerate(ids))
    records = read(write(",JobID,Submit,Start,End,Timelimit,AllocCPUS,Partition\n" + text))
    assert records.table["job_id"].tolist() == ["4", "5_3", "6.1", "srv.7"]
    assert records.merged == {"job steps": 3}


@pytest.mark.parametrize("nothing", ["NULL", "Unknown", "N/A", "0000-00-00 00:00:00", "-", "None"])
def test_no_time_in_the_words_of_programs(write, nothing):
    day = "2026-02-01 00:00:"
    text = f"job_id,submit,start,end,walltime,cores,queue\na,{day}00,{nothing},{nothing},9,4,q\n"
    records = read(write(text + f"b,{day}01,{day}02,{day}05,9,4,q\n"))
    assert rows(records, "start", "end", "runtime") == [[-1, -1, -1], [1769904002, 1769904005, 3]]


def test_columns_and_units_that_are_given(write):
    text = "nr,when,took,most,width,where\n1,1000,1.5,2,4,q\n2,2000,0.5,3,4,q\n"
    columns = {
        "job_id": "nr",
        "submit": "when",
        "runtime": "took",
        "walltime": "most",
        "cores": "width",
        "queue": "where",
    }
    records = read(write(text), columns=columns, units={"runtime": "h", "walltime": "h"})
    assert rows(records) == [["1", 1000, 5400, 7200, 4, "q"], ["2", 2000, 1800, 10800, 4, "q"]]


def test_a_column_that_a_table_has_not_is_said_to_be_none(write):
    path = write("job_id,submit,runtime,cores\na,1000,60,4\n")
    with pytest.raises(
        InputError, match=r"no column walltime, queue among .*--columns walltime= where the table has none"
    ):
        read(path)
    assert rows(read(path, columns={"walltime": "", "queue": ""})) == [["a", 1000, 60, -1, 4, ""]]
    nameless = write("submit,runtime,walltime,cores,queue\n5,60,100,4,q\n", "b")
    assert read(nameless, columns={"job_id": ""}).table["job_id"].tolist() == ["2"]


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({}, r"no column walltime among .*: is walltime 'Wall Tme'\?.*--columns 'walltime=Wall Tme'"),
        ({"columns": {"walltime": "Wall Tim"}}, r"no column 'Wall Tim' among .*: is it 'Wall Tme'\?"),
        ({"columns": {"waltime": "Wall Tme"}}, r"column = 'waltime': is none of our columns, did you mean walltime\?"),
        ({"columns": {"walltime": "Wall Tme"}, "units": {"walltime": "moons"}}, r"--units = 'moons'.*Write one of"),
        ({"columns": {"preset": "helos"}}, r"--columns = 'helos': is no known kind of table, did you mean helios\?"),
        ({"columns": {"preset": "helios"}}, r"is no table of helios: no column user, vc"),
    ],
)  # fmt: skip
def test_what_is_misspelt_is_refused_with_the_nearest_name(write, how, message):
    with pytest.raises(InputError, match=message):
        read(write(CSV.replace("walltime", "Wall Tme")), **how)


@pytest.mark.parametrize(
    ("name", "unit", "seconds"),
    [("Wall Time (min)", "", 6000), ("WALLTIME_MINUTES", "", 6000), ("walltime_h", "", 360000),
     ("WallTimeSeconds", "", 100), ("TimelimitRaw", "", 6000), ("walltime", "min", 6000),
     ("walltime_min", "h", 360000)],
)  # fmt: skip
def test_units_in_names_and_given_ones(write, name, unit, seconds):
    records = read(write(CSV.replace("walltime", name)), units={"walltime": unit} if unit else {})
    assert records.table["walltime"].tolist() == [seconds, 2 * seconds]


def test_limits_below_most_run_times_are_refused_with_their_unit(write):
    text = CSV.replace("walltime", "time_limit").replace(",100,", ",2,").replace(",200,", ",3,")
    with pytest.raises(InputError, match=r"walltime = 2: the column time_limit is shorter .*--units walltime=min"):
        read(write(text))
    assert read(write(text), units={"walltime": "min"}).table["walltime"].tolist() == [120, 180]


def test_run_times_that_may_be_minutes_are_refused_with_their_units(shared, write):
    path = shared("cases/csv/15_decimal_comma.csv")
    with pytest.raises(InputError, match=r"runtime = '2440,6': .* --units runtime=min or --units runtime=s"):
        read(path)
    assert read(path, units={"runtime": "min"}).table["runtime"].iloc[0] == 146436
    assert read(path, units={"runtime": "s"}).table["runtime"].iloc[0] == 2441


@pytest.mark.parametrize(("unit", "runtimes"), [("min", (10, 60)), ("h", (0.167, 1)), ("ms", (600000, 3600000))])
def test_run_times_that_are_not_from_start_to_end_are_refused_with_their_unit(write, unit, runtimes):
    header = "job_id,submit,start,end,runtime,walltime,cores,queue\n"
    path = write(header + "a,1000,1010,1610,{},7200,4,q\nb,1000,1010,4610,{},7200,4,q\n".format(*runtimes))
    with pytest.raises(InputError, match=rf"is not from start to end, in seconds. .*--units runtime={unit}"):
        read(path)
    assert read(path, units={"runtime": unit}).table["runtime"].tolist() == [602 if unit == "h" else 600, 3600]


def test_run_times_in_fractions_of_a_day_are_refused(write):
    header = "job_id,submit,start,end,runtime,walltime,cores,queue\n"
    jobs = [f"{i},1000,1010,{1010 + 3600 * (i + 1)},{(i + 1) / 24},2d,4,q\n" for i in range(20)]
    path = write(header + "".join(jobs))
    with pytest.raises(
        InputError, match=r"'0.0416.*has fractions, and is not from start to end, .*--units runtime=d or "
    ):
        read(path)
    assert read(path, units={"runtime": "d"}).table["runtime"].tolist() == [3600 * (i + 1) for i in range(20)]


@pytest.mark.parametrize("before", ["# made in May\n# by a, b\n", "Jobs of May\n\n", "sep=,\n", "\n\n"])
def test_lines_before_the_header_are_passed_over(write, before):
    records = read(write(before + CSV))
    assert rows(records) == VALUES
    assert records.table["line"].tolist() == [before.count("\n") + 2, before.count("\n") + 3]


def test_words_for_nothing_in_texts_and_limits(write):
    words = ["NULL", "N/A", "nan", "None", r"\N"]
    text = "".join(f"{i},1000,60,{word},4,{word},{word}\n" for i, word in enumerate([*words, "inf"]))
    table = read(write(f"{HEADER},user\n{text}")).table
    assert table["walltime"].tolist() == [-1] * 6
    assert table["queue"].tolist() == table["user"].tolist() == [""] * 5 + ["inf"]


def test_times_without_an_offset_among_others_are_said(write):
    ends = ("+01:00", "Z", "", ".5+0530")
    text = "".join(f"{i},2026-02-01T08:00:00{end},60,100,4,q\n" for i, end in enumerate(ends))
    records = read(write(f"{HEADER}\n{text}"))
    assert records.table["submit"].tolist() == [1769929200, 1769932800, 1769932800, 1769913000]
    assert records.changed["submit: without an offset, where others have one: local time"] == 1


@pytest.mark.parametrize("lines", [1, 2])
def test_objects_and_lists_in_cells(write, lines):
    job = {"id": "a", "time": {"submit": 1000, "elapsed": 60, "limit": 100}, "cores": 4, "queue": ["q", "r"]}
    columns = {"submit": "time.submit", "runtime": "time.elapsed", "walltime": "time.limit"}
    path = write("\n".join([json.dumps(job)] * lines))
    with pytest.raises(InputError, match=r"no column runtime among id, time.submit.*is runtime 'time.elapsed'"):
        read(path, columns={"queue": "queue"})
    assert rows(read(path, columns=columns)) == [["a", 1000, 60, 100, 4, "q,r"]] * lines


def test_a_queue_that_is_the_time_waited_is_refused(write):
    header = "job_id,submit,start,end,walltime,cores,queue\n"
    path = write(header + "a,1000,1005,1100,200,4,5\nb,1000,1060,1100,200,4,60\n")
    with pytest.raises(InputError, match=r"queue = '5': the column queue has the seconds that jobs waited"):
        read(path)
    assert read(path, columns={"queue": ""}).table["queue"].tolist() == ["", ""]
    assert read(write(header + "a,1000,1005,1100,200,4,5\nb,1000,1060,1100,200,4,6\n")).table["queue"].tolist() == [
        "5",
        "6",
    ]


SAMPLES: dict[str, tuple[str, list[object]]] = {  # a header, a row; what is read of it
    "eagle": (
        ("job_id,user,account,name,state,partition,qos,submit_time,start_time,end_time,run_time,wallclock_req,nodes_req,"
        "processors_req,mem_req,gpus_req\n"
        "1,u2,p2,b,TIMEOUT,gpu,high,2019-01-05 10:05:00,2019-01-05 11:00:00,2019-01-05 12:00:00,3600,3600,1,18,84,2"),
        ["1", 1546682700, 3600, 3600, 18, "gpu", "timeout", "chunk:2:cores=9,gpus=1"],
    ),
    "fdata": (
        ("jid,usr,jnam,cnumr,cnumat,cnumut,nnumr,adt,qdt,elpl,sdt,edt,duration\n"
        "j1,u1,n1,48,96,48,1,2023-01-01 00:00:10+09:00,2023-01-01 00:00:12+09:00,86400,2023-01-01 00:00:31+09:00,"
        "2023-01-01 01:00:31+09:00,3600\n"),
        ["j1", 1672498810, 3600, 86400, 96, "", "", ""],
    ),
    "helios": (
        ("job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n"
        "9,ua,vc1,8,64,2,TIMEOUT,2020-06-09 19:00:00,2020-06-09 20:00:00,2020-06-10 20:00:00,86400,3600\n"),
        ["9", 1591729200, 86400, -1, 64, "vc1", "timeout", "chunk:8:cores=8,gpus=1"],
    ),
    "pm100": (
        ("job_id,user_id,group_id,qos,partition,submit_time,start_time,end_time,run_time,time_limit,num_cores_alloc,"
        "num_nodes_alloc,num_gpus_alloc,mem_alloc,job_state\n"
        "5,1,25200,1,1,2020-05-06 10:00:00+00:00,2020-05-06 10:01:00+00:00,2020-05-06 11:01:00+00:00,3600,1440,128,1,4,"
        "237.5,COMPLETED\n"),
        ["5", 1588759200, 3600, 86400, 128, "1", "completed", "chunk:4:cores=32,gpus=1,memory=60800"],
    ),
    "supercloud": (
        ("id_job,id_user,cpus_req,partition,state,timelimit,time_submit,time_start,time_end,time_suspended,tres_alloc\n"
        '7,501,4,normal,3,4320,1610000000,1610000100,1610003700,600,"1=40,2=350000,4=1,5=40,1002=2"\n'
        '8,501,4,normal,6,4294967295,1610000000,1610000100,1610003700,0,"1=40,4=1"\n'
        "9,501,4,normal,4,4294967294,1610000000,0,1610000200,0,\n"),
        ["7", 1610000000, 3000, 259200, 40, "normal", "completed", "chunk:1:cores=40,gpus=2,memory=350000"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", list(SAMPLES))
@pytest.mark.parametrize("how", ["guessed", "named"])
def test_public_traces_are_known_by_their_columns(write, name, how):
    text, expected = SAMPLES[name]
    records = read(write(text), columns={"preset": name} if how == "named" else {})
    names = (*HEADER.split(","), "state", "needs")
    assert rows(records, *names)[0] == expected
    assert records.dropped.empty


def test_a_start_is_the_submit_and_the_time_waited(write):
    """Which is no walltime, however near its name is; of two, the start itself counts."""
    header = "job,user,vc,cpu_num,submit_time,wait_time,run_time"
    with pytest.raises(InputError, match=r"no column walltime among .*run_time\. Say which it is"):
        read(write(f"{header}\n1,u,v,4,1000,50,100\n"))
    records = read(write(f"{header}\n1,u,v,4,1000,50,100\n2,u,v,4,1000,,100\n"), columns={"walltime": ""})
    assert rows(records, "queue", "start", "runtime") == [["v", 1050, 100], ["v", -1, 100]]
    assert records.changed["start: the submit and the time waited"] == 1
    both = read(write(f"{header},start_time\n1,u,v,4,1000,50,100,2000\n"), columns={"walltime": ""})
    assert rows(both, "start") == [[2000]]


@pytest.mark.parametrize(
    "text", ["---\nUsage reported in CPU Minutes\n---\n a b\n", "Cluster|Account|Login|Used\na|b|c|9\n"]
)
def test_a_report_of_use_is_refused_by_its_name(write, text):
    with pytest.raises(InputError, match=r"is a report of use by sreport, which names no jobs\. Give the jobs: sacct"):
        read(write(text))


def test_what_slurms_database_writes_for_none(write):
    records = read(write(SAMPLES["supercloud"][0]))
    assert rows(records, "walltime", "start", "state", "cores") == [
        [259200, 1610000100, "completed", 40], [-1, 1610000100, "timeout", 40], [-1, -1, "cancelled", 4],
    ]  # fmt: skip
    assert records.deleted["job_id"].tolist() == ["9"]


def test_no_public_trace_is_taken_for_another():
    for name, preset in PRESETS.items():
        columns = {*preset.columns.values(), *preset.also}
        others = [other for other, each in PRESETS.items() if {*each.columns.values(), *each.also} <= columns]
        assert others == [name]


@pytest.mark.parametrize("name", ["eagle", "fdata", "helios", "pm100", "supercloud"])
def test_the_shared_samples_of_traces(shared, name):
    records = read(shared(f"cases/csv/{name}.csv"))
    assert records.dropped.empty
    assert (records.table[["submit", "runtime", "cores"]] > 0).all(axis=None)


def test_the_command_of_a_site_reads_what_the_guess_reads(shared):
    path = shared("cases/csv/pm100.csv")
    given = read(path, columns={"walltime": "time_limit", "cores": "num_cores_alloc"}, units={"walltime": "min"})
    assert given.table.equals(read(path).table)
    assert given.table["walltime"].tolist() == [86400, 7200]


PACKED = {"bz2": bz2.compress, "xz": lzma.compress}


@pytest.mark.parametrize(
    "how", [*PACKED, "zstd", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-8-sig", "tabs", ";", "|", "cr", "crlf"]
)
def test_files_in_any_dress(write, how):
    data = CSV.encode()
    if how in PACKED:
        data = PACKED[how](data)
    elif how == "zstd":
        data = pytest.importorskip("zstandard").ZstdCompressor().compress(data)
    elif how.startswith("utf"):
        data = CSV.encode(how)
    elif how in ("cr", "crlf"):
        data = data.replace(b"\n", b"\r" if how == "cr" else b"\r\n")
    else:
        data = CSV.replace(",", {"tabs": "\t"}.get(how, how)).encode()
    assert rows(read(write(data, "jobs"))) == VALUES


def frame():
    return pd.DataFrame(VALUES, columns=HEADER.split(","))


@pytest.mark.parametrize("how", ["xlsx", "parquet", "lines", "records", "columns", "wrapped"])
def test_tables_that_are_no_lines(tmp_path, how):
    path = tmp_path / "jobs"
    if how == "xlsx":
        pytest.importorskip("openpyxl")
        frame().to_excel(path.with_suffix(".xlsx"), index=False)
        path = path.with_suffix(".xlsx")
    elif how == "parquet":
        pytest.importorskip("pyarrow")
        frame().to_parquet(path)
    elif how == "wrapped":
        path.write_text(json.dumps({"meta": 1, "jobs_of_ours": frame().to_dict("records")}))
    else:
        frame().to_json(path, orient="columns" if how == "columns" else "records", lines=how == "lines")
    assert rows(read(path)) == VALUES


def test_types_of_cells_in_a_parquet_file(tmp_path):
    pytest.importorskip("pyarrow")
    table = frame().assign(
        submit=pd.to_datetime([1000, 2000], unit="s", utc=True),
        runtime=pd.to_timedelta([60, 70], unit="s"),
        walltime=[100.0, None],
        cores=pd.array([4, 8], dtype="Int64"),
        job_id=[7.0, 8.0],
    )
    table.to_parquet(tmp_path / "jobs.parquet")
    assert rows(read(tmp_path / "jobs.parquet")) == [["7", 1000, 60, 100, 4, "small"], ["8", 2000, 70, -1, 8, "large"]]


def test_times_and_durations_of_excel(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.append(["jobs of February"])
    sheet.append(HEADER.split(","))
    for number, submit in enumerate(("2026-02-01T08:00:00", "2026-02-01T09:00:00"), start=3):
        sheet.append([number, datetime.fromisoformat(submit), time(number - 2, 0), timedelta(hours=30), 4, "small"])
        sheet.cell(number, 4).number_format = "[h]:mm:ss"
    book.save(tmp_path / "jobs.xlsx")
    records = read(tmp_path / "jobs.xlsx")
    assert rows(records) == [["3", 1769932800, 3600, 108000, 4, "small"], ["4", 1769936400, 7200, 108000, 4, "small"]]
    assert records.table["line"].tolist() == [3, 4]


@pytest.mark.parametrize(("kind", "package"), [("xlsx", "openpyxl"), ("parquet", "pyarrow"), ("zstd", "zstandard")])
def test_a_package_that_is_missing_is_named(write, monkeypatch, kind, package):
    import builtins

    known = builtins.__import__

    def missing(name, *more, **others):
        if name.split(".")[0] == package:
            raise ImportError(name)
        return known(name, *more, **others)

    head = {"xlsx": b"PK\x03\x04", "parquet": b"PAR1", "zstd": b"\x28\xb5\x2f\xfd"}[kind]
    monkeypatch.setattr(builtins, "__import__", missing)
    monkeypatch.setattr(formats, "import_module", missing)
    with pytest.raises(InputError, match=rf"needs the package {package}. Install it: pip install {package}"):
        read(write(head + b"x" * 100, "jobs"), format="csv")


@pytest.mark.parametrize(
    "data",
    [b"PK\x03\x04 not a zip", b"PAR1 not parquet PAR1", b'{"a": ', b"[1, 2", b"[]", b"{}", b'{"a": 1}\n', b"[[1]]"],
)
def test_a_damaged_table_is_one_message(write, data):
    with pytest.raises(InputError):
        read(write(data, "jobs"))


@pytest.mark.parametrize("kind", ["xlsx", "parquet"])
def test_a_workbook_or_parquet_file_with_wrong_bytes_is_one_message_or_read(tmp_path, kind):
    path = tmp_path / f"jobs.{kind}"
    frame().to_excel(path, index=False) if kind == "xlsx" else frame().to_parquet(path)
    whole = path.read_bytes()
    for place in range(40, len(whole), len(whole) // 60):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x15]) + whole[place + 1 :])
        with suppress(InputError):
            read(path)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("40 min", 2400), ("2 h", 7200), ("2 hours 30 minutes", 9000), ("1-02:03:04", 93784), ("1 day, 2:03:04", 93784),
     ("1 days 02:03:04", 93784), ("P1DT2H3M4S", 93784), ("pt1h", 3600), ("PT0.5S", 0.5), ("1,5 h", 5400),
     ("1.5 hours", 5400), ("01:00:00.5", 3600.5), ("90 mins", 5400), ("1 week", 604800), ("1:02:03:04", 93784),
     ("250 ms", 0.25)],
)  # fmt: skip
def test_durations_in_words(text, seconds):
    assert duration(text) == seconds


@pytest.mark.parametrize("text", ["24:00", "P", "PT", "h", "5 parsecs", "1:60:00", "", "1 2", "-5 min", "1d 25:00:00"])
def test_no_durations(text):
    with pytest.raises(ValueError, match=r"not a duration|\?"):
        duration(text)


def test_two_numbers_of_a_clock_need_their_unit(write):
    path = write(CSV.replace(",100,", ",24:00,").replace(",200,", ",48:30,"))
    assert set(read(write(CSV + CSV.replace(HEADER, "").replace(",100,", ",24:00,"), "b")).reasons) == {
        "walltime not a duration"
    }
    assert read(path, units={"walltime": "hh:mm"}).table["walltime"].tolist() == [86400, 174600]
    assert read(path, units={"walltime": "mm:ss"}).table["walltime"].tolist() == [1440, 2910]


@pytest.mark.parametrize(
    ("texts", "values"),
    [
        (["2440,6", "22,0", "40"], [2440.6, 22, 40]),
        (["1.234,5", "1.234", "7"], [1234.5, 1234, 7]),
        (["1,234.5", "1,234"], [1234.5, 1234]),
        (["1,234,567", "1,234"], [1234567, 1234]),
        (["1 234", "1'234", "1\u202f234,5"], [1234, 1234, 1234.5]),
        (["0,125", "1,234"], [0.125, 1.234]),
        (["Unlimited", "N/A", "NULL", ""], [-1, -1, -1, -1]),
    ],
)  # fmt: skip
def test_the_column_settles_what_a_comma_is(texts, values):
    found, bad, unclear = Numbers(duration).add(pd.Series(texts, dtype=object))
    assert found.tolist() == values
    assert not bad.any()
    assert not unclear.any()


def test_a_comma_that_reads_two_ways_is_refused(write):
    text = CSV.replace(",", ";").replace(";60;", ";1,234;").replace(";70;", ";2,345;")
    with pytest.raises(InputError, match=r"line 2: runtime = '1,234': reads two ways, 1234 and 1.234"):
        read(write(text))
    cores = CSV.replace(",", ";").replace(";4;", ";1,024;")
    assert read(write(cores)).table["cores"].tolist() == [1024, 8]


@given(st.floats(0.001, 10**6).map(lambda value: round(value, 3)), st.sampled_from([",", "."]))
@settings(max_examples=100)
def test_numbers_written_in_either_way_are_the_same(value, sign):
    texts = pd.Series([f"{value:.2f}".replace(".", sign), f"0{sign}5"], dtype=object)
    assert Numbers(duration).add(texts)[0].tolist() == [float(f"{value:.2f}"), 0.5]


def test_days_of_excel_are_refused_until_they_are_named(write):
    path = write(f"{HEADER}\na,46054.25,60,100,4,q\nb,46054.5,60,100,4,q\n")
    with pytest.raises(
        InputError, match=r"line 2: submit = '46054.25': reads two ways, Excel's day of 2026-02-01 06:00"
    ):
        read(path)
    assert read(path, units={"submit": "excel"}).table["submit"].tolist() == [1769925600, 1769947200]


DST = f"{HEADER}\n1,2026-03-29T02:30:00,100,200,1,a\n2,2026-10-25T02:30:00,100,200,1,a\n"


def test_hours_that_the_clock_skips_or_has_twice_are_said(write):
    records = read(write(DST), timezone="Europe/Berlin")
    assert records.table["submit"].tolist() == [1774747800, 1792888200]
    assert {what.split(",")[0]: count for what, count in records.changed.items()} == {
        "submit: in an hour that the clock skips: as if it had not moved": 1,
        "submit: in an hour that comes twice: the reading that agrees with the other times": 1,
    }
    assert not read(write(DST, "b")).changed


def test_of_an_hour_that_comes_twice_the_reading_that_agrees_counts(write):
    header = "job_id,submit,start,end,runtime,walltime,cores,queue"
    day = "2026-10-25T"
    text = f"{header}\n1,{day}01:00:00,{day}02:20:00,{day}02:50:00,5400,7200,1,a\n"
    text += f"2,{day}02:40:00,{day}02:10:00,{day}02:20:00,600,7200,1,a\n"
    table = read(write(text), timezone="Europe/Berlin").table
    assert (table["end"] - table["start"]).tolist() == [5400, 600]
    assert (table["start"] >= table["submit"]).all()


def test_equal_rows_and_ids_are_said_and_not_merged(write):
    records = read(write(CSV + "a,1000,60,100,4,small\na,3000,60,100,4,small\n"))
    assert len(records.table) == 4
    assert records.changed == {"the same row again: taken as another job": 1,
                               "job_id that another job has, too: taken as different jobs": 1}  # fmt: skip


def test_of_a_folder_the_files_that_cannot_be_read_are_named(write, tmp_path):
    write(CSV, "logs/1")
    write("what is this\n", "logs/2")
    write(CSV.replace("a,", "c,").replace("b,", "d,"), "logs/3")
    write(b"\x1f\x8b\x08 no gzip", "logs/4")
    records = read(tmp_path / "logs")
    assert records.table["job_id"].tolist() == ["a", "b", "c", "d"]
    assert [reason.split(": ")[0] for reason in records.reasons] == ["file left out"] * 2
    assert {int(reason.split("logs/")[1][0]) for reason in records.reasons} == {2, 4}
    assert records.read == 6
    with pytest.raises(InputError, match="not recognised"):
        read(tmp_path / "logs", strict=True)
    with pytest.raises(InputError, match="not recognised"):
        read([tmp_path / "logs/1", tmp_path / "logs/2"])


def test_a_bomb_is_one_message(write, monkeypatch):
    from qconf.history.readers import sources

    monkeypatch.setattr(sources, "UNPACKED", 1 << 16)
    path = write(CSV + "x,1,1,1,1,q\n" * 10**5, "bomb.gz")
    with pytest.raises(InputError, match=r"unpacks to more than .* MiB, .* times its size. .*--unpacked 8gb"):
        read(path)
    assert len(read(path, unpacked=1 << 30).table) == 10**5 + 2


@pytest.mark.parametrize("kind", ["xlsx", "parquet"])
def test_a_bomb_inside_a_table_is_one_message(tmp_path, monkeypatch, kind):
    from qconf.history.readers import sources

    pytest.importorskip({"xlsx": "openpyxl", "parquet": "pyarrow"}[kind])
    path, many = tmp_path / f"bomb.{kind}", pd.concat([frame()] * 500)
    many.to_excel(path, index=False) if kind == "xlsx" else many.to_parquet(path, index=False)
    for name in ("UNPACKED", "RATIO"):
        monkeypatch.setattr(sources, name, 2)
    with pytest.raises(InputError, match=r"unpacks to more than .* times its size. .*--unpacked 8gb"):
        read(path)
    assert len(read(path, unpacked=1 << 30).table) == 1000


@pytest.mark.parametrize("block", [64, 200, 1 << 20])
def test_a_file_read_in_pieces_is_the_same(write, monkeypatch, block):
    from qconf.history.readers import sources

    text = [f"{HEADER},user"]
    for i in range(300):
        odd = {3: '"a,b"', 50: '"x\ny"', 77: "1,2"}.get(i % 100, "u")
        text.append(f"{i},{i * 10 if i % 7 else f'0{i % 9 + 1}/1{i % 3 + 3}/2026'},60,1:00:00,4,q,{odd}")
    path = write("\n".join(text) + "\n")
    whole = read(path)
    monkeypatch.setattr(sources, "BLOCK", block)
    pieces = read(path)
    assert pieces.table.equals(whole.table)
    assert pieces.dropped.equals(whole.dropped)
    assert len(whole.table) == 297
    assert np.isin([78], whole.dropped["line"] - 1).all() or len(whole.dropped) == 3


SITE = """machine: {cores: 64}
queues:
  - {name: small, cores: [1, 64]}
history: {columns: {walltime: time_limit}, units: {walltime: min}, timezone: Europe/Berlin}
"""


def test_the_configuration_says_how_a_sites_logs_are_read(write):
    from click.testing import CliRunner

    from qconf.cli import qconf
    from qconf.config import dump, parse

    assert parse(dump(parse(SITE))) == parse(SITE)
    assert parse(SITE.replace("{walltime: time_limit}", "pm100")).history.columns == {"preset": "pm100"}
    header = HEADER.replace("walltime", "time_limit")
    log = write(f"{header}\na,2026-02-01T00:30:00,6000,120,4,small\n")
    config = write(SITE, "site.yaml")

    def inspected(*options):
        run = CliRunner().invoke(qconf, ["inspect", str(log), "--json", *options])
        assert run.exit_code == 0, run.output
        found = json.loads(run.output)
        return found["first_submit"], found["walltime"]["max"]

    assert inspected("--config", str(config)) == ("2026-02-01T00:30:00+01:00", 7200)
    given = ("--columns", "walltime=time_limit", "--units", "walltime=h", "--timezone", "UTC")
    assert inspected("--config", str(config), *given) == ("2026-02-01T00:30:00+00:00", 432000)
    bad = CliRunner().invoke(qconf, ["inspect", str(log), "--columns", "walltime"])
    assert "--columns = 'walltime': is no known kind of table" in str(bad.exception)
    swf = write("1 0 0 10 4 -1 -1 4 60 -1 1 1 1 -1 1 -1 -1 -1\n", "a.swf")
    assert CliRunner().invoke(qconf, ["inspect", str(swf), "--config", str(config)]).exit_code == 0
    with pytest.raises(InputError, match=r"--columns: swf is no such table. Leave it out"):
        read(swf, columns={"walltime": "x"})


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a=b,c=d e,f=", {"a": "b", "c": "d e", "f": ""}), ("a=b, c,d=e", {"a": "b, c", "d": "e"}),
     ("pm100", {"preset": "pm100"}), ("", None)],
)  # fmt: skip
def test_columns_on_the_command_line(text, expected):
    from qconf.cli.source import pairs

    assert pairs(text, "preset") == expected
