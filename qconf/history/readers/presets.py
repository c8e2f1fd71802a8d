"""Column mappings of public traces and of common database dumps; data, not code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Preset:
    """The columns of one kind of table; a table with all of `columns` and `also` is of this kind."""

    columns: Mapping[str, str]  #: the table's name by ours
    units: Mapping[str, str] = field(default_factory=dict)  #: units other than seconds and MiB
    states: Mapping[str, str] = field(default_factory=dict)  #: our state by the table's
    also: tuple[str, ...] = ()  #: other columns that identify the kind
    optional: Mapping[str, str] = field(default_factory=dict)  #: columns that may be absent


#: Job states by their number in Slurm's database.
SLURM_STATES = dict(
    enumerate((
        *("pending", "running", "suspended", "completed", "cancelled", "failed", "timeout", "node_fail", "preempted"),
        *("boot_fail", "deadline", "out_of_memory"),
    ))
)  # fmt: skip

PRESETS = {
    # The job table of Slurm's database, as slurmdbd has it: the MIT Supercloud's trace is one.
    "supercloud": Preset(
        {"job_id": "id_job", "user": "id_user", "submit": "time_submit", "start": "time_start", "end": "time_end",
         "walltime": "timelimit", "cores": "cpus_req", "queue": "partition", "state": "state", "tres": "tres_alloc"},
        units={"walltime": "min"},
        states={str(number): name for number, name in SLURM_STATES.items()},
        optional={"suspended": "time_suspended", "group": "account"},
    ),
    # NREL, Eagle and its successors.
    "eagle": Preset(
        {"job_id": "job_id", "user": "user", "group": "account", "state": "state", "queue": "partition", "qos": "qos",
         "submit": "submit_time", "start": "start_time", "end": "end_time", "runtime": "run_time",
         "walltime": "wallclock_req", "cores": "processors_req"},
        also=("nodes_req",),
        optional={"gpus": "gpus_req"},
    ),
    # F-DATA of Fugaku.
    "fdata": Preset(
        {"job_id": "jid", "user": "usr", "cores": "cnumat", "submit": "adt", "start": "sdt", "end": "edt",
         "walltime": "elpl", "runtime": "duration"},
        also=("qdt", "nnumr"),
    ),
    # Helios of SenseTime; its column `queue` is the wait of a job.
    "helios": Preset(
        {"job_id": "job_id", "user": "user", "queue": "vc", "gpus": "gpu_num", "cores": "cpu_num", "state": "state",
         "submit": "submit_time", "start": "start_time", "end": "end_time", "runtime": "duration"},
        also=("node_num", "queue"),
    ),
    # PM100 of CINECA's Marconi100.
    "pm100": Preset(
        {"job_id": "job_id", "user": "user_id", "group": "group_id", "qos": "qos", "queue": "partition",
         "submit": "submit_time", "start": "start_time", "end": "end_time", "runtime": "run_time",
         "walltime": "time_limit", "cores": "num_cores_alloc", "gpus": "num_gpus_alloc", "memory": "mem_alloc",
         "state": "job_state"},
        units={"walltime": "min", "memory": "gb"},
        also=("num_nodes_alloc",),
    ),
}  # fmt: skip
