"""Cleaning, rule by rule, on small histories; and what is true of every cleaned history."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qconf.config import SiteConfig
from qconf.errors import InputError
from qconf.history import Records, binding_limits, clean, derive_config, read
from qconf.history.records import SourceInfo, drop_table, job_table


def site(cores=100, queues=None, **machine):
    queues = queues or [
        {"name": "small", "cores": [1, 10], "walltime": [0, 3600]},
        {"name": "large", "cores": [1, cores]},
    ]
    return SiteConfig.model_validate({"machine": {"cores": cores, **machine}, "queues": queues})


def records(*jobs):
    usual = {"runtime": 60, "walltime": 100, "cores": 4, "file": 0}
    rows = [{"job_id": str(i), "submit": i, "line": i + 1} | usual | job for i, job in enumerate(jobs)]
    names = {name for row in rows for name in row}
    defaults = {"queue": "", "user": "", "state": ""}
    table = job_table({n: [row.get(n, defaults.get(n, -1)) for row in rows] for n in names}, len(rows))
    return Records(table=table, dropped=drop_table([]), sources=[SourceInfo("log", "0")])


def one(job, config=None):
    history = clean(records(job, {"job_id": "other"}), config or site())
    rows = history.jobs[history.jobs["job_id"] == "0"]
    return history, rows.iloc[0] if len(rows) else None


@pytest.mark.parametrize(
    ("job", "reason"),
    [
        ({"submit": -1}, "no submit time"),
        ({"cores": 0}, "no cores"),
        ({"cores": -1}, "no cores"),
        ({"runtime": 0}, "no run time"),
        ({"runtime": -1}, "no run time"),
        ({"runtime": -1, "state": "running"}, "still running at the end"),
        ({"cores": 101}, "wider than the machine"),
        ({"cores": 50, "walltime": 10, "queue": "small"}, None),
    ],
)
def test_what_is_dropped(job, reason):
    history, row = one(job)
    assert (row is None) == (reason is not None)
    assert history.reasons == ({reason: 1} if reason else {})
    assert history.read == 2


def test_jobs_that_were_deleted_are_cleaned_as_the_others_are():
    deleted = {"runtime": -1, "start": -1, "state": "CANCELLED"}
    jobs = [
        {"job_id": "runs", "submit": 50},
        {"job_id": "late", "submit": 30, "end": 90, "walltime": -1, "cores": 3} | deleted,
        {"job_id": "wide", "submit": 10, "end": 90, "cores": 101} | deleted,
        {"job_id": "early", "submit": 20, "end": 20, "walltime": 7200} | deleted,
        {"job_id": "unknown", "submit": 20} | deleted,
        {"job_id": "failed", "submit": 20, "end": 90} | deleted | {"state": "failed"},
        {"job_id": "other", "submit": 99},
    ]
    history = clean(records(*jobs), site(cores_per_node=2, whole_nodes=True))
    columns = ["job_id", "submit", "end", "runtime", "walltime", "cores", "queue"]
    assert history.deleted[columns].values.tolist() == [
        ["late", 30, 90, 3600, 3600, 4, "small"],
        ["early", 20, 20, 7200, 7200, 4, "large"],
    ]
    assert history.reasons == {"no run time": 5}
    every, which = history.with_deleted()
    assert every.jobs["job_id"].tolist() == ["early", "late", "runs", "other"]
    assert which.tolist() == [True, True, False, False]
    assert history.between(25, 60).deleted["job_id"].tolist() == ["late"]
    joined = history.between(None, 60).joined(replace(history, epoch=history.epoch + 1000))
    assert joined.deleted["submit"].tolist() == [30, 20, 1030, 1020]


@pytest.mark.parametrize(("kind", "written"), [("csv", "empty"), ("swf", "-1")])
def test_an_unknown_value_is_written_as_the_log_has_it(kind, written):
    gone = [{"submit": -1}, {"cores": -1}, {"runtime": -1}, {"runtime": 0}, {"cores": 99, "walltime": -1}]
    narrow = site(queues=[{"name": "small", "cores": [1, 10], "walltime": [0, 3600]}])
    found = clean(replace(records({}, *gone), format=kind), narrow).dropped["detail"].tolist()
    assert found == [
        *(f"{field} {written}" for field in ("submit", "cores", "runtime")),
        "runtime 0",
        f"cores 99, walltime {written}",
    ]


def test_a_job_outside_every_range_fits_no_queue():
    narrow = site(queues=[{"name": "small", "cores": [1, 10], "walltime": [0, 3600]}])
    assert one({"cores": 11}, narrow)[0].dropped["detail"].tolist() == ["cores 11, walltime 100"]
    assert one({"walltime": 3601}, narrow)[0].reasons == {"fits no queue": 1}


def test_a_job_that_a_shortpool_never_leaves_time_is_dropped():
    kept = site().replace(shortpools=({"cores": 10, "walltime": 100},))
    assert one({"cores": 91, "walltime": 100}, kept)[1] is not None
    assert one({"cores": 90, "walltime": 101}, kept)[1] is not None
    history, _ = one({"cores": 91, "walltime": 101}, kept)
    assert history.reasons == {"finds no time between those of a shortpool": 1}
    assert binding_limits(history) == ["shortpools"]


def test_a_job_above_the_limit_of_its_queue_is_dropped_even_if_another_admits_it():
    limited = site(queues=[{"name": "a", "max_run_cores": 8}, {"name": "b"}])
    assert one({"cores": 9}, limited)[0].reasons == {"above the running-cores limit of queue a": 1}
    per_user = site(queues=[{"name": "a", "max_user_cores": 8}])
    reason = "above the running-cores limit per user of queue a"
    assert one({"cores": 9, "user": "ann"}, per_user)[0].reasons == {reason: 1}
    assert one({"cores": 9}, per_user)[1] is not None  # jobs without a user are exempt


def test_limits_that_exclude_jobs_bind_in_the_periods_of_those_jobs():
    limits = {"max_run_cores": 8, "max_user_cores": 9}
    limited = site(queues=[{"name": "a", "cores": [1, 100], **limits}, {"name": "b", "cores": [1, 100], **limits}])
    excluding = one({"cores": 9}, limited)[0]
    assert binding_limits(excluding) == ["queues.a.max_run_cores"]
    assert binding_limits(one({"cores": 8}, limited)[0]) == []
    later = replace(excluding, excluded={"queues.a.max_run_cores": (excluding.span[1] + 1,)})
    assert binding_limits(later.between(None, later.span[1] + 1)) == []


@pytest.mark.parametrize(
    ("job", "queue", "change"),
    [
        ({"queue": "large"}, "large", None),
        ({"queue": ""}, "small", "routed: named no queue"),
        ({"queue": "gone"}, "small", "routed: named a queue that the configuration lacks"),
        ({"queue": "small", "cores": 11}, "large", "routed: outside the limits of the queue it named"),
        ({"queue": "small", "walltime": 3600}, "small", None),
        ({"queue": "small", "walltime": 3601}, "large", "routed: outside the limits of the queue it named"),
    ],
)
def test_routing(job, queue, change):
    history, row = one({**job})
    assert row["queue"] == queue
    assert change is None or history.changed[change] >= 1


def test_a_walltime_on_the_boundary_goes_to_the_queue_that_ends_there():
    day = 86400
    queues = [{"name": "long", "walltime": [day, 3 * day]}, {"name": "short", "walltime": [0, day]}]
    assert [one({"walltime": w}, site(queues=queues))[1]["queue"] for w in (day, day + 1)] == ["short", "long"]


def test_a_missing_walltime_becomes_the_queues_maximum_else_the_run_time():
    history, row = one({"walltime": -1})
    assert (row["walltime"], history.changed["walltime missing: the queue's maximum"]) == (3600, 1)
    history, row = one({"walltime": 0, "queue": "large", "runtime": 9000})
    assert (row["walltime"], history.changed["walltime missing: the run time"]) == (9000, 1)


def test_a_job_without_walltime_is_routed_by_cores_alone_and_then_killed_at_the_maximum():
    history, row = one({"walltime": -1, "runtime": 9000})
    assert (row["queue"], row["runtime"], row["walltime"]) == ("small", 3600, 3600)
    assert history.changed["run time above the walltime: killed at the limit"] == 1


def test_whole_nodes_come_after_routing():
    nodes = {"cores": 96, "cores_per_node": 8, "whole_nodes": True}
    history, row = one({"cores": 9}, site(**nodes))
    assert (row["cores"], row["queue"]) == (16, "small")
    assert history.changed["cores rounded up to whole nodes"] == 2
    assert one({"cores": 97}, site(**nodes))[0].reasons == {"wider than the machine": 1}
    assert one({"cores": 9}, site(cores_per_node=8))[1]["cores"] == 9
    limited = [{"name": "a", "max_run_cores": 9}]
    assert one({"cores": 9}, site(queues=limited, **nodes))[0].reasons == {
        "above the running-cores limit of queue a": 1
    }


def test_jobs_are_ordered_by_submit_then_position():
    history = clean(records({"submit": 5}, {"submit": 3}, {"submit": 5}, {"submit": 3}), site())
    assert history.jobs["row"].tolist() == [1, 3, 0, 2]
    assert history.changed["put in the order of submission"] == 4


def test_no_usable_job():
    with pytest.raises(InputError, match=r"no usable job among 2 records: 2 no run time"):
        clean(records({"runtime": 0}, {"runtime": 0}), site())


def test_no_usable_job_names_the_first_that_was_dropped(write):
    path = write("JobID,Submit,Start,End,Timelimit,AllocCPUS,ReqTRES,AllocTRES\n1,0,9,99,5,4,cpu=4,mem=2G,cpu=4,x=2\n")
    with pytest.raises(
        InputError, match=r", line 2: no usable job among 1 records: 1 not a sacct row; the first: 10 c"
    ):
        derive_config(read(path))


def test_queue_names_that_no_batch_system_takes_are_known_by_their_legal_form():
    queues = [{"name": "other"}, {"name": "fque-1"}]
    history, row = one({"queue": "[fque:1]"}, site(queues=queues))
    assert row["queue"] == "fque-1"
    assert history.changed["queue name made legal: '[fque:1]' is fque-1"] == 1
    lost = one({"queue": "[fque:1]"}, site())[0].changed
    assert not any("legal" in what for what in lost)  # neither name is one of the configuration
    named = [{"name": "очередь"}]
    assert not any("legal" in what for what in one({"queue": "очередь"}, site(queues=named))[0].changed)


def test_submits_a_lifetime_apart_are_refused():
    with pytest.raises(InputError, match=r"log, line 2: submit = 9000000000: more than 2147483647 seconds away"):
        clean(records({}, {"submit": 9 * 10**9}, {}), site())


jobs = st.fixed_dictionaries(
    {
        "submit": st.integers(-1, 50), "runtime": st.integers(-1, 8000), "walltime": st.integers(-1, 8000),
        "cores": st.integers(-1, 130), "queue": st.sampled_from(["", "small", "large", "gone"]),
    }
)  # fmt: skip


@settings(max_examples=25)
@given(st.lists(jobs, max_size=20), st.booleans())
def test_every_history(drawn, whole):
    nodes = {"cores_per_node": 8, "whole_nodes": whole}
    config = site(cores=96, **nodes)
    history = clean(records({}, *drawn), config)
    assert history.read == len(history.jobs) + len(history.dropped) == len(drawn) + 1
    assert history.workload(config).submit.tolist() == sorted(history.jobs["submit"])
    assert (history.jobs["runtime"] <= history.jobs["walltime"]).all()
    assert history.jobs["cores"].between(1, 96).all()


@settings(max_examples=15)
@given(st.lists(jobs, min_size=2, max_size=15), st.randoms(use_true_random=False))
def test_the_order_of_lines_with_different_submits_does_not_matter(drawn, dice):
    rows = [{**job, "submit": i, "job_id": f"j{i}"} for i, job in enumerate([{"runtime": 60}, *drawn])]
    mixed = rows.copy()
    dice.shuffle(mixed)
    first, second = (clean(records(*order), site()).workload(site()) for order in (rows, mixed))
    for column in ("submit", "cores", "runtime", "walltime", "queue"):
        assert np.array_equal(getattr(first, column), getattr(second, column))
