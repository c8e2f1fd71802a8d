"""sacct output: the real sample against its raw rows, and every corner by itself."""

import re

import pytest

from qconf.config import load
from qconf.errors import InputError
from qconf.history import clean, derive_config, read
from qconf.history.readers.sacct_columns import COMMAND, LISTED
from qconf.history.readers.sacct_runs import DOUBLED, ELIGIBLE, RESERVED, RESIZED, RETURNED, SUSPENDED
from qconf.history.records import EARLIER

# By hand from the rows of the sample, on 2026-11-20: job, submit, start, end, cores, limit, queue, state.
# 7 was requeued: each of its two runs is a job, the second one eligible two minutes after it was put back.
# 18 is UNLIMITED; 13 asked for 1 and held 24.
# 4_3 and 4_4 were eligible once two others of their array, which runs two at once, had ended.
REAL = """
1   15:13:24 15:13:24 15:13:29 48 300   idqueue completed
2   15:13:24 15:13:30 15:13:30 24 300   idqueue failed
3   15:13:24 15:13:30 15:15:57 24 120   idqueue timeout
5   15:13:24 15:13:33 15:13:34 1  600   idqueue completed
6   15:13:24 15:13:24 15:13:25 24 86400 small   completed
7#1 15:13:24 15:13:33 15:13:54 1  600   idqueue requeued
8   15:13:24 15:13:33 15:13:54 1  600   idqueue cancelled
13  15:13:24 15:13:57 15:13:58 24 300   idqueue completed
4_1 15:13:24 15:13:33 15:13:35 1  300   idqueue completed
4_2 15:13:24 15:13:33 15:13:35 1  300   idqueue completed
4_3 15:13:36 15:13:36 15:13:38 1  300   idqueue completed
4_4 15:13:36 15:13:36 15:13:38 1  300   idqueue completed
7   15:15:55 15:15:57 15:16:17 1  600   idqueue completed
17  15:13:56 15:13:56 15:16:22 24 1800  small   node_fail
18  15:16:22 15:16:23 15:16:24 1  -1    unl     completed
"""
MIDNIGHT = 1795132800  # 2026-11-20T00:00:00Z


def second(clock):
    hours, minutes, seconds = map(int, clock.split(":"))
    return MIDNIGHT + hours * 3600 + minutes * 60 + seconds


def test_the_real_sample_says_what_its_rows_say(shared):
    records = read(shared("slurm/sacct_X.txt"))
    rows = [line.split() for line in REAL.split("\n") if line]
    table = records.table
    assert table["job_id"].tolist() == [row[0] for row in rows]
    for place, column in enumerate(("submit", "start", "end"), start=1):
        assert table[column].tolist() == [second(row[place]) for row in rows]
    assert table["runtime"].tolist() == [second(row[3]) - second(row[2]) for row in rows]
    for place, column in ((4, "cores"), (5, "walltime")):
        assert table[column].tolist() == [int(row[place]) for row in rows]
    assert table["queue"].tolist() == [row[6] for row in rows]
    assert table["state"].tolist() == [row[7] for row in rows]
    assert records.dropped["job_id"].tolist() == ["21"]  # still pending
    assert (records.read, sum(records.merged.values())) == (16, 0)
    assert records.changed == {ELIGIBLE: 3, EARLIER: 1}


def test_output_without_submit_is_refused_with_the_command_to_use(shared, write):
    with pytest.raises(
        InputError, match=r"listing of job steps, no column Submit.*SLURM_TIME_FORMAT=%s sacct -a -D -S now"
    ):
        read(shared("slurm/sacct_steps.txt"))
    with pytest.raises(InputError, match=r"line 1: no column Submit"):
        read(write("JobID|Start|End|Timelimit|AllocCPUS\n1|||01:00|4\n"))


DAY = "2026-11-20T"
NAMES = "JobIDRaw|JobID|User|Partition|State|Submit|Start|End|TimelimitRaw|Timelimit|AllocCPUS|ReqCPUS|NNodes"
CELLS = {
    "JobIDRaw": "5", "JobID": "5", "User": "ann", "Account": "chem", "Partition": "small", "State": "COMPLETED",
    "Submit": DAY + "08:00:00", "Eligible": DAY + "08:00:00", "Start": DAY + "09:00:00", "End": DAY + "10:00:00",
    "ElapsedRaw": "3600", "Suspended": "00:00:00", "TimelimitRaw": "120", "Timelimit": "02:00:00",
    "AllocCPUS": "24", "ReqCPUS": "24", "NNodes": "1", "AllocTRES": "cpu=24,gres/gpu=1,node=1",
    "ReqTRES": "cpu=24,gres/gpu=1,node=1", "QOS": "normal",
}  # fmt: skip


