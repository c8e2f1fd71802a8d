"""PBS accounting logs: the real sample against a table from its raw records, and every corner by itself."""

import random

import pandas as pd
import pytest

from qconf.errors import InputError
from qconf.history import clean, derive_config, read
from qconf.history.readers import pbs_plain
from qconf.history.records import EARLIER
from tests.benchmarks import large_logs as logs

# By hand from the E records of the sample: job, ctime, start, end, cores, walltime, queue, state.
# Times count from 1795185000. 38 was requeued: each of its two runs is a job, the second one from the end of the first.
# 58 ended in small_p, the pool's side of small.
REAL = """
29    912  912  918   48 5     idqueue completed
30    912  913  918   48 5     idqueue completed
31    912  913  918   48 5     idqueue completed
32[1] 913  913  918   24 5     idqueue completed
32[2] 913  913  918   24 5     idqueue completed
32[3] 913  913  918   24 5     idqueue completed
34    913  913  1035  24 120   idqueue completed
35    913  913  1035  24 120   idqueue completed
36    991  992  1014  24 20    small   completed
37    1063 1063 1068  48 60    idqueue failed
38#1  1063 1063 1084  24 300   idqueue requeued
39    1063 1063 1085  24 300   idqueue cancelled
40    1063 1063 1074  24 4     idqueue timeout
41    1063 1063 1121  24 300   idqueue cancelled
42[1] 1063 1063 1066  24 300   idqueue completed
42[3] 1063 1063 1066  24 300   idqueue completed
42[5] 1063 1063 1066  24 300   idqueue completed
42[7] 1063 1063 1067  24 300   idqueue completed
42[9] 1063 1063 1067  24 300   idqueue completed
43[0] 1063 1063 1085  24 300   idqueue cancelled
43[1] 1063 1063 1085  24 300   idqueue cancelled
45    1063 1063 1066  72 300   idqueue completed
38    1084 1085 1121  24 300   idqueue cancelled
49    1125 1125 1130 1200 3600  medium cancelled
53    1207 1207 1227 1032 36000 small  cancelled
54    1207 1207 1228 1032 36000 small  cancelled
55    1207 1207 1228  480 36000 small  cancelled
56    1232 1232 1263 1032 36000 small  cancelled
57    1232 1232 1263 1032 36000 small  cancelled
58    1232 1238 1264  480 36000 small  cancelled
59    1271 1313 1340   72 36000 small  cancelled
61    1271 1271 1332 1200 36000 medium completed
"""
ZERO = 1795185000
ARRAYS = ["27[].pbshost", "32[].pbshost", "42[].pbshost", "43[].pbshost"]
WAITING = [f"{n}.pbshost" for n in (2, 7, 14, 15, 18, 28, 50)]


def test_the_real_sample_has_the_values_of_its_records(shared):
    records = read(shared("pbs/accounting_real.log"))
    table = records.table
    rows = [line.split() for line in REAL.split("\n") if line]
    done = table[table["state"] != "running"]
    assert done["job_id"].tolist() == ["{}.pbshost{}{}".format(*row[0].partition("#")) for row in rows]
    for column, place in (("submit", 1), ("start", 2), ("end", 3)):
        assert done[column].tolist() == [ZERO + int(row[place]) for row in rows]
    assert done["runtime"].tolist() == [int(row[3]) - int(row[2]) for row in rows]
    assert done["cores"].tolist() == [int(row[4]) for row in rows]
    assert done["walltime"].tolist() == [int(row[5]) for row in rows]
    assert done["queue"].tolist() == [row[6] for row in rows]
    assert done["state"].tolist() == [row[7] for row in rows]
    assert set(table["user"]) == {"postgres"}


def test_the_real_sample_leaves_nothing_uncounted(shared):
    records = read(shared("pbs/accounting_real.log"))
    running = records.table[records.table["state"] == "running"].iloc[0]
    assert (running["job_id"], running["cores"], running["end"], running["runtime"]) == ("62.pbshost", 48, -1, -1)
    dropped = records.dropped.groupby("reason")["job_id"].agg(list).to_dict()
    assert dropped["array parent"] == ARRAYS
    assert sorted(dropped["waiting at the end of the log"]) == sorted(WAITING)
    assert len(dropped["deleted before start"]) == 25
    assert records.read == 69  # distinct ids in the log, and the first run of 38
    assert sum(records.merged.values()) + records.read == 210


