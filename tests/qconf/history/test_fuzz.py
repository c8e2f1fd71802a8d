"""Ten thousand mutated lines per parser: records that add up, or an InputError, never anything else."""

import json
import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qconf.errors import InputError
from qconf.history import clean, derive_config, read
from qconf.history.inspect import overview
from qconf.history.readers import READERS

REQUEST = "Resource_List.ncpus=24 Resource_List.walltime=02:00:00"
RUN = "user=ann queue=small_p ctime={c} start={b} " + REQUEST
PBS = [
    "{s};Q;{j}.srv;user=ann queue=route ctime={c} qtime={c} etime=0 " + REQUEST,
    "{s};S;{j}.srv;" + RUN + " Resource_List.place=excl resource_assigned.ncpus=48 ",
    '{s};E;{j}.srv;account="proj 7" ' + RUN + " end={e} Exit_status=0 run_count=1",
    "{s};R;{j}[3].srv;" + RUN + " end={e} Exit_status=-11",
    "{s};D;{j}.srv;requestor=root@srv",
]
DAY = "2026-11-20T"
SACCT = [
    f"{{j}}|{{j}}|ann|small|COMPLETED|{DAY}08:00:00|{DAY}09:00:00|{DAY}10:00:00|120|02:00:00|24|24|1",
    f"{{j}}.batch|{{j}}.batch|||COMPLETED|{DAY}08:00:00|{DAY}09:00:00|{DAY}10:00:00|||24|24|1",
    "{j}|7_{j}|bob|unl|CANCELLED by 0|{c}|Unknown|None|UNLIMITED|Partition_Limit|0|24|1",
]
CSV = ["{j},{c},60,2h30m,4,small,ann,{b},{e},completed", '"{j}",2016-02-01T08:00:00,1-00:00:00,,4,"a,b",,,,']
HEADERS = {
    "swf": "; MaxProcs: 64\n; UnixStartTime: 1000\n",
    "csv": "job_id,submit,runtime,walltime,cores,queue,user,start,end,state\n",
    "pbs": "",
    "sacct": "JobIDRaw|JobID|User|Partition|State|Submit|Start|End|TimelimitRaw|Timelimit|NCPUS|ReqCPUS|N\n",
}
ROWS = {"swf": ["{j} {c} 5 60 4 -1 -1 4 100 -1 1 7 1 -1 3 -1 -1 -1"], "csv": CSV, "pbs": PBS, "sacct": SACCT}
NASTY = [
    *(
        "",
        " ",
        "\t",
        "-",
        "-1",
        "0",
        "9" * 25,
        "1e308",
        "nan",
        "inf",
        "NULL",
        "--",
        "1970-01-01",
        "9999-12-31T23:59:59",
    ),
    *('"', "'", ";", "|", ",", "=", "[", "]", ":", "\\", "\x00", "\r", "\ufeff", "é", "\u0661", "²", "\U0001f600"),
]