def row(names=(), separator="|", **cells):
    """Return the row of a job; `job` is both of its ids, and other cells are those of `CELLS`."""
    if "job" in cells:
        cells |= dict.fromkeys(("JobIDRaw", "JobID"), str(cells.pop("job")))
    return separator.join((CELLS | cells).get(name, "") for name in names or NAMES.split("|"))


def sacct(*rows, more=""):
    """Return what sacct prints: a row for each job of these cells, with `more` columns behind the usual ones."""
    names = [*NAMES.split("|"), *filter(None, more.split("|"))]
    return "\n".join(("|".join(names), *(row(names, **cells) for cells in rows), ""))


def jobs_of(write, *rows, names="job_id submit start end runtime cores", **how):
    """Return values of the jobs that are read of rows of sacct."""
    return read(write(sacct(*rows, **how))).table[names.split()].values.tolist()


PENDING = {"State": "PENDING", "Start": "Unknown", "End": "Unknown"}
GONE = {"State": "CANCELLED by 0", "Start": "Unknown"}


def test_columns_come_in_any_order(write):
    lines = [line.split("|") for line in sacct({}).split("\n") if line]
    turned = "\n".join("|".join(reversed(line)) for line in lines) + "\n"
    assert read(write(turned, "a")).table.equals(read(write(sacct({}), "b")).table)


def test_steps_are_no_jobs_but_array_tasks_are(write):
    steps = [{"job": f"5.{step}"} for step in ("batch", "extern", "0")]
    records = read(
        write(sacct({}, *steps, {"JobIDRaw": "6", "JobID": "4_3"}, PENDING | {"JobIDRaw": "12", "JobID": "12_[1,3-4]"}))
    )
    assert records.table["job_id"].tolist() == ["5", "4_3"]
    assert records.merged == {"job steps": 3}
    assert records.dropped[["job_id", "reason"]].values.tolist() == [["12_[1,3-4]", "waiting at the end of the log"]]


@pytest.mark.parametrize(
    ("raw", "text", "seconds"),
    [
        ("120", "", 7200), ("", "1-00:00:00", 86400), ("", "24:00", 1440), ("", "2-12", 216000),
        ("", "90", 5400), ("UNLIMITED", "UNLIMITED", -1), ("Partition_Limit", "Partition_Limit", -1),
        ("", "", -1), ("Partition_Limit", "01:00:00", 3600),
    ],
)  # fmt: skip
def test_time_limits(write, raw, text, seconds):
    assert jobs_of(write, {"TimelimitRaw": raw, "Timelimit": text}, names="walltime") == [[seconds]]


@pytest.mark.parametrize("nothing", ["Unknown", "None", ""])
def test_jobs_that_never_started(write, nothing):
    records = read(write(sacct({"AllocCPUS": "0", "ReqCPUS": "8"}, {"job": 6} | GONE | {"Start": nothing})))
    assert records.dropped[["job_id", "reason"]].values.tolist() == [["6", "deleted before start"]]
    assert records.table["cores"].tolist() == [8]  # those requested, where none were assigned yet


@pytest.mark.parametrize(
    ("eligible", "since"),
    [("", "08:00:00"), (DAY + "08:30:00", "08:30:00"), (DAY + "11:00:00", None), ("Unknown", None)],
)
def test_a_job_that_was_deleted_waited_from_when_it_was_eligible(write, eligible, since):
    gone = {"job": 6, "AllocCPUS": "0", "ReqCPUS": "8", "Eligible": eligible} | GONE
    waited = read(write(sacct({"Eligible": ""}, gone, more="Eligible"))).deleted
    found = waited[["job_id", "submit", "start", "end", "cores", "walltime", "user"]].values.tolist()
    assert found == ([] if since is None else [["6", second(since), -1, second("10:00:00"), 8, 7200, "ann"]])


def test_a_job_that_was_deleted_after_a_requeue_waited_from_then_on(write):
    first, again = {"State": "REQUEUED", "End": DAY + "09:30:00"}, GONE | {"Submit": DAY + "09:30:00"}
    waited = read(write(sacct(first, again))).deleted
    assert waited[["submit", "end"]].values.tolist() == [[second("09:30:00"), second("10:00:00")]]


