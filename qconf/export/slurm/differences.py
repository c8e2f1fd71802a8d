"""Differences between the simulator and Slurm: every plan names those of its configuration."""

from __future__ import annotations

from collections.abc import Iterator

from parsim.workload import MAX_DURATION
from qconf.config import SiteConfig, format_duration
from qconf.config.billing import left_out
from qconf.config.multifactor import Multifactor
from qconf.export.checks import common_notes
from qconf.export.slurm import fairshare, kept, preemption, qos, shortpools, throttles

LONGEST_AGE = 30 * 86400  #: a larger bf_min_age_reserve is an error to Slurm, and counts as none
LONGEST_WINDOW = 30 * 1440  #: of bf_window, in minutes


def differences(config: SiteConfig) -> Iterator[str]:
    """Name what Slurm does otherwise than the simulator."""
    if any(queue.starvation is not None for queue in config.queues):
        yield "Starvation periods have no form in Slurm: no job goes before all others because it has waited."
    if any(queue.reservation for queue in config.queues) and config.mode != "shared":
        yield (
            "Advance reservations: the queue's partition spans all nodes at a higher PriorityTier, and Slurm's "
            "backfill reserves time for its first jobs; the shares of the partitions have no form in Slurm."
        )
    for queue in config.queues:
        for bound in queue.walltime:
            if bound % 60 and bound < MAX_DURATION:
                minutes = -(-bound // 60)
                yield (
                    f"Slurm counts walltime in whole minutes: {format_duration(bound)} of {queue.name} is {minutes} "
                    f"{'minute' if minutes == 1 else 'minutes'}, to the routing and to the partition."
                )
    if config.backfill:
        longest = max(queue.walltime[1] for queue in config.queues)
        if longest > LONGEST_WINDOW * 60:
            yield "bf_window is at most 30 days, which is exported: later ends are not seen when Slurm backfills."
        yield (
            "Slurm backfills every bf_interval seconds and in steps of bf_resolution seconds, the simulator whenever a "
            "job arrives or ends; bf_max_job_test has to be at least the number of jobs that wait at one time."
        )
        if config.reservation_depth != 1:
            yield "bf_job_part_count_reserve counts reservations by partition, the simulator those of a whole machine."
        elif not config.reserves_for_queues:
            yield (
                "Slurm reserves for the first job of each queue of a shared machine, and keeps a node more idle for it"
                + ("." if config.nodes and config.mode != "shared" else "; `reserve: queues` simulates Slurm's way.")
            )
        shared = [each.cores for each in config.nodes if not each.exclusive]
        several = max(shared if config.nodes else [config.machine.cores_per_node], default=1) > 1
        if several and config.reserve != "queue_nodes" and not config.machine.whole_nodes:
            yield "Where jobs share nodes, Slurm reserves whole nodes for the first job, the simulator cores."
    if config.reserve == "queue_nodes" and len({each.weight for each in config.nodes}) > 1:
        weights = ", ".join(f"{each.name} {each.weight}" for each in config.nodes)
        yield f"Weight of nodes stays as slurm.conf has it; the simulator takes nodes by: {weights}."
    if Multifactor.of(config.order) is not None:
        yield (
            "Slurm counts how long jobs have waited (PriorityWeightAge) only where slurmdbd runs: elsewhere it says in "
            "its log that it ignores the weight, and jobs that come after others never catch up."
        )
    if "eligible_time" in config.order and config.priority_calc_period != 60 * calc_minutes(config):
        period = config.priority_calc_period
        when = f"each {format_duration(period)}, which is no whole number of minutes" if period else "at every look"
        yield (
            f"Slurm computes the priorities of waiting jobs anew each PriorityCalcPeriod, {calc_minutes(config)} min, "
            f"the simulator {when}; `priority_calc_period` simulates Slurm's way."
        )
    if config.pool is not None and config.pool_cores:
        yield "The pool goes by priority factor as of the last minute: qconf-promote gives its jobs their priorities."
        if config.nodes:
            yield (
                "Slurm refuses a job that no node of its partition can hold: job_submit.lua sends one whose memory or "
                "generic resources only nodes of the pool have to the pool at once. qconf-promote goes by cores, "
                "nodes, and the memory and generic resources of each; a number for the whole job (--gpus) it does not "
                "see."
            )
        if config.pool.entry == "either":
            yield "pool entry `either` is exported as `move`."
        if config.pool.placement == "combined":
            yield "pool placement `combined` is exported as `pool`: a job runs in one partition."
        if limited := [queue.name for queue in config.queues if queue.limited and not queue.reservation]:
            yield f"Limits of {', '.join(limited)} hold in their own partitions: in the pool, jobs are under no limit."
    if config.reservation_delay:
        yield (
            f"A job gets a reservation once it has waited {format_duration(config.reservation_delay)}: "
            "bf_min_age_reserve counts from when it is eligible to run, the simulator from its submission."
        )
    if config.reservation_delay > LONGEST_AGE:
        yield f"bf_min_age_reserve is at most {format_duration(LONGEST_AGE)}, which is exported instead."
    if config.mode == "shared" and config.held_jobs == "reserve" and any(queue.limited for queue in config.queues):
        yield "held_jobs `reserve`: Slurm reserves nothing for a job that a limit holds; it is passed over."
    if restricted := [queue.name for queue in config.queues if queue.access is not None]:
        yield (
            f"job_submit.lua sends jobs by size alone, and Slurm refuses those that the access of "
            f"{', '.join(restricted)} keeps out: such a job names another queue with -p."
        )
    if config.routing is not None:
        yield "`routing` has no form in Slurm."
    if {queue.billing for queue in config.queues} - {None}:
        others = dict.fromkeys(tres for queue in config.queues for tres in left_out(queue.billing))
        if config.is_fair and others:
            yield f"Slurm charges jobs for {', '.join(others)} too (TRESBillingWeights), the simulator does not."
        if config.pool_cores and len({queue.billing for queue in config.queues}) > 1:
            yield "TRESBillingWeights of the queues differ: the pool's partition has none, give it what is to hold."
    yield from preemption.notes(config)
    yield from fairshare.notes(config)
    yield from throttles.notes(config)
    yield from qos.notes(config)
    yield from shortpools.notes(config)
    yield from kept.notes(config)
    yield from common_notes(placed(config), "Slurm")


def calc_minutes(config: SiteConfig) -> int:
    """Return PriorityCalcPeriod: whole minutes, at least one."""
    return max(1, round(config.priority_calc_period / 60))


def placed(config: SiteConfig) -> SiteConfig:
    """Return the configuration with its pool as Slurm has it: a job runs in one partition."""
    if config.pool is None or config.pool.placement == "pool":
        return config
    return config.replace(pool=config.pool.model_copy(update={"placement": "pool"}))
