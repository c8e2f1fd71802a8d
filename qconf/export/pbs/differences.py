"""Differences between the simulator and PBS: every plan names those of its configuration."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from parsim.system import ORDERS
from qconf.config import QueueConfig, SiteConfig, format_clock, format_duration, lost_job
from qconf.export.checks import common_notes
from qconf.export.nodes import Node
from qconf.export.pbs import fairshare, kept, qos, throttles
from qconf.export.pbs.order import formula, present_formula
from qconf.export.pbs.scheduler import Scheduler
from qconf.export.pbs.server import Server
from qconf.export.pbs.sharing import of_sharing
from qconf.export.priorities import Priorities
from qconf.hosts import expand

if TYPE_CHECKING:
    from qconf.export.pbs import Binding

#: Setting of the scheduler, the beginning of a queue's name as PBS ships it, and when such a queue's jobs start.
_PREFIXES = (
    ("primetime_prefix", "p_", "prime time"),
    ("nonprimetime_prefix", "np_", "non-prime time"),
    ("dedicated_prefix", "ded", "dedicated time"),
)


def notes(
    config: SiteConfig,
    binding: Binding,
    priorities: Priorities,
    server: Server | None = None,
    scheduler: Scheduler | None = None,
    nodes: Sequence[Node] = (),
) -> tuple[str, ...]:
    """Name the differences that follow from the configuration, and from what server, scheduler and nodes have."""
    server, scheduler = server or Server(), scheduler or Scheduler()
    _, found = formula(config, priorities)
    own = prime_time(config, scheduler)
    of_nodes = (*_nodes_alone(config, nodes), *kept.notes(config, server))
    return (*found, *own, *of_nodes, *_differences(config, binding))


def _differences(config: SiteConfig, binding: Binding) -> Iterator[str]:
    parted, pool = config.mode != "shared", config.pool
    reserved = [queue.name for queue in config.queues if queue.reservation]
    if parted and reserved:
        yield (
            f"Advance reservations of {', '.join(reserved)}: PBS reserves time for the first waiting job on nodes of "
            "its own choice. The shares of the partitions, and the rule that no partition with a starving job lends "
            "its cores, have no form in PBS."
        )
    if parted and binding == "limits":
        yield "Partitions are limits of running cores: they cap a queue and reserve nothing for it."
    if config.pool_cores and pool is not None:
        if pool.entry == "either":
            yield "pool entry `either` is exported as `move`: after its qmove a job can use the pool only."
        if pool.placement == "combined":
            yield (
                "pool placement `combined`: a moved job may run on its partition's nodes, the pool's, or both at once; "
                "PBS does not insist on one core of the pool."
            )
        if config.nodes:
            yield (
                "qconf-promote goes by what a job's select asks for: each kind of its chunks by itself has to fit on "
                "the nodes of the partition, or of the pool, however the job wants them placed. One that the partition "
                "cannot hold waits in its queue for up to a minute before it enters the pool."
            )
        limited = [queue.name for queue in config.queues if queue.limited and not queue.reservation]
        if limited:
            yield (
                f"Limits of {', '.join(limited)} hold in the queue and again in its pool queue: PBS does not "
                "count both together."
            )
    if config.reservation_delay:
        yield (
            f"A job gets a reservation once it has waited {format_duration(config.reservation_delay)}: PBS has no such "
            "setting. The hook qconf_reserve sets `topjob_ineligible` of new jobs in these queues instead, and every "
            "minute the script qconf-reserve takes it from those that have waited long enough, whatever it was before: "
            "such a job may be without a reservation for up to a minute more. Where the script is stopped without its "
            "undo, jobs that have True never get a reservation."
        )
    if any(queue.billing for queue in config.queues):
        yield "`billing` of queues has no form in PBS."
    if config.priority_calc_period:
        yield "priority_calc_period has no form in PBS, which computes the formula in each cycle of the scheduler."
    yield from _top_job(config)
    if config.machine.whole_nodes:
        yield (
            "The simulator gives whole nodes. PBS does where the nodes have `sharing = default_excl` or `force_excl`, "
            "or jobs ask for `-l place=excl`."
        )
    yield from fairshare.notes(config)
    yield from throttles.notes(config)
    yield from qos.notes(config)
    yield from _counted_otherwise(config, capped=parted and binding == "limits")
    yield from common_notes(config, "PBS")
    cores, walltime = envelope(config.queues)
    if gap := lost_job([QueueConfig(name="envelope", cores=cores, walltime=walltime)], config.queues):
        yield (
            f"Jobs of {gap[0]} cores and a walltime of {format_duration(gap[1])} pass the Route queue's own limits "
            "but fit no queue: PBS deletes them with a message to their owner."
        )


def _nodes_alone(config: SiteConfig, nodes: Sequence[Node]) -> Iterator[str]:
    """Name the types of nodes that are to be given whole or shared, and are not or not known to be."""
    sharing = {node.name: node.exclusive for node in nodes if node.resources}
    known_of = {
        each.name: {sharing[name] for name in expand(each.hosts or "") if name in sharing} for each in config.nodes
    }
    if shared := [each.name for each in config.nodes if not (each.exclusive or known_of[each.name])]:
        yield (
            f"Jobs share the nodes {', '.join(shared)} in the simulation. Those that PBS gives whole (`sharing = "
            "default_excl` or `force_excl` in pbsnodes -av) stay so: qmgr cannot set that, the vnode definition files "
            "of their MoMs do."
        )
    for each in config.nodes:
        known = known_of[each.name]
        if known != {each.exclusive} and (known or each.exclusive):
            how = "default_excl" if each.exclusive else "default_shared"
            yield (
                f"Nodes {each.name} are simulated with `sharing = {how}`, which qmgr cannot set: see that they have it "
                "in the vnode definition files of their MoMs (pbs_mom -s insert)."
            )
    if config.nodes:
        yield from of_sharing(nodes)
    if alone := [queue.name for queue in config.queues if queue.exclusive]:
        yield (
            f"Jobs of {', '.join(alone)} have their nodes alone by resources_default.place: those that give -l place "
            "have them as that says, and those that ask without a select, like -l ncpus=4, have place=pack and share."
        )


def prime_time(config: SiteConfig, scheduler: Scheduler) -> Iterator[str]:
    """Name the queues whose jobs PBS starts at some times only, by their names, and what else prime time changes."""
    for setting, shipped, when in _PREFIXES:
        prefix = scheduler.value(setting) or shipped
        if names := [name for name in config.names if name.startswith(prefix)]:
            yield (
                f"Jobs of {', '.join(names)} start in {when} only, since its name begins with {prefix} ({setting} of "
                "sched_config); the simulator starts them at any time."
            )
    if scheduler.on("backfill_prime"):
        yield "backfill_prime: jobs that would run across a border of prime time wait; the simulator has none."


def sorting(text: str | None, server: Server | None, scheduler: Scheduler | None, *, changed: bool) -> Iterator[str]:
    """Name what else sorts the waiting jobs now, or keeps them waiting, and what becomes of it.

    `text` is the formula; `changed`, the order is another one now.
    """
    server, scheduler = server or Server(), scheduler or Scheduler()
    threshold = server.scheduler.get("job_sort_formula_threshold")
    if threshold is not None and text is not None:
        kept = not changed or text == present_formula(server)
        yield (
            f"job_sort_formula_threshold = {threshold} is {'kept' if kept else 'taken away'}: PBS starts no job whose "
            "formula is not above it; the simulator starts them all."
        )
    if changed and (keys := scheduler.value("job_sort_key")):
        yield (
            f"job_sort_key ({keys}) is taken away: PBS would sort by it what the formula leaves equal, and everything "
            "where there is none."
        )


def _top_job(config: SiteConfig) -> Iterator[str]:
    """Name what PBS does for its top job and the simulation of this configuration does not."""
    if config.reserves_nothing:
        return
    if (config.throttles or any(queue.limited for queue in config.queues)) and config.held_jobs == "pass":
        yield (
            "A job that a running limit holds can be PBS's top job, and then no other has a reservation. The "
            "simulator lets others pass it; `held_jobs: reserve` simulates PBS's way."
        )
    if config.backfill and config.reserve != "nodes":
        simulated = " `reserve: nodes` simulates PBS's way."
        yield (
            "PBS reserves particular nodes for the top job, the simulator a number of cores: PBS backfills "
            f"less.{'' if config.has_tiers else simulated}"
        )


def _counted_otherwise(config: SiteConfig, *, capped: bool) -> Iterator[str]:
    """Name what PBS counts in another way: time that a limit holds a job, and cores of nodes given whole.

    `capped`, every partition is a limit of running cores.
    """
    of_users = any(queue.max_user_run or queue.max_user_cores for queue in config.queues)
    named = config.order in ORDERS
    counts = [f"the order {config.order}"] if config.order in ("lxf", "wfp3") else []
    counts += ["starvation"] if named and any(queue.starvation is not None for queue in config.queues) else []
    counts += ["the pool's priority factor"] if config.pool_cores else []
    if of_users and counts:
        yield (
            f"For {' and '.join(counts)} the simulator counts all of a job's waiting; PBS's eligible_time leaves out "
            "the time that limits of its user hold it."
        )
    if "eligible_time" in config.order and any(queue.max_run or queue.max_run_cores for queue in config.queues):
        yield (
            "For eligible_time in the order the simulator leaves out the time that any limit holds a job; PBS, that of "
            "a limit of its user, and counts that of a limit of the whole queue."
        )
    of_cores = [q.name for q in config.queues if q.max_run_cores or q.max_user_cores or (capped and q.partition)]
    counts = [f"limits of running cores ({', '.join(of_cores)})"] if of_cores else []
    counts += ["ncpus in the order"] if config.order == "wfp3" or (not named and "ncpus" in config.order) else []
    if config.machine.whole_nodes and config.machine.cores_per_node > 1 and counts:
        yield (
            f"For {' and '.join(counts)} PBS counts the cores that jobs ask for; the simulator, those of the whole "
            "nodes they are given."
        )


def unroutable(config: SiteConfig, default: int | None) -> Iterator[str]:
    """Name jobs that no queue takes with the walltime that the server gives those that name none; seconds."""
    for width in sorted({edge for queue in config.queues for edge in (queue.cores[0], queue.cores[1] + 1)}):
        takers = [queue.name for queue in config.queues if queue.admits(width, None)]
        if default and takers and not any(queue.admits(width, default) for queue in config.queues):
            yield (
                f"a job of {width} cores that names no walltime is given {format_clock(default)} "
                f"(resources_default.walltime), with which no queue takes it ({', '.join(takers)} would by its cores)"
            )


def envelope(queues: Sequence[QueueConfig]) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the least ranges of cores and of walltimes that hold those of all `queues`."""
    least, most = zip(*(queue.cores for queue in queues), strict=True)
    above, upto = zip(*(queue.walltime for queue in queues), strict=True)
    return (min(least), max(most)), (min(above), max(upto))