def test_a_running_job_is_kept_and_left_out_of_the_simulation(write):
    records = read(write(sacct({}, {"job": 6, "State": "RUNNING", "End": "Unknown"})))
    assert records.table["end"].tolist()[1] == records.table["runtime"].tolist()[1] == -1
    assert clean(records, derive_config(records, 64)).reasons == {"still running at the end": 1}


def test_one_id_is_one_job_of_a_user_and_cluster(write):
    records = read([write(sacct({}), "a"), write(sacct({}, {"job": 6}), "b")])
    assert (len(records.table), sum(records.merged.values())) == (2, 1)  # the same row twice
    assert jobs_of(write, {"User": "ann"}, {"User": "bob"}, names="user") == [["ann"], ["bob"]]
    rows = [{"Cluster": cluster, "Start": f"{DAY}09:{start}:00"} for cluster, start in (("a", 10), ("b", 20))]
    records = read(write(sacct(*rows, more="Cluster")))
    assert (len(records.table), records.merged) == (2, {})


def test_the_account_is_the_group_and_the_qos_that_of_the_job(write):
    assert jobs_of(write, {}, names="group") == [[""]]
    assert jobs_of(write, {"QOS": "urgent"}, more="Account|QOS", names="group qos") == [["chem", "urgent"]]


def test_a_requeued_job_that_still_waits_is_no_job_yet(write):
    ran, *waiting = {"State": "REQUEUED"}, *(PENDING | {"Submit": DAY + clock} for clock in ("10:00:01", "09:59:00"))
    for rows in ((ran, *waiting), (*waiting, ran)):
        records = read(write(sacct(*rows, {"job": 6})))
        assert records.table["job_id"].tolist() == ["5#1", "6"]
        assert records.dropped["reason"].tolist() == ["waiting at the end of the log"]


EPOCHS = {"Submit": "1795161600", "Start": "1795165200", "End": "1795168800"}


def test_times_with_a_blank_as_slurm_time_format_may_ask_for(write):
    text = sacct({"Submit": "2026-11-20 08:00:00", "Start": "2026-11-20 08:01:00", "End": "2026-11-20 08:02:00"})
    assert read(write(text)).table[["submit", "start", "end"]].values.tolist() == [[1795161600, 1795161660, 1795161720]]


def test_epoch_seconds_and_local_time(write):
    assert jobs_of(write, EPOCHS, names="submit runtime") == [[1795161600, 3600]]
    assert read(write(sacct({})), timezone="Europe/Stockholm").table["submit"].tolist() == [1795161600 - 3600]


@pytest.mark.parametrize(
    ("night", "elapsed", "start", "runtime"),
    [
        (("2026-10-25T01:00:00", "2026-10-25T02:50:00", "2026-10-25T02:20:00"), "", 1792889400, 1800),
        (("2026-10-25T01:00:00", "2026-10-25T02:20:00", "2026-10-25T02:50:00"), "5400", 1792887600, 5400),
        (("2026-10-25T01:00:00", "2026-10-25T02:20:00", "2026-10-25T02:50:00"), "1800", None, 1800),
        (("1792889700", "2026-10-25T02:20:00", "2026-10-25T02:50:00"), "1800", 1792891200, 1800),  # 02:55, the first
    ],
)
def test_the_hour_that_comes_twice(write, night, elapsed, start, runtime):
    cells = dict(zip(("Submit", "Start", "End"), night, strict=True), ElapsedRaw=elapsed)
    table = read(write(sacct(cells, more="ElapsedRaw")), timezone="Europe/Stockholm").table
    assert table["runtime"].tolist() == [runtime]
    assert start is None or table["start"].tolist() == [start]


@pytest.mark.parametrize("elapsed", ["01:30:00", "00:30:00"])
def test_the_hour_that_comes_twice_is_reported_and_the_time_elapsed_settles_it(write, elapsed):
    night = {"Submit": "2026-10-25T01:00:00", "Start": "2026-10-25T02:20:00", "End": "2026-10-25T02:50:00"}
    records = read(write(sacct({**night, "Elapsed": elapsed}, more="Elapsed")), timezone="Europe/Stockholm")
    hours, minutes, _ = map(int, elapsed.split(":"))
    assert records.table["runtime"].tolist() == [hours * 3600 + minutes * 60]
    assert records.changed[DOUBLED] == 1


def test_a_torn_last_line_and_a_bar_in_a_name(write):
    records = read(write(sacct({"JobName": "a|b"}, more="JobName") + row(job=6)[:40]))
    assert records.table["job_id"].tolist() == ["5"]
    assert records.dropped["reason"].tolist() == ["torn last line"]


