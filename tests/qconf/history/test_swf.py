"""The Standard Workload Format: its header, its dirt, and the slow way that bad lines take."""

import pytest

from parsim.model.node_types import Chunk
from qconf.config import parse
from qconf.errors import InputError
from qconf.history import clean, read
from qconf.history.readers.swf import read_header

HEADER = """; Version: 2.2
; UnixStartTime: 1000000000
; TimeZoneString: Europe/Stockholm
; MaxNodes: 16
; MaxProcs: 64
; Queue: 3 normal
"""


def line(
    job=1, submit=0, wait=5, runtime=60, allocated=4, requested=4, walltime=100, status=1, user=7, queue=3, part=-1
):
    head = (job, submit, wait, runtime, allocated, -1, -1, requested, walltime, -1)
    return " ".join(map(str, (*head, status, user, 1, -1, queue, part, -1, -1))) + "\n"


@pytest.mark.parametrize("mark", [";", "#"])
def test_header_and_fields(write, mark):
    records = read(write(HEADER.replace(";", mark) + line()))
    assert records.dropped.empty
    assert (records.machine_cores, records.epoch, records.timezone) == (64, 10**9, "Europe/Stockholm")
    assert records.table.iloc[0].to_dict() == {
        "job_id": "1", "submit": 0, "runtime": 60, "walltime": 100, "cores": 4, "queue": "normal",
        "user": "7", "start": 5, "end": 65, "state": "completed", "group": "1", "needs": "",
            "qos": "", "account": "", "file": 0, "line": 7,
    }  # fmt: skip


def with_memory(used, requested, **more):
    fields = line(**more).split()
    fields[6], fields[9] = str(used), str(requested)
    return " ".join(fields) + "\n"


MEMORIES = [
    (-1, 2048, "chunk:4:cores=1,memory=2"),
    (9000, 2049, "chunk:4:cores=1,memory=3"),
    (1500.5, -1, "chunk:4:cores=1,memory=2"),
    (100, 0, "chunk:4:cores=1,memory=1"),
    (-1, -1, ""),
    (0, 0, ""),
    (-1, 2**41, ""),
    (-1, "much", ""),
]


@pytest.mark.parametrize("torn", [False, True])
def test_memory_is_that_requested_else_that_used_of_each_processor(write, torn):
    text = "".join(with_memory(*each[:2], job=i) for i, each in enumerate(MEMORIES[: 8 if torn else 7], start=1))
    records = read(write(HEADER + text))
    assert records.table["needs"].tolist() == [needs for *_, needs in MEMORIES[: len(records.table)]]
    assert list(records.of_memory.values()) == [2]
    assert records.changed == {}
    assert records.dropped.empty


def test_memory_counts_where_nodes_have_some(write):
    rows = with_memory(-1, 3 * 2**20) + with_memory(2**20, -1, job=2) + line(3) + with_memory(1, 2**24, job=4)
    path = write(HEADER + rows)
    site = "machine: {cores: 64}\nnodes: [{name: fat, count: 2, cores: 32, memory: 16gb}]\nqueues: [{name: normal}]\n"
    past = clean(read(path), parse(site))
    assert past.jobs["job_id"].tolist() == ["1", "2", "3"]
    assert past.reasons == {"fits no nodes of its queue": 1}  # each of its processors takes a node's memory
    assert past.changed == {
        "memory: none requested (field 10), what was used counts (field 7)": 1,
        "tells of no nodes: asks for cores alone, on any that its queue may use": 1,
    }
    workload = past.workload(parse(site))
    assert workload.requests == ((Chunk(4, 1, {"memory": 3072}),), (Chunk(4, 1, {"memory": 1024}),))
    without = clean(read(path), parse(site.replace(", memory: 16gb", "")))
    assert len(without) == 4
    assert not any("memory" in text for text in without.changed)