def test_files_in_any_order_give_the_same_table(shared, write):
    lines = shared("pbs/accounting_real.log").read_text().splitlines(keepends=True)
    expected = read(shared("pbs/accounting_real.log")).table.drop(columns=["file", "line"])
    for seed in range(3):
        mixed = lines.copy()
        random.Random(seed).shuffle(mixed)
        days = [write("".join(mixed[i::3]), f"{seed}/2026112{i}{'.gz' * (i % 2)}") for i in range(3)]
        assert read(days).table.drop(columns=["file", "line"]).equals(expected)
        assert read(days[0].parent).table.drop(columns=["file", "line"]).equals(expected)


def test_the_invented_sample(shared):
    records = read(shared("pbs/accounting_invented.log"))
    assert records.table[["job_id", "state"]].values.tolist() == [["501.pbshost#1", "requeued"]]
    assert dict(zip(records.dropped["job_id"], records.dropped["reason"], strict=True)) == {
        "501.pbshost": "waiting at the end of the log",  # R and no second S
        "502.pbshost": "deleted before start",
        "503[].pbshost": "array parent",
    }


def record(kind, job="7.srv", *, stamp="11/01/2026 02:10:00", **fields):
    values = {"user": "ann", "queue": "small", "ctime": 1000, "Resource_List.ncpus": 24}
    values |= {key.replace("__", "."): value for key, value in fields.items()}
    return f"{stamp};{kind};{job};" + " ".join(f"{k}={v}" for k, v in values.items() if v is not None) + "\n"


def only(records):
    assert len(records.table) == 1, records.dropped
    return records.table.iloc[0]


@pytest.mark.parametrize(
    ("fields", "qos", "account"),
    [
        ({}, "", ""),
        ({"account": '"chem"', "project": "_pbs_project_default"}, "", "chem"),
        ({"project": "atlas"}, "", "atlas"),
        ({"account": "chem", "project": "atlas", "Resource_List__qos": "gold"}, "gold", "chem"),
    ],
)
def test_the_qos_and_the_account(write, fields, qos, account):
    more = {"Resource_List__qos_priority": 100, **fields}
    job = only(read(write(record("E", start=1100, end=1200, **more))))
    assert (job["qos"], job["account"], job["needs"]) == (qos, account, "")


@pytest.mark.parametrize(("kind", "seconds"), [("D", 90), ("A", 90), ("M", 90), (None, None)])
def test_a_job_that_never_ran_waited_until_it_was_gone(write, kind, seconds):
    needs = {"Resource_List__walltime": "01:00:00", "Resource_List__matlab": 2, "depend": "afterok:8.srv"}
    log = record("Q", queue="route", **needs) + record("Q", stamp="11/01/2026 02:10:01", queue="large", **needs)
    log += f"11/01/2026 02:11:30;{kind};7.srv;requestor=ann@srv\n" if kind else ""
    log += record("S", "9.srv", start=1100) + record("E", "9.srv", start=1100, end=1200)
    waited = read(write(log)).deleted
    if seconds is None:
        assert waited.empty
        return
    columns = ["job_id", "submit", "start", "end", "cores", "walltime", "queue", "user", "state", "needs"]
    job = ["7.srv", 1000, -1, 1000 + seconds, 24, 3600, "large", "ann", "cancelled", "after:8.srv licence:matlab:2"]
    assert waited[columns].values.tolist() == [job]


def test_the_real_jobs_that_were_deleted_waited_until_then(shared):
    records = read(shared("pbs/accounting_real.log"))
    waited = records.deleted
    assert set(waited["job_id"]) == set(records.dropped[records.dropped["reason"] == "deleted before start"]["job_id"])
    (job,) = waited[waited["job_id"] == "26.pbshost"].to_dict("records")  # queued 14:44:45, deleted 14:45:11
    assert (job["end"] - job["submit"], job["cores"], job["start"]) == (26, 48, -1)


def test_each_run_of_a_job_is_load(write):
    lines = [record("S", start=1100), record("R", start=1100, end=1200, Exit_status=-11)]
    lines += [record("S", start=1300), record("R", start=1300, end=1350), record("S", start=1400)]
    lines += [record("E", start=1400, end=1450, Exit_status=0)]
    for number, order in enumerate((lines, lines[::-1], lines[::2] + lines[1::2])):
        records = read(write("".join(order), f"{number}.log"))
        table = records.table
        assert table[["job_id", "submit", "start", "runtime", "state"]].values.tolist() == [
            ["7.srv#1", 1000, 1100, 100, "requeued"],
            ["7.srv#2", 1200, 1300, 50, "requeued"],
            ["7.srv", 1350, 1400, 50, "completed"],
        ]
        assert (table["cores"].unique().tolist(), records.changed) == ([24], {EARLIER: 2})
        assert records.read + sum(records.merged.values()) == len(lines)