def test_the_command_lists_the_columns_that_are_read():
    assert {"Eligible", "Suspended", "AllocTRES", "Reservation", "AdminComment"} <= {*COMMAND.split(" ")[-1].split(",")}


def test_the_second_real_sample(shared):
    records = read(shared("slurm/real/two.sacct"))
    table = records.table.set_index("job_id")
    # The heterogeneous job of a part of one core and a part of two, and the job that gave back one of two cores.
    assert table.loc["10+0", ["cores", "runtime", "walltime"]].tolist() == [3, 5, 120]
    assert table.loc["35", ["cores", "runtime", "walltime"]].tolist() == [2, 20, 60]
    assert table.loc["12", "queue"] == "b"
    assert records.merged["further parts of a heterogeneous job"] == 1
    assert table.loc["12#1", ["cores", "runtime", "state"]].tolist() == [1, 2, "requeued"]
    assert records.changed == {RESIZED: 1, EARLIER: 2}


def test_a_job_that_older_slurm_begins_anew_at_each_resize_is_one(write):
    rows = [
        {"State": "RESIZING", "Submit": "100", "Start": "200", "End": "300", "AllocCPUS": "8"},
        {"State": "RESIZING", "Submit": "300", "Start": "300", "End": "350", "AllocCPUS": "6"},
        {"State": "COMPLETED", "Submit": "350", "Start": "350", "End": "500", "AllocCPUS": "4"},
    ]
    records = read(write(sacct(*rows)))
    job = records.table.iloc[0]
    assert job[["submit", "start", "end", "runtime", "cores"]].tolist() == [100, 200, 500, 300, 8]
    assert (len(records.table), records.changed) == (1, {RESIZED: 1})


def test_an_array_of_many_tasks_that_waits_is_no_step(write):
    records = read(write(sacct({}, {"JobIDRaw": "6", "JobID": "6_[1,3,...]", "State": "PENDING", "Start": "Unknown"})))
    assert records.reasons == {"waiting at the end of the log": 1}


@pytest.mark.parametrize(
    ("cores", "nodes", "memory", "tres", "found"),
    [
        ("8", "2", "4Gc", "", (8, "chunk:2:cores=4,memory=16384")),
        ("8", "2", "1.5Gn", "", (8, "chunk:2:cores=4,memory=1536")),
        ("8", "1", "512K", "", (8, "chunk:1:cores=8,memory=1")),
        ("8", "2", "2T", "cpu=8,node=2", (8, "chunk:2:cores=4,memory=1048576")),
        ("8", "2", "2T", "cpu=8,mem=1G,node=2", (8, "chunk:2:cores=4,memory=512")),
        ("8", "", "4G", "", (8, "")),  # on how many nodes is not known
        ("8", "2", "0n", "", (8, "")),
        ("1.5K", "48", "", "billing=1,cpu=1536,node=48", (1536, "")),
        ("1.5K", "48", "", "", (1500, "")),
    ],
)
def test_memory_and_rounded_cores_of_older_logs(cores, nodes, memory, tres, found, write):
    header = "JobID|State|Submit|Start|End|Timelimit|AllocCPUS|AllocNodes|ReqMem|AllocTRES"
    table = read(write(f"{header}\n7|COMPLETED|1000|2000|2600|INVALID|{cores}|{nodes}|{memory}|{tres}\n")).table
    assert (table["cores"][0], table["needs"][0], table["walltime"][0]) == (*found, -1)


def test_the_parts_of_a_heterogeneous_job_need_all_that_each_does(write):
    """Cores alone are anywhere, where another part has GPUs or memory."""
    columns = ["JobID", "User", "State", "Submit", "Start", "End", "Timelimit", "AllocCPUS", "AllocTRES"]
    run = "u|COMPLETED|1000|2000|2600|10:00"
    gpus = "billing=9,cpu=6,gres/gpu:a100=2,gres/gpu=2,node=1"
    rows = [
        f"7+0|{run}|2|cpu=2,mem=1G,node=1",
        f"7+1|{run}|6|{gpus}",
        f"8+0|{run}|6|{gpus}",
        f"8+1|{run}|2|cpu=2,node=1",
    ]
    table = read(write("\n".join(["|".join(columns), *rows, f"9|{run}|2|cpu=2,node=1"]))).table
    of_gpus = "chunk:1:cores=6,gpu:a100=2,gpus=2"
    assert table["needs"].tolist() == [f"chunk:1:cores=2,memory=1024 {of_gpus}", f"{of_gpus} chunk:2:cores=1", ""]
    assert table["cores"].tolist() == [8, 8, 2]


