"""Downtimes from what batch systems keep of nodes and reservations."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from qconf.cli import qconf
from qconf.config import MachineConfig, load, parse
from qconf.errors import InputError
from qconf.history.closures import numbered, read_downtimes

MACHINE = MachineConfig(cores=96, cores_per_node=24)


def found(path, text, **more):
    (path / "records").write_text(text)
    times, odd = read_downtimes([path / "records"], MACHINE, **more)
    return [each.model_dump(exclude_defaults=True) for each in times], odd


def test_events_of_slurm(tmp_path):
    events = (
        "Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User\n"
        "hpc||2026-03-01T00:00:00|2026-03-09T00:00:00||Cluster Registered TRES|\n"
        "hpc|n1|2026-03-04T11:23:00|2026-03-04T12:00:00|DOWN*|Not responding|slurm(64030)\n"
        "hpc|n2|2026-03-04T11:23:00|2026-03-04T12:00:00|DOWN*|Not responding|slurm(64030)\n"
        "hpc|n[3-4]|2026-03-03T11:00:00|Unknown|DRAIN|disk|root(0)\n"
    )
    maint = "hpc|n1|2026-03-03T08:00:00|2026-03-03T09:00:00|MAINT|upgrade|root(0)\n"
    planned = {"begin": "2026-03-03T08:00:00+00:00", "end": "2026-03-03T09:00:00+00:00", "cores": 24}
    assert found(tmp_path, events + maint)[0][0] == planned
    down = {"begin": "2026-03-04T11:23:00+00:00", "end": "2026-03-04T12:00:00+00:00", "cores": 48}
    drained = {"begin": "2026-03-03T11:00:00+00:00", "end": "2026-03-04T12:00:00+00:00", "cores": 48}
    times, odd = found(tmp_path, events)
    assert times == [each | {"known_from": each["begin"], "known_end": False} for each in (drained, down)]
    assert odd == ["1 times: a node is down still: taken as down up to 2026-03-04 12:00"]
    log = 1772323200, 1773100800  # from 2026-03-01 to 2026-03-10
    (first, _), odd = found(tmp_path, events, period=log)
    assert first["end"] == "2026-03-10T00:00:00+00:00"
    assert odd == ["1 times: a node is down still: taken as down up to 2026-03-10 00:00"]


def test_reservations_of_slurm(tmp_path):
    shown = (
        "ReservationName=maint StartTime=2026-03-09T08:00:00 EndTime=2026-03-09T18:00:00 Duration=10:00:00\n"
        "   Nodes=n[1-4] NodeCnt=4 CoreCnt=96 Features=(null) PartitionName=(null) Flags=MAINT,SPEC_NODES\n"
        "   Users=root Accounts=(null) State=INACTIVE\n\n"
        "ReservationName=course StartTime=2026-03-10T13:00:00 EndTime=2026-03-10T15:00:00\n"
        "   NodeCnt=1 CoreCnt=24 Flags=\n   Users=ann,bob,-eve Accounts=(null) State=INACTIVE\n"
    )
    times, odd = found(tmp_path, shown, timezone="Europe/Stockholm")
    assert [(each["begin"], each["cores"], each.get("users", ())) for each in times] == [
        ("2026-03-09T08:00:00+01:00", 96, ()),
        ("2026-03-10T13:00:00+01:00", 24, ("ann", "bob")),
    ]
    assert odd == []


def test_a_node_is_out_of_service_once_at_a_time(tmp_path):
    """Where events and reservations overlap: those for all first, then what is left of one for users."""
    shown = (
        "ReservationName=course StartTime=2026-03-10T08:00:00 EndTime=2026-03-10T20:00:00\n"
        "   Nodes=n[1-2] NodeCnt=2 CoreCnt=48 Flags=SPEC_NODES Users=ann\n\n"
        "ReservationName=halves StartTime=2026-03-10T08:00:00 EndTime=2026-03-10T20:00:00\n"
        "   Nodes=n[1-2] NodeCnt=2 CoreCnt=24 Flags= Users=bob\n\n"
        "ReservationName=maint StartTime=2026-03-10T10:00:00 EndTime=2026-03-10T12:00:00\n"
        "   Nodes=n[1-3] NodeCnt=3 CoreCnt=72 Flags=MAINT,SPEC_NODES Users=root\n"
    )
    (tmp_path / "shown").write_text(shown)
    (tmp_path / "events").write_text(
        "NodeName|TimeStart|TimeEnd|State|TRES\n"
        "n3|2026-03-10T09:00:00|2026-03-10T11:00:00|DOWN|cpu=24\n"
        "n3|2026-03-10T09:30:00|2026-03-10T10:30:00|DRAIN|cpu=24\n"
    )
    times, _ = read_downtimes([tmp_path / "shown", tmp_path / "events"], MACHINE)
    assert [(each.begin[11:13], each.end[11:13], each.cores, each.users) for each in times] == [
        *(("08", "10", 48, ("ann",)), ("08", "20", 24, ("bob",)), ("09", "11", 24, ()), ("10", "12", 48, ())),
        *(("11", "12", 24, ()), ("12", "20", 48, ("ann",))),
    ]


TYPES = {"g1": (0, 64), "g2": (1, 64), "c1": (2, 64)}
COURSE = (
    "ReservationName=course StartTime=2026-03-27T09:00:00 EndTime=2026-03-27T12:00:00 Duration=03:00:00\n"
    "   Nodes=g[1-2] NodeCnt=2 CoreCnt={cores} PartitionName=gpu Flags=SPEC_NODES,{flags}\n   Users=u1 State=INACTIVE\n"
)
#: From Tuesday the 24th, 10:00, to the next Tuesday at 8:00 in Stockholm, where summer time begins on the 29th.
WEEK = (1774342800, 1774936800)


@pytest.mark.parametrize(
    ("flags", "days"),
    [
        ("", [27]),
        ("DAILY", [24, 25, 26, 27, 28, 29, 30]),
        ("WEEKDAY", [24, 25, 26, 27, 30]),
        ("WEEKEND", [28, 29]),
        ("WEEKLY", [27]),
    ],
)
def test_a_reservation_that_comes_again_does_so_all_over_the_log(tmp_path, flags, days):
    text = COURSE.format(cores=128, flags=flags)
    times, _ = found(tmp_path, text, timezone="Europe/Stockholm", nodes=TYPES, period=WEEK)
    begins = [f"2026-03-{day}T09:00:00+0{1 + (day >= 29)}:00" for day in days]
    assert [each["begin"] for each in times] == begins
    assert {(each["end"][11:16], each["nodes"], each["users"]) for each in times} == {("12:00", (0, 1), ("u1",))}


def test_a_reservation_that_comes_again_is_one_without_a_log(tmp_path):
    times, odd = found(tmp_path, COURSE.format(cores=128, flags="HOURLY"), nodes=TYPES)
    assert (len(times), len(odd)) == (1, 1)
    assert "comes again (HOURLY) and is read as one: --history" in odd[0]


def test_all_nodes_and_parts_of_nodes(tmp_path):
    times, odd = found(tmp_path, COURSE.format(cores=96, flags="FLEX"), nodes=TYPES)
    assert ([each["nodes"] for each in times], len(odd)) == ([(0,)], 1)
    text = COURSE.format(cores=192, flags="MAINT,IGNORE_JOBS").replace("g[1-2]", "ALL")
    times, odd = found(tmp_path, text, nodes=TYPES)
    assert ([(each["nodes"], "users" in each) for each in times], odd) == ([((0, 1, 2), False)], [])
    times, odd = found(tmp_path, COURSE.format(cores=128, flags="TIME_FLOAT"), nodes=TYPES)
    assert (times, len(odd)) == ([], 1)


def test_reservations_of_pbs(tmp_path):
    text = (
        "03/10/2026 13:00:00;B;R7.s;owner=ann@host name=x queue=R7 ctime=1773140000 start=1773144000 end=1773151200"
        " nodect=1 authorized_users=ann@host,bob@* Resource_List.ncpus=24\n"
    )
    times, _ = found(tmp_path, text)
    assert times == [
        {"begin": "2026-03-10T12:00:00+00:00", "end": "2026-03-10T14:00:00+00:00", "cores": 24, "users": ("ann", "bob")}
    ]


def test_a_reservation_of_pbs_as_the_server_writes_it(shared):
    times, odd = read_downtimes([shared("pbs/snapshot/accounting_after.log")], MACHINE)
    (each,) = times
    assert (each.begin, each.end) == ("2026-11-23T10:31:00+00:00", "2026-11-23T10:33:00+00:00")
    assert (each.cores, each.users, odd) == (4, ("carol",), [])


@pytest.mark.parametrize(("kind", "end"), [("k", "14:00:00"), ("K", "14:00:00"), ("F", "15:00:00")])
def test_a_reservation_of_pbs_that_was_deleted_ends_then(tmp_path, kind, end):
    records = (
        "03/10/2026 13:00:00;B;R7.s;owner=ann@host queue=R7 start=1773147600 end=1773154800"
        " Authorized_Users=ann@host,bob@host Resource_List.ncpus=24\n"
        f"03/10/2026 14:00:00;{kind};R7.s;requestor=ann@host\n"
    )
    (each,), odd = found(tmp_path, records)
    assert each["end"] == f"2026-03-10T{end}+00:00"
    assert (each["users"], odd) == (("ann", "bob"), [])


def test_nodes_of_pbs(tmp_path):
    log = (
        "03/10/2026 13:00:00;0002;Server@s;Node;n1;node down: communication closed\n"
        "03/10/2026 13:20:00;0002;Server@s;Node;n1;node up\n"
        "03/10/2026 13:30:00;0002;Server@s;Node;n2;node down: communication closed\n"
    )
    times, odd = found(tmp_path, log)
    assert [(each["begin"], each["end"], each["cores"]) for each in times] == [
        ("2026-03-10T13:00:00+00:00", "2026-03-10T13:20:00+00:00", 24)
    ]
    assert len(odd) == 1


def test_nodes_of_several_types_have_numbers_part_by_part(tmp_path):
    site = parse(
        "machine: {cores: 96}\nmode: partitioned\n"
        "nodes: [{name: c, count: 2, cores: 24, hosts: 'c[1-2]'}, {name: g, count: 2, cores: 24, hosts: 'g[1-2]'}]\n"
        "queues: [{name: a, partition: {c: 1, g: 1}}, {name: b, partition: {c: 1, g: 1}}]\n"
    )
    assert numbered(site) == {"c1": (0, 24), "g1": (1, 24), "c2": (2, 24), "g2": (3, 24)}
    text = (
        "03/10/2026 13:00:00;B;R7.s;owner=ann@host start=1773144000 end=1773151200"
        " nodes=(c2:ncpus=24)+(g2[0]:ncpus=24) Resource_List.ncpus=48\n"
        "03/10/2026 13:00:00;B;R8.s;owner=ann@host start=1773144000 end=1773151200"
        " nodes=(c2:ncpus=24)+(g1:ncpus=24) Resource_List.ncpus=48\n"
    )
    times, odd = found(tmp_path, text, nodes=numbered(site))
    assert ([each["nodes"] for each in times], len(odd)) == ([(1, 2)], 1)


def test_what_is_no_such_record(tmp_path):
    with pytest.raises(InputError, match="no record of a node that was down"):
        found(tmp_path, "hello\n")


def test_init_writes_them(tmp_path):
    (tmp_path / "log.csv").write_text("job_id,submit,runtime,walltime,cores,queue\na,0,5,9,1,all\n")
    (tmp_path / "res.txt").write_text(
        "ReservationName=r StartTime=2026-03-10T13:00:00 EndTime=2026-03-10T15:00:00 CoreCnt=4 Users=ann\n"
    )
    site = tmp_path / "site.yaml"
    arguments = ["init", "--history", tmp_path / "log.csv", "--cores", "8", "--downtimes", tmp_path / "res.txt"]
    result = CliRunner().invoke(qconf, [*map(str, arguments), "-o", str(site)])
    assert result.exit_code == 0, result.output
    (down,) = load(site).downtime
    assert (down.cores, down.users) == (4, ("ann",))
