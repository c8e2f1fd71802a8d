"""Warn about settings of a slurm.conf that affect starts of jobs but are not simulated.

Settings in none of these tables affect no start: paths, ports, accounting, limits that the log's jobs have met.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from qconf.export.slurm.throttles import USER_JOBS

#: Setting -> (values without effect, effect of other values).
SETTINGS: dict[str, tuple[tuple[str, ...], str]] = {
    "JobSubmitPlugins": ((), "it may change jobs at submission; the log has what it left"),
    "TopologyPlugin": (
        ("topology/none", "topology/default", "topology/flat"),
        "jobs are put on nodes near each other, which is not simulated",
    ),
    "PrioritySiteFactorPlugin": (("site_factor/none",), "what it adds to priorities is not simulated"),
    "PriorityUsageResetPeriod": (("none",), "that use is forgotten then is not simulated"),
    "CompleteWait": (("0",), "that nothing starts while jobs complete is not simulated"),
    "Licenses": ((), "write licences: {name: number} to have them counted"),
    "FederationParameters": ((), "starts in other clusters are not simulated"),
    "SuspendProgram": ((), "the time in which nodes are powered up is not simulated"),
    "BurstBufferType": (("burst_buffer/none",), "waits for burst buffers are not simulated"),
}
#: Spelling of the weights in slurm.conf, after PriorityWeight.
WEIGHTS = {name.lower(): name for name in ("Age", "Fairshare", "JobSize", "Partition", "QOS", "Assoc", "TRES")}
#: Words of SchedulerParameters that are read, or do not affect a simulation.
PARAMETERS = {"bf_min_age_reserve", "bf_job_part_count_reserve", "bf_busy_nodes", USER_JOBS, "pack_serial_at_end"} | {
    *("bf_continue", "bf_interval", "bf_window_linear", "bf_yield_interval", "bf_yield_sleep", "bf_yield_rpc_cnt"),
    *("bf_max_time", "batch_sched_delay", "build_queue_timeout", "max_rpc_cnt", "sched_interval", "max_script_size"),
    *("sched_min_interval", "sched_max_job_start", "max_array_tasks", "max_depend_depth", "kill_invalid_depend"),
    *("enable_user_top", "no_env_cache", "nohold_on_prolog_fail", "permit_job_expansion", "disable_remote_singleton"),
    *("salloc_wait_nodes", "sbatch_wait_nodes", "spec_cores_first", "ignore_prefer_validation", "bf_licenses"),
    *("requeue_setup_env_fail", "allow_zero_lic", "default_gbytes", "max_submit_line_size"),
}
FLAGS = {"", "NO_FAIR_TREE", "FAIR_TREE", "MAX_TRES", "CALCULATE_RUNNING"} | {
    *("NO_NORMAL_ALL", "NO_NORMAL_QOS", "NO_NORMAL_TRES"),
}


def of_settings(settings: Mapping[str, str]) -> Iterator[str]:
    """Yield a warning for each setting that is not simulated."""
    for name, (idle, what) in SETTINGS.items():
        value = settings.get(name.lower(), "")
        if value and value.lower() not in idle:
            yield f"{name}={value}: {what}"
    words = [word.strip() for word in settings.get("schedulerparameters", "").split(",")]
    if others := [word for word in words if word and word.partition("=")[0].lower() not in PARAMETERS]:
        yield f"SchedulerParameters: not simulated: {', '.join(others)}"
    flags = [flag.strip() for flag in settings.get("priorityflags", "").split(",")]
    if others := [flag for flag in flags if flag.upper() not in FLAGS]:
        yield f"PriorityFlags: not simulated: {', '.join(others)}"
    if settings.get("prioritytype", "").lower() == "priority/multifactor":
        weights = {key: value for key, value in settings.items() if key.startswith("priorityweight") and value != "0"}
        listed = ", ".join(f"{WEIGHTS.get(key[14:], key[14:])}={value}" for key, value in sorted(weights.items()))
        yield (
            f"PriorityType=priority/multifactor ({listed or 'no weights'}): the order of the jobs of "
            "one priority is not taken over; they are first come, first served"
        )