def test_jobs_promoted_without_a_comment_go_back_by_their_size(shared):
    records = read(shared("slurm/real/D1.sacct"))
    assert records.table["queue"].value_counts()["pool"] == 16
    table = clean(records, load(shared("slurm/real/D-hybrid.yaml"))).jobs
    assert table["queue"].tolist() == ["small" if cores <= 2 else "medium" for cores in table["cores"]]
    assert len(table) == len(records.table) == 40


def test_a_job_waits_from_when_it_is_eligible(write):
    early = "2026-11-20T07:00:00"  # a clock that was set; no job waits from before its submission
    rows = {"Eligible": DAY + "08:30:00"}, {"job": 7, "Eligible": early}, PENDING | {"job": 6, "Eligible": "Unknown"}
    records = read(write(sacct(*rows, more="Eligible")))
    assert (records.table["start"] - records.table["submit"]).tolist() == [1800, 3600]
    assert records.changed == {ELIGIBLE: 1}


def test_each_run_of_a_job_is_load(write):
    runs = [("08:00:00", "08:00:00", "09:00:00", "09:30:00", "PREEMPTED"),
            ("09:30:00", "09:32:00", "11:00:00", "12:00:00", "COMPLETED"),
            ("12:00:00", "12:00:00", "12:10:00", "13:00:00", "TIMEOUT")]  # fmt: skip
    names = ("Submit", "Eligible", "Start", "End")
    rows = [dict(zip(names, (DAY + each for each in run), strict=False), State=run[-1]) for run in runs]
    records = read(write(sacct(*rows, more="Eligible")))
    assert records.table[["job_id", "submit", "start", "end", "state"]].values.tolist() == [
        [job, *map(second, run[1:4]), run[4].lower()] for job, run in zip(("5#1", "5#2", "5"), runs, strict=True)
    ]
    assert records.changed == {ELIGIBLE: 1, EARLIER: 2}


def test_a_run_that_two_logs_have_is_one(write):
    first = write(sacct(PENDING, {"State": "RUNNING", "End": "Unknown"}), "a")
    records = read([first, write(sacct({}), "b")])
    assert records.table[["job_id", "end", "state"]].values.tolist() == [["5", second("10:00:00"), "completed"]]
    assert (sum(records.merged.values()), records.changed) == (2, {})


def test_a_requeue_that_did_not_run_is_no_load(write):
    records = read(write(sacct({"State": "REQUEUED", "Start": "Unknown"}, {"Submit": DAY + "08:30:00"})))
    assert records.table[["job_id", "submit"]].values.tolist() == [["5", second("08:30:00")]]
    assert sum(records.merged.values()) == 1


@pytest.mark.parametrize(
    ("suspended", "elapsed", "runtime"),
    [("00:10:00", "3000", 3000), ("00:00:00", "3600", 3600), ("", "3000", 3000), ("", "", 3600), ("1-00:00:00", "", 0)],
)
def test_suspended_time_is_no_run_time(write, suspended, elapsed, runtime):
    cells = {"Suspended": suspended, "ElapsedRaw": elapsed}
    records = read(write(sacct(cells, more="Suspended|ElapsedRaw")))
    assert records.table["runtime"].tolist() == [runtime]
    assert records.changed == ({SUSPENDED: 1} if runtime < 3600 else {})


def test_reservations_and_gpus_are_counted(write):
    tres = ["cpu=4,gres/gpu=2,node=1", "cpu=4,gres/gpu:a100=1", "cpu=4,gres/gpu=0", "cpu=4,gres/gpumem=1", ""]
    rows = [{"job": i, "AllocTRES": each, "Reservation": "maint" * (i == 1)} for i, each in enumerate(tres)]
    records = read(write(sacct(*rows, more="AllocTRES|Reservation")))
    assert records.changed == {RESERVED: 1}
    needs = ["chunk:1:cores=4,gpus=2", "chunk:1:cores=4,gpu:a100=1,gpus=1", "", "", ""]
    assert records.table["needs"].tolist() == needs


FEATURED = "AllocTRES|Constraints|Reservation|QOS|AdminComment"


def featured(*rows, more=FEATURED):
    """Return sacct output with features, reservation, QOS and comment of each row as they are."""
    lines = [f"{row(job=n, AllocCPUS='4')}|cpu=4,mem=1G,node=1|{cells}" for n, cells in rows]
    return "\n".join((f"{NAMES}|{more}", *lines, ""))


