"""What logs say that jobs need beside cores, and what becomes of it."""

from __future__ import annotations

import numpy as np
import pytest

from parsim import simulate
from qconf.config import MachineConfig, QueueConfig, SiteConfig
from qconf.errors import InputError
from qconf.evaluation.period import Period
from qconf.history import clean, read
from qconf.history.needs import ENDED_SLURM, needed, waits_for, words

SITE = SiteConfig.build(
    machine=MachineConfig(cores=8), queues=(QueueConfig(name="all"),), licences={"matlab": 2}, order="fcfs"
)
HEADER = "job_id,submit,runtime,walltime,cores,queue,user,needs\n"


def history(path, rows, site=SITE):
    (path / "log.csv").write_text(HEADER + rows)
    return clean(read([path / "log.csv"]), site)


@pytest.mark.parametrize(
    ("text", "jobs"),
    [
        ("afterok:46.host@host", ["46.host"]),
        ("afterok:46.host@host:47.host@host,afterany:48.host", ["46.host", "47.host", "48.host"]),
        ("after:46.host,beforeok:47.host", []),
        ("afterok:46.host,on:1", ["46.host"]),
        ("", []),
    ],
)
def test_depend_of_pbs(text, jobs):
    assert waits_for(text) == jobs


def test_dependency_of_slurm():
    assert waits_for("afterok:12(unfulfilled),aftercorr:14_*(unfulfilled)", ENDED_SLURM) == ["12", "14"]


def test_jobs_wait_for_others_and_licences(tmp_path):
    jobs = history(
        tmp_path,
        "a,0,10,20,4,all,ann,\nb,1,10,20,4,all,ann,after:a\nc,2,10,20,1,all,bob,licence:matlab:2\n"
        "d,3,10,20,1,all,bob,licence:matlab:1\n",
    )
    schedule = Period.of(jobs, SITE).simulate(SITE)
    assert schedule.start.tolist() == [0, 10, 2, 12]
    assert schedule.submit.tolist() == [0, 10, 2, 3]


def test_an_array_is_waited_for_as_a_whole(tmp_path):
    jobs = history(
        tmp_path, "7[1].s,0,5,9,1,all,u,\n7[2].s,0,50,99,1,all,u,\n8.s,1,5,9,1,all,u,after:7[].s\n9.s,1,5,9,1,all,u,\n"
    )
    assert simulate(jobs.workload(SITE), SITE.system()).start.tolist() == [0, 0, 50, 1]


def test_so_many_members_of_an_array_run_at_a_time(tmp_path):
    jobs = history(tmp_path, "".join(f"7[{k}],0,10,10,1,all,u,array:7[]:2\n" for k in range(5)))
    assert sorted(simulate(jobs.workload(SITE), SITE.system()).start.tolist()) == [0, 0, 10, 10, 20]


def test_more_licences_than_there_are(tmp_path):
    jobs = history(tmp_path, "a,0,5,9,1,all,u,licence:matlab:3\nb,0,5,9,1,all,u,licence:unknown:7\n")
    assert jobs.reasons == {"asks for more licences than there are: matlab": 1}
    assert not jobs.workload(SITE).has_needs


def test_a_job_does_not_wait_for_later_ones(tmp_path):
    jobs = history(tmp_path, "a,0,5,9,1,all,u,after:b\nb,1,5,9,1,all,u,after:a after:gone\n")
    assert jobs.workload(SITE).after.tolist() == [[1, 0]]


@pytest.mark.parametrize(
    "word", ["afterok:b", "chunk:0:cores=1", "chunk:1:cores=0", "chunk:1:cores=1 place:pack", "place:excl"]
)
def test_a_word_that_is_none(tmp_path, word):
    with pytest.raises(InputError, match=r"line 2.*needs.*is not what a job can need.*after:JOB"):
        history(tmp_path, f"a,0,5,9,1,all,u,{word}\n")


def test_pbs_accounting(tmp_path):
    run = (
        "user=u group=g queue=all ctime=100 qtime=100 etime=100 start=110 Resource_List.matlab=1 Resource_List.ncpus=2"
        " Resource_List.nodect=1 Resource_List.mem=4gb Resource_List.walltime=00:10:00"
    )
    end = f"{run} end=170 Exit_status=0 resources_used.walltime=00:01:00"
    (tmp_path / "log").write_text(
        f"11/20/2026 14:48:39;E;46.s;{end}\n"
        "11/20/2026 14:48:39;Q;47.s;queue=all ctime=100 etime=0 depend=afterok:46.s@s Resource_List.ncpus=2\n"
        "11/20/2026 14:48:39;Q;48[].s;queue=all ctime=100 array_indices=1-5%2 depend=afterany:47.s@s\n"
        f"11/20/2026 14:48:39;E;47.s;{end}\n"
        f"11/20/2026 14:48:39;E;48[3].s;{end}\n"
    )
    needs = read([tmp_path / "log"]).table.set_index("job_id")["needs"].to_dict()
    assert needs == {
        "46.s": "licence:matlab:1",
        "47.s": "after:46.s licence:matlab:1",
        "48[3].s": "after:47.s licence:matlab:1 array:48[].s:2",
    }


def test_words_read_back():
    text = words(["46", "27[]"], {"matlab": 2, "none": 0}, "27", 4)
    assert text == "after:46 after:27[] licence:matlab:2 array:27:4"


def test_no_needs_cost_nothing(tmp_path):
    jobs = history(tmp_path, "a,0,5,9,1,all,u,\n")
    after, quotas = needed(jobs.jobs, SITE.licences)
    assert after.shape == (0, 2)
    assert quotas == []


HOURS = {"queue": "all", "days": ("mon", "tue"), "begin": "08:00", "end": "18:00", "max_user_run": 1}


def test_limits_by_the_hour(tmp_path):
    monday = 1_772_409_600  # 2 March 2026, 00:00 UTC
    site = SITE.replace(hours=(HOURS,))
    rows = "".join(f"{k},{monday + 9 * 3600},100,200,1,all,{user},\n" for k, user in enumerate("uuv"))
    rows += "".join(f"{k},{monday + 19 * 3600},100,200,1,all,u,\n" for k in (3, 4))
    period = Period.of(history(tmp_path, rows, site), site)
    start = period.simulate(site).start - period.workload.submit
    assert start.tolist() == [0, 100, 0, 0, 0]
    assert period.simulate(SITE).wait.tolist() == [0, 0, 0, 0, 0]


def test_hours_over_midnight_close_a_queue(tmp_path):
    monday = 1_772_409_600
    site = SITE.replace(hours=({"queue": "all", "days": ("mon",), "begin": "22:00", "end": "06:00", "max_run": 0},))
    rows = "".join(f"{k},{monday + hour * 3600},100,200,1,all,u,\n" for k, hour in enumerate((21, 23, 29, 31)))
    period = Period.of(history(tmp_path, rows, site), site)
    begins = (period.simulate(site).start + period.epoch - monday) / 3600
    np.testing.assert_array_equal(begins, [21, 30, 30, 31])