def lines(kind, dice, count):
    templates = ROWS[kind]
    for i in range(count):
        c = 1795000000 + i
        yield dice.choice(templates).format(s="11/20/2026 14:44:30", j=i // 3, c=c, b=c + 5, e=c + 65)


def mutate(line, dice):
    for _ in range(dice.choice((0, 1, 1, 2, 5))):
        at, to = sorted((dice.randrange(len(line) + 1), dice.randrange(len(line) + 1)))
        line = dice.choice(
            (
                lambda a=at, text=line: text[:a] + dice.choice(NASTY) + text[a:],
                lambda a=at, b=to, text=line: text[:a] + text[b:],
                lambda a=at, text=line: text[:a] + chr(dice.randrange(1, 0x250)) + text[a + 1 :],
                lambda a=at, b=to, text=line: text[:b] + text[a:],
                lambda a=at, b=to, text=line: text[:a] + dice.choice(NASTY) + text[b:],
            )
        )()
    return line


def check(kind, path, **how):
    """Read; whatever comes out adds up, and cleans or is refused."""
    try:
        records = read(path, format=kind, **how)
    except InputError:
        return None
    assert records.read == len(records.table) + len(records.dropped)
    assert (records.dropped["reason"] != "").all()
    try:
        config = derive_config(records, 100)
        history = clean(records, config)
    except InputError:
        return records
    assert history.read == records.read == len(history.jobs) + len(history.dropped)
    history.workload(config)
    json.dumps(overview(history, config), allow_nan=False)
    assert history.periods("month")
    return records


@pytest.mark.parametrize("kind", ["swf", "pbs", "sacct"])
def test_ten_thousand_mutated_lines_of_a_log(kind, write):
    dice = random.Random(f"logs of {kind}")
    header = HEADERS[kind]
    whole = header + "\n".join(mutate(line, dice) for line in lines(kind, dice, 10_000)) + "\n"
    records = check(kind, write(whole, "log"))
    assert len(records.table) > 500
    # Every line, or record behind one that was cut off, is a row, a dropped record, or was merged into another.
    ends = rb"\n|(?<=[^\n])(?=\d\d/\d\d/\d{4} \d\d:\d\d:\d\d;[A-Za-z]{1,2};[^;\s]*;)" if kind == "pbs" else rb"\n"
    parts = [re.split(b"^#|;", part)[0] if kind == "swf" else part for part in re.split(ends, whole.encode())]
    filled = sum(bool(part.strip() if kind == "swf" else part.decode().strip()) for part in parts)
    assert records.read + sum(records.merged.values()) == filled - (kind == "sacct")


@pytest.mark.parametrize("count", [20, pytest.param(1000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", list(ROWS))
def test_mutated_files_are_read_or_refused(kind, count, write):
    dice = random.Random(f"files of {kind}")
    header = HEADERS[kind]
    for i in range(count):
        text = header + "\n".join(mutate(line, dice) for line in lines(kind, dice, 3)) + dice.choice(("", "\n"))
        check(kind, write(mutate(text, dice) if i % 3 else text, f"{i}"))
        check("auto", write(text, f"{i}"))


def readable(path):
    try:
        return bool(read(path, format="csv", strict=True))
    except InputError:
        return False


@pytest.mark.parametrize("count", [60, pytest.param(10_000, marks=pytest.mark.slow)])
def test_mutated_rows_of_a_csv(write, count):
    dice = random.Random("rows of csv")
    good = HEADERS["csv"] + "\n".join(lines("csv", dice, 3)) + "\n"
    rows = [mutate(line, dice) for line in lines("csv", dice, count)]
    refused = sum(not readable(write(good + row + "\n")) for row in rows)
    assert count / 10 < refused < count
    plain = [row for row in rows if not set('"\0\r\n') & set(row)]  # a stray quote, a zero byte are of the whole file
    whole = good + "\n".join([*plain, *lines("csv", dice, count)]) + "\n"
    records = check("csv", write(whole))
    assert count / 10 < len(records.dropped) <= refused
    assert set(records.dropped["line"]) <= set(range(5, 5 + len(plain)))


@settings(max_examples=25)
@given(st.sampled_from(list(ROWS)), st.binary(max_size=200), st.booleans())
def test_arbitrary_bytes(tmp_path_factory, kind, data, headed):
    path = tmp_path_factory.mktemp("bytes") / "log"
    path.write_bytes((HEADERS[kind].encode() if headed else b"") + data)
    check(kind, path)
    check("auto", path)


@settings(max_examples=25)
@given(st.sampled_from(list(ROWS)), st.lists(st.text(max_size=60), max_size=5), st.randoms(use_true_random=False))
def test_arbitrary_text_among_good_lines(tmp_path_factory, kind, texts, dice):
    path = tmp_path_factory.mktemp("text") / "log"
    rows = [*lines(kind, dice, 3), *texts]
    dice.shuffle(rows)
    path.write_bytes((HEADERS[kind] + "\n".join(rows)).encode("utf-8", "surrogatepass"))
    check(kind, path)


def test_every_reader_is_fuzzed():
    assert set(READERS) == set(ROWS)