@pytest.mark.parametrize(
    ("cells", "needs", "queue_of"),
    [
        ("a100|v100||normal|", "a100|v100", ("", "normal")),
        ("(a100|h100)&nvme||normal|a|b", "a100|h100,nvme", ("", "normal")),
        ("a|b|c|course|high|", "a|b|c", ("course", "high")),
        ("a100||normal|x|y", "a100", ("", "normal")),
        ("[a|b]|course|normal|", "a|b", ("course", "normal")),
    ],
)
def test_a_bar_in_a_cell(write, cells, needs, queue_of):
    records = read(write(featured((1, "||normal|"), (2, "|course|high|"), (9, cells))))
    job = records.table.set_index("job_id").loc["9"]
    assert (job["needs"], job["qos"]) == (f"chunk:1:cores=4,memory=1024,{needs}", queue_of[1])
    assert records.changed.get(RESERVED, 0) == 1 + bool(queue_of[0])
    assert records.dropped.empty


def test_a_bar_in_every_row(write):
    records = read(write(featured((1, "a100|v100||normal|"), (2, "a|b|c||normal|"))))
    assert records.table["qos"].tolist() == ["normal", "normal"]
    assert [needs.rpartition(",")[2] for needs in records.table["needs"]] == ["a100|v100", "a|b|c"]


def test_what_reads_two_ways_is_refused_by_its_line(write):
    path = write(featured((1, "|course|"), (2, "a100|course||x"), more=FEATURED.replace("QOS|", "")))
    records = read(path)
    assert records.dropped[["job_id", "line", "reason"]].values.tolist() == [["2", 3, "not a sacct row"]]
    assert "can be read in several ways" in records.dropped["detail"][0]
    with pytest.raises(InputError, match=r"line 3: .*several ways"):
        read(path, strict=True)


@pytest.mark.parametrize("separator", ["\x1f", "^", ";", "\t", ",", "~", "||", ":"])
def test_other_separators(write, separator):
    cells = EPOCHS | {"Timelimit": "UNLIMITED", "TimelimitRaw": "60", "AllocTRES": "cpu=24#node=1"}
    text = sacct(cells, more="AllocTRES|QOS").replace("|", separator)
    records = read(write(text.replace("#", "," if separator != "," else "#")))
    assert records.format == "sacct"
    assert records.table[["job_id", "submit", "walltime", "cores", "qos"]].values.tolist() == [
        ["5", 1795161600, 3600, 24, "normal"]
    ]


def test_commas_in_cells_between_commas(write):
    tres, nodes = "billing=24,cpu=24,mem=8G,node=2", "n[1-2,4]"
    text = sacct({"AllocTRES": tres, "NodeList": nodes}, more="AllocTRES|NodeList|QOS").replace("|", ",")
    plain = read(write(text, "a")).table
    quoted = text.replace(tres, f'"{tres}"').replace(nodes, f'"{nodes}"')
    assert plain["needs"].tolist() == ["chunk:2:cores=12,memory=4096"]
    assert read(write(quoted, "b")).table.equals(plain)


@pytest.mark.parametrize("left", ["", "Suspended", "ReqTRES", "Suspended,ReqTRES", "AdminComment", "Account,Eligible"])
@pytest.mark.parametrize("separator", ["|", "\x1f", ";", "^", "\t"])
def test_without_a_header(write, left, separator):
    names = [name for name in LISTED.split(",") if name not in left.split(",")]
    rows = [{}, {"JobIDRaw": "6", "JobID": "4_1", "State": "CANCELLED by 0"}, PENDING | {"job": 7}]
    text = "".join(f"{row(names, separator, **cells)}\n" for cells in rows)
    found, whole = read(write(text, "a")), read(write(separator.join(names) + "\n" + text, "b"))
    assert found.table["job_id"].tolist() == ["5", "4_1"]
    assert found.table.drop(columns="line").equals(whole.table.drop(columns="line"))


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("JobID State Submit Start End Timelimit ReqCPUS NNodes QOS", r"and the cells can be read in several ways"),
        ("State JobID Submit Start End Timelimit ReqCPUS", r"do not say which columns they are. Leave out -n"),
    ],
)
def test_without_a_header_and_in_doubt(write, names, message):
    with pytest.raises(
        InputError, match=f"there is no header, and the cells .*{message.removeprefix('and the cells ')}"
    ):
        read(write(row(names.split()) + "\n"))