def test_a_cancelled_job_without_a_run_waited_until_it_was_deleted(write):
    lines = [line(), line(2, 10, 50, -1, -1, status=5), line(3, 20, 30, 60, status=5), line(4, 30, -1, -1, status=5)]
    records = read(write(HEADER + "".join(lines)))
    assert records.table[["start", "end"]].values.tolist() == [[5, 65], [-1, 60], [50, 110], [-1, -1]]
    assert records.deleted[["job_id", "submit", "end", "cores"]].values.tolist() == [["2", 10, 60, 4]]


def test_the_machine_is_maxprocs_else_maxnodes():
    assert read_header(b"; MaxNodes: 16\n").cores == 16
    assert read_header(b"; MaxProcs: -1\n; MaxNodes: unknown\n").cores is None


def test_allocated_processors_else_requested_and_seconds_without_fractions(write):
    job = read(write(HEADER + line(allocated=-1, requested=8, runtime="59.6", submit="3.2"))).table
    assert job[["submit", "runtime", "cores"]].values.tolist() == [[3, 60, 8]]


def test_minus_one_is_unknown_anywhere(write):
    log = HEADER + line(
        submit=-1, wait=-1, runtime=-1, allocated=-1, requested=-1, walltime=-1, status=-1, user=-1, queue=-1
    )
    job = read(write(log)).table.iloc[0]
    assert job[["submit", "runtime", "walltime", "cores", "start", "end"]].tolist() == [-1] * 6
    assert job[["queue", "user", "state"]].tolist() == [""] * 3


def test_indented_lines_blank_lines_and_comments_between(write):
    log = HEADER + "\n   " + line(1) + ";\n\t " + line(2) + "  ; a remark with words\n" + line(3) + "   \n"
    records = read(write(log))
    assert records.table["line"].tolist() == [8, 10, 12]
    assert records.read == 3


def test_the_slow_way_reads_the_same(write):
    log = HEADER + "".join(line(i, submit=i * 10) for i in range(50))
    fast = read(write(log))
    slow = read(write(log + "1 2 3\n", "slow.swf"))
    assert slow.table.equals(fast.table)
    assert slow.dropped["reason"].tolist() == ["not a job record"]
    assert slow.read == fast.read + 1


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ("1 2 3 4", "not a job record"),
        (line().strip() + " 19", "not a job record"),
        (line().replace("60", "sixty").strip(), "not a job record"),
        (line().replace("60", "nan").strip(), "not a job record"),
        (line(runtime=2**31).strip(), "absurd value"),
        (line(submit=10**17).strip(), "absurd value"),
        (line(submit=10**30).strip(), "not a job record"),
    ],
)
def test_dirt_is_dropped_and_counted(write, bad, reason):
    records = read(write(HEADER + line() + bad + "\n" + line(2)))
    assert records.dropped[["line", "reason"]].values.tolist() == [[8, reason]]
    assert records.read == 3


@pytest.mark.parametrize(
    ("rows", "jobs", "dropped"),
    [
        (line() + line(2)[:20], ["1"], ["torn last line"]),
        # Another line sums up partial executions.
        (line() + line(status=2) + line(status=4) + line(2, status=3), ["1", "2"], ["partial execution"] * 2),
    ],
)
def test_lines_that_are_no_jobs_of_their_own(write, rows, jobs, dropped):
    records = read(write(HEADER + rows))
    assert records.table["job_id"].tolist() == jobs
    assert records.dropped["reason"].tolist() == dropped


def test_files_are_moved_to_the_earliest_start(write):
    later = HEADER.replace("1000000000", "1000086400").replace("MaxProcs: 64", "MaxProcs: 32")
    records = read([write(HEADER + line(), "a"), write(later + line(2), "b.gz")])
    assert records.table["submit"].tolist() == [0, 86400]
    turned = read([write(later + line(2), "c"), write(HEADER + line(), "d")])
    assert (turned.table["submit"].tolist(), turned.epoch) == ([86400, 0], records.epoch)
    assert records.table["file"].tolist() == [0, 1]
    assert records.machine_cores == 64