def test_a_job_that_waits_after_a_requeue_has_run(write):
    records = read(write(record("S", start=1100) + record("R", start=1100, end=1200)))
    assert records.table[["job_id", "runtime"]].values.tolist() == [["7.srv#1", 100]]
    assert records.dropped[["job_id", "reason"]].values.tolist() == [["7.srv", "waiting at the end of the log"]]


def test_the_group_is_that_of_the_last_run(write):
    assert (
        only(read(write(record("S", start=1100, group="math") + record("E", start=1100, end=1200))))["group"] == "math"
    )
    log = record("R", start=1100, end=1200, group="math") + record("E", start=1300, end=1450, group="chem")
    assert read(write(log)).table["group"].tolist() == ["math", "chem"]


def test_the_last_of_several_queues_counts_without_its_pool_ending(write):
    log = record("Q", queue="route") + record("Q", queue="small") + record("S", start=1100, queue="small_p")
    assert only(read(write(log)))["queue"] == "small"


def test_quoted_values_are_values(write):
    log = record("E", start=1100, end=1200, account='"proj queue=evil start=1 7"', jobname="O'Brien", Exit_status=0)
    job = only(read(write(log)))
    assert (job["queue"], job["start"], job["user"]) == ("small", 1100, "ann")


def test_an_exclusive_job_holds_what_was_assigned_to_it(write):
    wide = {"Resource_List__place": "scatter:excl", "resource_assigned__ncpus": 48}
    log = record("S", start=1100, **wide) + record("E", start=1100, end=1200, Resource_List__place="scatter:excl")
    assert only(read(write(log)))["cores"] == 48
    shared_node = record("S", start=1100, Resource_List__place="free", resource_assigned__ncpus=48)
    assert only(read(write(shared_node)))["cores"] == 24


def test_a_missing_walltime_is_unknown(write):
    log = record("E", start=1100, end=1200) + record(
        "E", "8.srv", start=1100, end=1200, Resource_List__walltime="30:00:00"
    )
    assert read(write(log)).table["walltime"].tolist() == [-1, 108000]


def test_times_are_the_epoch_fields_whatever_the_clock_on_the_wall(write):
    autumn = record("S", start=1793500200, stamp="10/25/2026 02:50:00")
    autumn += record("E", start=1793500200, end=1793502000, stamp="10/25/2026 02:20:00")  # clocks went back
    assert only(read(write(autumn)))["runtime"] == 1800


def test_months_are_those_of_the_zone_and_times_stay_what_they_are(write):
    new_year = 1451606400  # 2016-01-01T00:00:00Z
    log = "".join(
        record("E", f"{i}.srv", ctime=t, start=t, end=t + 9) for i, t in enumerate((new_year - 3600, new_year))
    )
    for timezone, january in (("UTC", ["1.srv"]), ("Europe/Stockholm", ["0.srv", "1.srv"])):
        records = read(write(log), timezone=timezone)
        assert records.table["submit"].tolist() == [new_year - 3600, new_year]
        history = clean(records, derive_config(records, 64))
        assert history.month("2016-01").jobs["job_id"].tolist() == january
    with pytest.raises(InputError, match="unknown time zone"):
        read(write(log), timezone="Mars/X")


def test_a_number_that_a_rebuilt_server_uses_again_is_another_job(write):
    log = record("E", start=1100, end=1200) + record("E", ctime=9000, start=9100, end=9900)
    assert read(write(log)).table["submit"].tolist() == [1000, 9000]


def test_a_torn_last_line_is_no_early_end(write):
    log = record("S", start=1100) + record("E", start=1100, end=12345678)
    cut = log[: log.rindex("end=") + 6]
    records = read(write(cut))
    assert only(records)["state"] == "running"
    assert records.dropped["reason"].tolist() == ["torn last line"]


@pytest.mark.parametrize("cut", [5, 21, 40, -60, -1])
@pytest.mark.parametrize("kind", ["Q", "S"])
def test_a_record_behind_one_that_was_cut_off_counts(write, kind, cut):
    other = record(kind, "6.srv", start=1000 if kind == "S" else None, ctime=500).rstrip("\n")
    end = record("E", start=1100, end=1200, Exit_status=0)
    records = read(write(record("E", "6.srv", ctime=500, start=1000, end=5000) + other[:cut] + end))
    assert records.table[["job_id", "submit", "start", "end"]].values.tolist() == [
        ["6.srv", 500, 1000, 5000],
        ["7.srv", 1000, 1100, 1200],
    ]
    assert set(records.reasons) <= {"torn line"}