def ruled(widths, *rows):
    """Return what sacct prints without --parsable2: columns of one width each, cut off with a plus."""

    def line(cells):
        return " ".join(
            f"{cell if len(cell) <= width else cell[: width - 1] + '+':>{width}}"
            for cell, width in zip(cells, widths, strict=True)
        )

    head, *others = rows
    return "".join(f"{each} \n" for each in (line(head), " ".join("-" * width for width in widths), *map(line, others)))


def test_columns_of_one_width(write):
    names = ["JobID", "User", "Partition", "State", "Submit", "Start", "End", "Timelimit", "AllocCPUS", "JobName"]
    cells = [{"State": GONE["State"], "JobName": "a b c d e f g h"}, {"job": 6, "User": ""}, {"job": "6.batch"}]
    rows = [row(names, **each).split("|") for each in cells]
    records = read(write(ruled([12, 9, 10, 10, 19, 19, 19, 10, 10, 10], names, *rows)))
    assert records.table[["job_id", "user", "state", "cores", "runtime", "walltime"]].values.tolist() == [
        ["5", "ann", "cancelled", 24, 3600, 7200],
        ["6", "", "completed", 24, 3600, 7200],
    ]
    assert records.merged == {"job steps": 1}
    with pytest.raises(InputError, match=r"line 3: partition = 'sm\+': is cut off.*--parsable2"):
        read(write(ruled([12, 9, 3, 10, 19, 19, 19, 10, 10, 10], names, *rows), "b"))


PLAIN = (
    '{"meta": {"plugin": {"type": "openapi/dbv0.0.37"}}, "jobs": [{"job_id": 5, "user": "ann", "account": "chem", '
    '"partition": "gpu", "qos": "normal", "constraints": "a100|v100", "reservation": {"id": 0, "name": 0}, '
    '"association": {"account": "chem", "cluster": "x", "partition": null, "user": "ann"}, '
    '"array": {"job_id": 0, "task_id": null}, "het": {"job_id": 0, "job_offset": null}, '
    '"comment": {"administrator": null, "job": null, "system": null}, "required": {"CPUs": 8, "memory": 4096}, '
    '"state": {"current": "COMPLETED", "reason": "None"}, "time": {"elapsed": 3540, "eligible": 1757000000, '
    '"submission": 1757000000, "start": 1757000100, "end": 1757003700, "suspended": 60, "limit": 120}, '
    '"tres": {"allocated": [{"type": "cpu", "name": null, "id": 1, "count": 8}, {"type": "mem", "name": null, '
    '"id": 2, "count": 4096}, {"type": "node", "name": null, "id": 4, "count": 2}, '
    '{"type": "gres", "name": "gpu", "id": 1001, "count": 2}], "requested": []}}]}'
)


def newer(text):
    """Return a document as newer versions write it."""
    for name in ("start", "limit"):
        text = re.sub(rf'"{name}": (\d+)', rf'"{name}": {{"set": true, "infinite": false, "number": \1}}', text)
    text = text.replace('"task_id": null', '"task_id": {"set": false, "infinite": false, "number": 0}')
    return text.replace('"current": "COMPLETED"', '"current": ["COMPLETED"]').replace("v0.0.37", "v0.0.42")


@pytest.mark.parametrize("form", [str, newer, lambda text: text[text.index("[") : -1]])
def test_json_of_several_versions(write, form):
    records = read(write(form(PLAIN)))
    (job,) = records.table.to_dict("records")
    assert [job[name] for name in ("job_id", "submit", "start", "runtime", "walltime", "cores", "state")] == [
        *("5", 1757000000, 1757000100, 3540, 7200, 8, "completed")
    ]
    assert [job[name] for name in ("queue", "user", "group", "qos")] == ["gpu", "ann", "chem", "normal"]
    assert job["needs"] == "chunk:2:cores=4,gpus=1,memory=2048,a100|v100"


def test_arrays_limits_and_parts_in_json(write):
    array = PLAIN.replace('"job_id": 0, "task_id": null', '"job_id": 4, "task_id": {"set": true, "number": 0}')
    endless = array.replace('"limit": 120', '"limit": {"set": false, "infinite": true, "number": 0}')
    assert read(write(endless, "a")).table[["job_id", "walltime"]].values.tolist() == [["4_0", -1]]
    part = PLAIN.replace('"job_id": 0, "job_offset": null', '"job_id": 4, "job_offset": {"set": true, "number": 1}')
    assert read(write(part, "b")).table["job_id"].tolist() == ["4+1"]
    times = '"start": 1757000100, "end": 1757003700'
    waiting = PLAIN.replace('"COMPLETED"', '["PENDING"]').replace(times, '"start": 0')
    assert read(write(waiting, "c")).dropped["reason"].tolist() == ["waiting at the end of the log"]


