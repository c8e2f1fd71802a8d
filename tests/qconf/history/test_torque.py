"""Accounting of Torque, and of Cray systems: cores and nodes in every form that their jobs ask for them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsim.model.node_types import Chunk
from qconf.history import clean, derive_config, read
from qconf.history.torque import requested, slots

RUN = "user=ann group=g jobname=j queue=work ctime=1000 qtime=1000 etime=1000 start=1100 owner=ann@login"


def record(kind, fields="", job="7.srv", *, stamp="11/09/2024 08:00:00", run=RUN):
    listed = fields if fields.startswith("Resource_") else " ".join(f"Resource_List.{each}" for each in fields.split())
    return f"{stamp};{kind};{job};{run} {listed}\n"


def ended(wanted, host="", job="7.srv", status=0):
    where = f" exec_host={host}" if host else ""
    return record("E", wanted, job, run=RUN + where).rstrip("\n") + f" end=1200 Exit_status={status}\n"


def only(records):
    assert len(records.table) == 1, records.dropped
    return records.table.iloc[0]


@pytest.mark.parametrize(
    ("wanted", "host", "cores", "needs"),
    [
        ("ncpus=1 neednodes=1:ppn=4:avx nodes=1:ppn=4:avx", "n1/2+n1/3+n1/4+n1/5", 4, "chunk:1:cores=4,avx"),
        ("neednodes=2:ppn=8 nodes=2:ppn=8", "+".join(f"n{n}/{i}" for n in (2, 3) for i in range(8)), 16, "2:cores=8"),
        ("mppwidth=64", "nid1/0*32+nid2/0*32", 64, ""),
        ("select=1 ncpus=1", "n1/0", 1, ""),
        ("nodes=2:sb:ppn=4", "n1/0-3+n2/0,2,4-5", 8, "chunk:2:cores=4,sb"),
        ("nodes=4 neednodes=4", "n1/0+n2/0+n3/0+n4/0", 4, ""),
        ("nodes=n1:ppn=4+n2:ppn=2", "n1/0-3+n2/0-1", 6, "chunk:1:cores=4 chunk:1:cores=2"),
        ("nodes=n1.site.org:ppn=2+n3.site.org:ppn=2", "n1.site.org/0-1+n3.site.org/0-1", 4, "chunk:2:cores=2"),
        ("nodes=avx:ppn=4", "n1/0-3", 4, "chunk:1:cores=4,avx"),
        ("nodes=2:ppn=4:gpus=2:exclusive_process", "g1/0-3+g2/0-3", 8, "chunk:2:cores=4,gpus=2"),
        ("nodes=1:ppn=2#excl", "n1/0-1", 2, "chunk:1:cores=2 place:excl"),
        ("nodes=1:ppn=2#shared", "n1/0-1", 2, "chunk:1:cores=2"),
        ("nodes=3:ppn=8+1:ppn=1", "", 25, "chunk:3:cores=8 chunk:1:cores=1"),
        # a queue gives its jobs its nodes by a default of neednodes
        ("nodes=1:ppn=2 neednodes=himem", "n9/0+n9/1", 2, "chunk:1:cores=2,himem"),
        ("nodes=1 neednodes=n9", "n9/0", 1, ""),
        ("nodes=2:ppn=2 feature=avx:ib", "n1/0-1+n2/0-1", 4, "chunk:2:cores=2,avx,ib"),
        ("procs=8 nodes=1 neednodes=1", "g1/0-3+g2/0-3", 8, ""),
        ("ncpus=8 nodes=1 neednodes=1 mem=16gb", "n1/0", 8, "chunk:1:cores=8,memory=16384"),
        ("nodes=2:ppn=4 pmem=2gb", "n1/0-3+n2/0-3", 8, "chunk:2:cores=4,memory=8192"),
        ("nodes=1:ppn=4", "n1/0-7", 8, "chunk:1:cores=8"),  # it was given more than it asked for
        ("size=1024", "login1/0", 1024, ""),
        ("mppwidth=50 mppnppn=24 mppdepth=2 mppnodect=-1", "login1/0", 100, "chunk:2:cores=48 chunk:1:cores=4"),
        ("mppwidth=8 mppnppn=2 ncpus=1 select=1 place=pack", "nid00007/24", 8, "chunk:4:cores=2"),
        ("Resource_Request_2.0=-L tasks=1:lprocs=all:memory=1GB", "p1/0-79", 80, "chunk:1:cores=80,memory=1024"),
        (
            "Resource_Request_2.0=-L tasks=2:lprocs=3 -L tasks=1:lprocs=1",
            "p1/0-6",
            7,
            "chunk:2:cores=3 chunk:1:cores=1",
        ),
        ("", "n1/0-3", 4, ""),
        ("nodes=2:ppn=0", "n1/0-3", 4, ""),  # no request; what it was given counts
    ],
)
def test_what_a_job_has(tmp_path, wanted, host, cores, needs):
    path = tmp_path / "20241109"
    path.write_text(ended(wanted, host))
    job = only(read(path))
    assert (job["cores"], job["needs"]) == (cores, needs if not needs or "chunk" in needs else f"chunk:{needs}")


def test_a_job_keeps_its_licences_alone(tmp_path):
    path = tmp_path / "20241109"
    path.write_text(ended("nodes=1 neednodes=1 procct=1 nodect=1 tpn=4 trl=8 priority=5 matlab=2", "n1/0"))
    assert only(read(path))["needs"] == "licence:matlab:2"


def test_records_without_data(tmp_path):
    """Torque says of a job that is queued its queue alone, and nothing of one that is requeued."""
    lines = [
        "11/09/2024 07:00:00;Q;7.srv;queue=work\n",
        "11/09/2024 07:00:00;Q;8.srv;queue=work\n",
        "11/09/2024 07:00:00;Q;9[].srv;queue=work\n",
        "11/09/2024 07:00:00;Q;10.srv;queue=work\n",
        record("S", "nodes=2", stamp="11/09/2024 07:30:00"),
        "11/09/2024 07:40:00;R;7.srv;\n",
        ended("nodes=2:ppn=2", job="9[3].srv", status=-11),
        record("S", "nodes=2", job="11.srv", stamp="11/09/2024 07:30:00"),
        "11/09/2024 07:40:00;R;11.srv;\n",
        "11/09/2024 07:50:00;D;10.srv;requestor=ann@login\n",
        "11/09/2024 07:50:00;C;9[3].srv;\n",
        record("S", "nodes=2", stamp="11/09/2024 08:00:00").replace("start=1100", "start=2900"),
        ended("nodes=2").replace("start=1100", "start=2900").replace("end=1200", "end=3900"),
    ]
    path = tmp_path / "20241109"
    for order in (lines, lines[::-1]):
        path.write_text("".join(order))
        records = read(path, strict=True)
        jobs = records.table.set_index("job_id")
        assert jobs[["start", "end", "state"]].to_dict("index") == {
            "7.srv#1": {"start": 1100, "end": 1700, "state": "requeued"},
            "7.srv": {"start": 2900, "end": 3900, "state": "completed"},
            "9[3].srv": {"start": 1100, "end": 1200, "state": "timeout"},
        }
        assert dict(zip(records.dropped["job_id"], records.dropped["reason"], strict=True)) == {
            "8.srv": "waiting at the end of the log",
            "9[].srv": "array parent",
            "10.srv": "deleted before start",
            "11.srv": "waiting at the end of the log",
        }
        assert records.read + sum(records.merged.values()) == len(lines)


def test_a_month_of_torque_is_simulated(tmp_path):
    path = tmp_path / "20241109"
    path.write_text("".join(ended("nodes=2:ppn=8", "n1/0-7+n2/0-7", f"{n}.srv") for n in range(1, 4)))
    records = read(path)
    history = clean(records, derive_config(records, 32))
    assert history.jobs["cores"].tolist() == [16, 16, 16]


@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(1, 16)), min_size=1, max_size=4, unique_by=lambda each: each[1])
)
def test_what_is_requested_is_what_is_given(parts):
    nodes = "+".join(f"{count}:ppn={cores}" for count, cores in parts)
    hosts = [(f"h{n}-{k}", cores) for n, (count, cores) in enumerate(parts) for k in range(count)]
    total = sum(count * cores for count, cores in parts)
    request = tuple(Chunk(count, cores) for count, cores in parts)
    one_by_one = "+".join(f"{host}/{i}" for host, cores in hosts for i in range(cores))
    for given_hosts in (one_by_one, "+".join(f"{host}/0-{cores - 1}" for host, cores in hosts), ""):
        assert requested({"nodes": nodes}, given_hosts) == (total, request, True)
        assert slots(given_hosts).total() in (total, 0)
    assert slots("+".join(f"{host}/0*{cores}" for host, cores in hosts)).total() == total


@pytest.mark.parametrize(
    ("walltime", "seconds"), [("1:10:00:00", 122400), ("30:00", 1800), ("90", 90), ("72:00:00", 259200)]
)
def test_a_walltime_has_days_or_no_hours(tmp_path, walltime, seconds):
    (tmp_path / "log").write_text(
        "11/10/2024 08:00:00;E;14.srv;user=u group=g queue=q ctime=100 qtime=100 etime=100 start=110 exec_host=- "
        f"Resource_List.size=256 Resource_List.walltime={walltime} end=170 Exit_status=0\n"
    )
    table = read([tmp_path / "log"]).table
    assert table[["cores", "walltime", "runtime"]].to_numpy().tolist() == [[256, seconds, 60]]