def test_a_record_behind_the_zero_bytes_of_a_crash_counts(write):
    records = read(write(b"\0" * 512 + record("E", start=1100, end=1200).encode()))
    assert only(records)["end"] == 1200
    assert records.reasons == {"torn line": 1}


def test_a_whole_last_line_without_its_line_end_counts(write):
    job = only(read(write(record("E", start=1100, end=1200, Exit_status=0, run_count=1).rstrip("\n"))))
    assert job["end"] == 1200


def test_records_about_other_things_are_counted_too(write):
    log = "11/01/2026 00:00:01;L;license;floating license hour:3\n" + record("E", start=1100, end=1200) + "\nrubbish\n"
    records = read(write(log))
    assert (records.read, len(records.table), sum(records.merged.values())) == (2, 1, 1)
    assert records.dropped["line"].tolist() == [4]


def test_a_job_that_cannot_be_is_dropped_with_its_reason(write):
    log = record("E", start=1100, end=900) + record("E", "8.srv", start=1100, end=10**14)
    assert read(write(log)).dropped["reason"].tolist() == ["ends before it starts", "absurd value"]


def test_a_log_of_nothing_but_licences_is_refused(write):
    with pytest.raises(InputError, match="no record of a job's run"):
        read(write("11/01/2026 00:00:01;L;license;floating license hour:3\n"))


@pytest.mark.parametrize("kind", ["D", "A"])
def test_a_run_without_an_end_that_was_deleted_has_ended(write, kind):
    log = record("Q") + record("S", stamp="11/01/2026 02:10:00", start=1100)
    log += record(kind, stamp="11/01/2026 03:10:07", user=None)
    job = only(read(write(log)))
    assert (job["start"], job["end"], job["runtime"], job["state"]) == (1100, 4707, 3607, "cancelled")


def test_a_run_without_an_end_that_started_after_its_deletion_still_runs(write):
    log = record("S", stamp="11/01/2026 02:10:00", start=1100) + record("D", stamp="11/01/2026 01:10:07", user=None)
    assert only(read(write(log)))["state"] == "running"


@pytest.mark.parametrize(
    ("used", "suspended", "runtime"),
    [("00:10:00", True, 600), ("00:59:57", True, 3597), ("00:59:57", False, 3600), ("00:10:00", False, 600)],
)
def test_time_suspended_is_no_run_time(write, used, suspended, runtime):
    log = record("S", start=1100) + (record("z") + record("r") if suspended else "")
    log += record("E", start=1100, end=4700, Exit_status=0, resources_used__walltime=used)
    records = read(write(log))
    job = only(records)
    assert (job["start"], job["end"], job["runtime"]) == (1100, 4700, runtime)
    assert dict(records.changed) == ({"time suspended: not run time": 1} if runtime < 3600 else {})


@pytest.mark.parametrize("seed", range(12))
def test_jobs_that_ran_once_are_read_as_single_records_are(write, monkeypatch, seed):
    dice = random.Random(seed)
    lines = list(logs.pbs(60))
    for _ in range(seed):  # some jobs are no longer plain
        at = dice.randrange(len(lines))
        stamp, _, name, rest = lines[at].split(";", 3)
        number = name.partition(".")[0]
        lines[at] = dice.choice([
            f"{stamp};D;{name};requestor=root@srv",
            f"{stamp};E;{number}[1].srv;{rest}",
            lines[at].replace("project=_pbs_project_default", 'account="physics"'),
            lines[at].replace("Resource_List.select=1:", "Resource_List.place=excl Resource_List.select=2:"),
            lines[at].replace("ctime=", "ctime=1"),
            lines[at].replace("resources_used.walltime=", "resources_used.walltime=1:"),
            lines[at][:-20],
            lines[dice.randrange(len(lines))],
            "",
        ])  # fmt: skip
    if seed % 3 == 0:
        dice.shuffle(lines)
    half = len(lines) // 2
    files = [
        write("".join(line + "\n" for line in part), f"log{part is lines}{len(part)}") for part in (lines, lines[:half])
    ]
    for given in (files[0], files[::-1]):
        fast = read(given)
        with monkeypatch.context() as patch:
            patch.setattr(pbs_plain, "_wanted", lambda _: pbs_plain._Wanted(-1, False, -1, "", "", can_be_read=False))
            slow = read(given)
        pd.testing.assert_frame_equal(fast.table, slow.table)
        pd.testing.assert_frame_equal(fast.dropped, slow.dropped)
        pd.testing.assert_frame_equal(fast.gone, slow.gone)
        assert (fast.changed, fast.merged) == (slow.changed, slow.merged)