def test_json_without_a_job(write):
    assert read(write('{"meta": {}, "errors": [], "jobs": [\n ]}')).read == 0


def test_json_that_is_none(write):
    with pytest.raises(InputError, match=r"line 1: is no whole JSON document"):
        read(write(PLAIN[:-20]))
    with pytest.raises(InputError, match=r"jobs = .*not as sacct --json has them"):
        read(write(PLAIN.replace('"tres": {', '"tres": [], "other": {').replace('"time": {', '"time": 7, "t": {')))


@pytest.mark.parametrize(
    ("columns", "cells", "needs"),
    [
        ("NNodes|AllocTRES|ReqTRES", "1||cpu=24,mem=8G,node=1,gres/gpu=2", "chunk:1:cores=24,gpus=2,memory=8192"),
        ("NNodes|AllocTRES|ReqTRES", "1|cpu=24,node=1|cpu=24,mem=8G,node=1", ""),
        ("NNodes|AllocGRES", "2|gpu:a100:4", "chunk:2:cores=12,gpu:a100=2,gpus=2"),
        ("NNodes|ReqGRES|AllocGRES", "1|gpu:2|0", "chunk:1:cores=24,gpus=2"),
        ("NNodes|ReqGRES", "1|gpu:1,fpga:2", "chunk:1:cores=24,fpga=2,gpus=1"),
        ("NNodes|AllocTRES|AllocGRES", "1|cpu=24,mem=1G,node=1|gpu:0", "chunk:1:cores=24,memory=1024"),
        ("NNodes|AllocTRES", "1|cpu=24,node=1,gres/gpu=1,gres/gpu:1g.5gb=1", "chunk:1:cores=24,gpu:1g.5gb=1,gpus=1"),
        ("NNodes|AllocTRES", "1|cpu=24,node=1,gres/shard=3", "chunk:1:cores=24,shard=3"),
    ],
)
def test_generic_resources_of_any_version(write, columns, cells, needs):
    given = dict(zip(columns.split("|"), cells.split("|"), strict=True))
    names = dict.fromkeys([*NAMES.removesuffix("|NNodes").split("|"), *given])
    assert read(write(f"{'|'.join(names)}\n{row(names, **given)}\n")).table["needs"].tolist() == [needs]


def test_features_of_some_nodes(write):
    rows = [(n, f"{features}||normal|") for n, features in ((1, "[a*2&v*1]"), (2, "[a*1]"), (3, "a&&b"), (4, "a&b"))]
    text = featured(*rows).replace("4|24|1|cpu=4,mem=1G,node=1|[a*2", "6|24|3|cpu=6,mem=3G,node=3|[a*2")
    records = read(write(text))
    assert [needs.split(" ") for needs in records.table["needs"]] == [
        ["chunk:2:cores=2,memory=1024,a", "chunk:1:cores=2,memory=1024,v"],
        ["chunk:1:cores=4,memory=1024,a"],
        ["chunk:1:cores=4,memory=1024"],
        ["chunk:1:cores=4,memory=1024,a,b"],
    ]
    why = "cannot be read, or are of more nodes than the job had: left out"
    assert records.changed == {f"features a&&b {why}": 1}


def test_few_features_that_cannot_be_read_are_named(write):
    records = read(write(featured(*((n, f"f{n}&&||normal|") for n in range(20)))))
    assert len(records.changed) == 11
    assert sum(records.changed.values()) == 20


@pytest.mark.parametrize(
    ("short", "state"), [("CD", "completed"), ("CA", "cancelled"), ("TO", "timeout"), ("NF", "node_fail")]
)
def test_short_states(write, short, state):
    assert jobs_of(write, {"State": short}, names="state") == [[state]]


def test_a_promoted_job_goes_back_to_its_queue(write):
    rows = {"Partition": "pool", "AdminComment": "qconf-promote:small72"}, {"job": 6, "AdminComment": "a|b"}
    records = read(write(sacct(*rows, more="AdminComment")))
    assert records.table["queue"].tolist() == ["small72", "small"]
    assert records.changed == {RETURNED: 1}


def test_parts_that_did_not_start_together_are_jobs_of_their_own(write):
    parts = [{"JobIDRaw": f"{5 + i}", "JobID": f"5+{i}", "Start": f"{DAY}09:0{i // 2}:00"} for i in range(3)]
    assert jobs_of(write, *parts, names="job_id cores") == [["5+0", 48], ["5+2", 24]]