def test_a_job_of_an_earlier_file_is_the_same_job_and_one_of_the_same_file_is_not(write):
    later = HEADER.replace("1000000000", "1000086400") + line(2, submit=0) + line(3, submit=9)
    records = read([write(HEADER + line() + line() + line(2, submit=86400), "a"), write(later, "b")])
    assert records.table[["job_id", "submit"]].values.tolist() == [["1", 0], ["1", 0], ["2", 86400], ["3", 86409]]
    assert records.dropped[["job_id", "line", "reason"]].values.tolist() == [["2", 7, "in an earlier file too"]]
    assert records.changed == {"the same row again: taken as another job": 1}


def test_a_file_that_does_not_say_when_it_begins_is_not_put_among_others_that_do(write):
    begun, other = write(HEADER + line(), "a"), write(line(2), "b")
    with pytest.raises(InputError, match=r"b: has no UnixStartTime, but .*a has.*; UnixStartTime: 1000000000"):
        read([begun, other])


@pytest.mark.parametrize("content", [HEADER, HEADER + "1 2\n", HEADER + f"{line().strip()} 19\n", "; nothing\n\n"])
def test_no_job_at_all(write, content):
    with pytest.raises(InputError, match="no line is a job"):
        read(write(content), format="swf")


def test_cut_off_and_damaged_gzip(write):
    path = write(HEADER + "".join(line(i, submit=i * i) for i in range(3000)), "log.swf.gz")
    data = bytearray(path.read_bytes())
    path.write_bytes(data[:-50])
    with pytest.raises(InputError, match=r"log.swf.gz: the gzip stream is cut off. Copy the file again"):
        read(path)
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(bytes(data))
    with pytest.raises(InputError, match="the gzip stream is"):
        read(path)


PARTITIONS = "; Partition: 1 batch\n; Partition: 2 gpu\n; Partition: 3 tiny\n"


def partitions(*parts, queues=(-1,)):
    return "".join(line(job=i, queue=queues[i % len(queues)], part=part) for i, part in enumerate(parts))


@pytest.mark.parametrize("queues", [(-1,), (3,), (3, -1)])
def test_partitions_are_the_queues_where_none_are_named(write, queues):
    parts = [1] * 80 + [2] * 18 + [3] + [-1]
    records = read(write(HEADER + PARTITIONS + partitions(*parts, queues=queues)))
    assert records.table["queue"].tolist() == ["batch"] * 80 + ["gpu"] * 18 + ["tiny", ""]
    assert records.changed == {"queue: the partition (field 16), as field 15 names none": 100}


@pytest.mark.parametrize(
    ("header", "parts", "queues"),
    [(PARTITIONS, [1] * 100 + [2], (3,)),  # less than one in a hundred
     (PARTITIONS, [1, 2] * 9, (3, 4)),
     ("", [1, 2] * 9, (3,)),
     ("; Partition: 1 batch\n", [1, 2] * 9, (3,))],
)  # fmt: skip
def test_partitions_are_no_queues_otherwise(write, header, parts, queues):
    records = read(write(HEADER + header + partitions(*parts, queues=queues)))
    assert set(records.queue_names) == {"normal", "4"} - ({"4"} if len(queues) == 1 else set())
    assert records.changed == {}


def test_partitions_of_several_files_are_counted_together(write):
    logs = [write(HEADER + PARTITIONS + partitions(part, part), f"{part}.swf") for part in (1, 2)]
    assert read(logs).table["queue"].tolist() == ["batch"] * 2 + ["gpu"] * 2
    assert read(logs[0]).queue_names == []


def test_strict_stops_at_a_line_that_is_no_job(write):
    path = write(HEADER + line() + "rubbish\n" + line(job=2, runtime=2**40))
    assert read(path).reasons == {"not a job record": 1, "absurd value": 1}
    with pytest.raises(InputError, match="line 8: not a job record: 1 fields instead of 18"):
        read(path, strict=True)
