"""A configuration out of a history alone."""

import pytest

from qconf.errors import InputError
from qconf.history import clean, derive_config, read, remarks
from qconf.history.names import LEGAL, legal_names

CSV = "job_id,submit,runtime,walltime,cores,queue\n"


def test_a_queue_per_name_with_the_ranges_of_its_jobs(write):
    rows = "1,0,60,100,4,small\n2,0,60,7200,16,small\n3,0,60,50,64,large\n4,0,0,99999,2,small\n"
    config = derive_config(read(write(CSV + rows)), 64)
    assert [(q.name, q.cores, q.walltime, q.priority) for q in config.queues] == [
        ("small", (4, 16), (0, 7200), 1),
        ("large", (64, 64), (0, 50), 1),
    ]
    assert (config.machine.cores, config.mode, config.order, config.backfill) == (64, "shared", "fcfs", True)
    config.system()


def test_every_usable_job_stays_where_it_was(write):
    rows = "1,0,60,100,4,b\n2,0,60,200,4,a\n3,0,60,,4,a\n4,0,60,300,9,\n5,0,60,300,900,a\n"
    records = read(write(CSV + rows))
    history = clean(records, derive_config(records, 64))
    assert history.jobs["queue"].tolist() == ["b", "a", "a", "all"]
    assert history.reasons == {"wider than the machine": 1}


def test_a_queue_with_a_job_without_walltime_has_no_maximum(write):
    records = read(write(CSV + "1,0,60,,4,a\n2,0,60,100,4,a\n"))
    history = clean(records, derive_config(records, 64))
    assert history.jobs["walltime"].tolist() == [60, 100]


def test_without_a_size_it_refuses(write):
    with pytest.raises(InputError, match=r"the size of the machine is unknown. Give it with --cores"):
        derive_config(read(write(CSV + "1,0,60,100,4,a\n")))


def test_what_a_derived_configuration_does_not_show_is_remarked(write):
    rows = "1,0,60,100,4,[a:1]\n2,0,60,100,99,[a:1]\n3,0,60,100,99,\n4,0,60,100,99,b\n5,0,0,60,99,b\n6,0,60,100,65,b\n"
    records = read(write(CSV + rows))
    config = derive_config(records, 64)
    assert remarks(records, config) == [
        "queue name made legal: '[a:1]' is a-1",
        "jobs wider than the machine of 64 cores are left out: 1 of a-1, 1 of no queue, 2 of b",
    ]
    assert clean(records, config).reasons == {"wider than the machine": 4, "no run time": 1}
    assert remarks(read(write(CSV + "1,0,60,100,4,b\n")), config) == []


def test_names_become_legal_and_unique():
    names = ["normal", "3", "[fque:1]", "fque-1", "é", "a" * 20, "a" * 15, "x y", "x;y", "_x", ""]
    found = legal_names(names)
    assert set(found) == set(names) - {""}
    assert all(LEGAL.fullmatch(name) for name in found.values())
    assert len(set(found.values())) == len(found)
    assert found["normal"] == "normal"
    assert legal_names(names[::-1]) == found


def test_a_name_with_a_hash_from_another_period_is_still_known(write):
    both = CSV + "1,0,60,100,4,big.mem\n2,0,60,100,4,big:mem\n"
    config = derive_config(read(write(both)), 64)
    assert len(set(config.names)) == 2
    alone = clean(read(write(CSV + "3,0,60,100,4,big:mem\n", "b.csv")), config)
    assert alone.jobs["queue"].tolist() == clean(read(write(both)), config).jobs["queue"].tolist()[1:]


def test_two_logs_give_long_names_the_same_short_ones():
    one, other = "standard-compute-small", "standard-compute-large"
    assert legal_names([one, other]) == legal_names([other, one])
    assert legal_names([one])[one] == legal_names([other, one])[one]


def test_queues_of_a_trace_go_by_the_names_in_its_header(shared):
    records = read(shared("traces/SDSC-SP2-1998-4.2-cln.swf.gz"))
    assert set(derive_config(records).names) == {"express", "high", "normal", "low", "standby"}


def test_names_that_differ_in_case_only_are_said(write):
    records = read(write(CSV + "1,0,60,100,4,Small\n2,0,60,100,4,small\n3,0,60,100,4,large\n"))
    text = "queue names that differ in case only, taken as different: Small, small"
    config = derive_config(records, 8)
    assert clean(records, config).changed == {text: 2}
    assert text in remarks(records, config)
    one = config.with_queues([queue for queue in config.queues if queue.name != "Small"])
    assert clean(records, one).changed[text] == 2


@pytest.mark.parametrize(("cores", "whole"), [(48, True), (50, False)])
def test_a_log_that_counts_nodes_gives_the_machine_its_nodes(write, cores, whole):
    path = write("job_id,submit,runtime,walltime,nodes,queue\n1,0,60,100,2,q\n")
    machine = derive_config(read(path, cores_per_node=24), cores).machine
    assert (machine.cores_per_node, machine.whole_nodes) == (24, whole)


def test_jobs_that_had_gpus_are_said(write):
    rows = '1,0,60,100,4,a,chunk:1:cores=4\n2,0,60,100,4,a,"chunk:1:cores=4,gpus=2"\n'
    records = read(write(f"{CSV.strip()},needs\n{rows}"))
    (said,) = remarks(records, derive_config(records, 64))
    assert said.startswith("1 jobs had GPUs: cores alone are counted")
