"""Jobs that no batch system would start are refused or named by every exporter."""

import pytest

from qconf.config import parse
from qconf.export import ExportError, exporter, targets

SITE = """\
machine: {cores: 64, cores_per_node: 8}
mode: hybrid
queues:
  - {name: narrow, cores: [1, 20], partition: 24, max_run: 3}
  - {name: wide, cores: [17, 40], partition: 16}
pool: {cores: 24, entry: move}
"""
PARTED = """\
machine: {cores: 16}
mode: partitioned
queues: [{name: a, cores: [9, 16], partition: 8}, {name: b, partition: 8}]
"""
LIMITED = "{machine: {cores: 64}, queues: [{name: wide, max_run_cores: 32}]}"


@pytest.mark.parametrize("target", targets())
def test_a_queue_whose_jobs_would_all_never_start_is_refused(target):
    found = exporter(target).of(nodes="n[1-8]")
    with pytest.raises(ExportError, match=r"queue wide: .* and the pool of 24 are each narrower .* \(25\)"):
        found.export(parse(SITE.replace("[17, 40]", "[25, 40]")))
    with pytest.raises(
        ExportError, match=r"queue a: its partition of 8 cores is narrower than its narrowest job \(9\)"
    ):
        exporter(target).of(nodes="n[1-16]").export(parse(PARTED))


@pytest.mark.parametrize("target", targets())
def test_jobs_that_would_never_start_are_named(target):
    found = exporter(target).of(nodes="n[1-8]")
    note = f"Jobs of wide wider than 24 cores never start in {found.name}: neither partition nor pool holds them"
    assert note in " ".join(found.export(parse(SITE)).notes)
    note = f"Jobs of wide wider than 32 cores never start in {found.name}: the queue lets them in"
    assert note in " ".join(exporter(target)().export(parse(LIMITED)).notes)


def test_in_slurm_a_job_runs_in_one_partition_and_under_its_limits_there_alone():
    notes = " ".join(exporter("slurm")().notes(parse(SITE.replace("entry: move", "placement: combined"))))
    assert "Jobs of wide wider than 24 cores never start" in notes
    assert "Limits of narrow hold in their own partitions" in notes


@pytest.mark.parametrize(
    ("target", "access", "reason"),
    [
        ("pbs", "{accounts: [chem]}", "queue a: PBS has no list of accounts for a queue"),
        ("pbs", "{users: [ann], qos: [high]}", "queue a: PBS has no list of qos for a queue"),
        ("slurm", "{users: [ann]}", "queue a: Slurm has no list of users for a queue"),
        ("slurm", "{groups: [-staff]}", "access of groups is a list of those let in"),
        ("slurm", "{accounts: [chem, -bio]}", "access of accounts is .* not chem, -bio"),
        ("slurm", "{qos: []}", "access of qos is .* not empty"),
    ],
)
def test_access_that_a_batch_system_has_no_list_for_is_refused(target, access, reason):
    with pytest.raises(ExportError, match=reason):
        exporter(target)().export(parse(f"{{machine: {{cores: 8}}, queues: [{{name: a, access: {access}}}]}}"))
