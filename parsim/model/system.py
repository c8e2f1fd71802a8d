"""The machine, its queues and its discipline."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Literal, get_args

from parsim.model.fairshare import EQUAL_SHARES, FAIRSHARE, Fairshare, Weights, weight_problems, weights_of
from parsim.model.formula import Formula
from parsim.model.formula import parse as parse_formula
from parsim.model.node_types import Amounts, NodeType, by_name
from parsim.model.node_types import problems as node_type_problems
from parsim.model.qos import QOS
from parsim.model.qos import problems as qos_problems
from parsim.model.throttles import ENTERING, Throttle
from parsim.model.throttles import problems as throttle_problems
from parsim.model.workload import MAX_CORES, MAX_DURATION

if TYPE_CHECKING:
    from parsim.model.state import Window

Mode = Literal["shared", "partitioned", "hybrid", "multiqueue"]
Placement = Literal["pool", "combined"]
Entry = Literal["either", "move"]
HeldJobs = Literal["pass", "reserve"]
Reserve = Literal["cores", "nodes", "queues", "queue_nodes", "nothing"]
Preempted = Literal["off", "suspend", "checkpoint", "requeue"]

PREEMPTED = ("off", "suspend", "checkpoint", "requeue")  #: what preemption does to the running jobs of a queue
MOST_TIERS = 512

#: Orders of a waiting list that have a name; any other text is a formula.
ORDERS = ("fcfs", "sjf", "ljf", "lxf", "wfp3", FAIRSHARE)

#: Fields of `Queue` that limit running jobs and cores, in total and for each user.
TOTAL_LIMITS, USER_LIMITS = ("max_run", "max_run_cores"), ("max_user_run", "max_user_cores")
LIMITS = (*TOTAL_LIMITS, *USER_LIMITS)

MOST_NODE_CORES = 2**24  #: of a machine whose nodes are told apart

LARGEST = 2**62  #: no instant and no number of cores reaches it
NOT_WHOLE = "not a whole number below 2**62"


def _is_whole(value: object) -> bool:
    # Nearly all are of the first type, and to check an abstract class takes several times as long.
    return (type(value) is int or isinstance(value, Integral)) and abs(int(value)) < LARGEST


def _is_finite(value: object) -> bool:
    try:
        return isinstance(value, Real) and math.isfinite(value)
    except OverflowError:  # an integer beyond every float
        return False


def _from_zero(path: str, value: int) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with a number that must be whole and not negative."""
    if not _is_whole(value):
        yield path, f"{value!r} is {NOT_WHOLE}"
    elif value < 0:
        yield path, f"{value} is negative"


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue: the jobs that may enter it, its partition and its limits.

    Attributes
    ----------
    cores : (int, int)
        Least and most cores of a job, both inclusive.
    walltime : (int, int)
        Seconds; above the first, up to and including the second.
    priority : float
        Positive; larger goes first.
    partition : int
        Cores of its own, used by the modes ``partitioned`` and ``hybrid``.
    reservation : bool
        Jobs start by advance reservation over the other partitions; its own partition is 0.
    starvation : int or None
        Seconds of waiting after which a job starves: it then goes before all jobs that do not.
    max_run, max_run_cores, max_user_run, max_user_cores : int or None
        Most running jobs and cores, of the queue and of each of its users.
    node_types : sequence of str or None
        Names of the types of nodes that its jobs may use; None is all.
    exclusive : bool
        Whether its jobs share their nodes with no other (rule "exclusive nodes"), where there are types of nodes.
    tier : int
        From 0 up: jobs of a higher tier go first, and preempt running ones of lower tiers.
    preempted : {"off", "suspend", "checkpoint", "requeue"}
        What happens to a running job when a job of a higher tier needs its cores: nothing, it goes on later from where
        it was (or from its checkpoint), or it begins anew.
    partition_nodes : mapping of str to int
        Number of nodes of each type, by name, in its partition, where nodes are of several types.
    charges : mapping of str to float
        Charges of its jobs, in place of `Fairshare.charges`.
    """

    name: str = "all"
    cores: tuple[int, int] = (1, MAX_CORES)
    walltime: tuple[int, int] = (0, MAX_DURATION)
    priority: float = 1
    partition: int = 0
    reservation: bool = False
    starvation: int | None = None
    max_run: int | None = None
    max_run_cores: int | None = None
    max_user_run: int | None = None
    max_user_cores: int | None = None
    node_types: Sequence[str] | None = None
    exclusive: bool = False
    tier: int = 0
    preempted: Preempted = "off"
    partition_nodes: Mapping[str, int] | Amounts = ()
    charges: Mapping[str, float] | Weights = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "charges", weights_of(self.charges))
        object.__setattr__(self, "partition_nodes", by_name(self.partition_nodes))
        if self.node_types is not None:
            object.__setattr__(self, "node_types", tuple(self.node_types))

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield (field, what is wrong with it) for everything that cannot be simulated."""
        for name, bounds, least in (("cores", self.cores, 1), ("walltime", self.walltime, 0)):
            low, high = bounds
            wrong = [bound for bound in bounds if not _is_whole(bound)]
            if wrong:
                yield name, f"{wrong[0]!r} is {NOT_WHOLE}"
            elif not (least <= low <= high and high >= 1 and (name == "cores" or low < high)):
                yield name, f"no job can enter: {low}..{high} is not a range from {least} up"
        if not (_is_finite(self.priority) and self.priority > 0):
            yield "priority", f"{self.priority!r} is not a positive number"
        yield from _from_zero("partition", self.partition)
        yield from weight_problems(self.charges)
        if self.reservation and self.partition:
            yield "partition", f"{self.partition}: a queue with advance reservations owns no partition, only 0"
        if self.starvation is not None:
            yield from _from_zero("starvation", self.starvation)
        for name in LIMITS:
            limit = getattr(self, name)
            if limit is not None and not _is_whole(limit):
                yield name, f"{limit!r} is {NOT_WHOLE}"
            elif limit is not None and limit < 1:
                yield name, f"{limit}: no job could ever start, at least 1 or no limit"
        yield from _from_zero("tier", self.tier)
        if self.preempted not in PREEMPTED:
            yield "preempted", f"{self.preempted!r} is none of {', '.join(PREEMPTED)}"


@dataclass(frozen=True, slots=True)
class Pool:
    """The common pool of a hybrid machine, entered by priority factor.

    Attributes
    ----------
    threshold : float
        tau: a job may enter while its priority factor is above this, or at once if this is 0.
    placement : {"pool", "combined"}
        A job runs wholly in the pool, or on free cores of its partition and of the pool together.
    entry : {"either", "move"}
        An eligible job starts wherever it can first, or leaves its partition's list for good.
    starving_first : bool
        Starving jobs go before larger priority factors.
    """

    cores: int = 0
    threshold: float = 0.5
    placement: Placement = "pool"
    entry: Entry = "either"
    starving_first: bool = False


@dataclass(frozen=True, slots=True)
class System:
    """A machine of `cores` cores with its `queues`, ready to be simulated.

    Parameters
    ----------
    cores : int
    queues : sequence of Queue
        At least one; ``Workload.queue`` counts them from 0.
    mode : {"shared", "partitioned", "hybrid", "multiqueue"}
        One machine for all (`partition` is ignored), a partition per queue, partitions and a common pool, or
        multiple-queue backfilling: classes by walltime, for which the queues, the order and `backfill` play no part.
    order : str
        ``fcfs``, ``sjf``, ``ljf``, ``lxf``, ``wfp3``, ``fairshare``, or a formula of the names of PBS's
        job_sort_formula.
    pool : Pool or None
        Required by ``hybrid``, ignored elsewhere.
    backfill : bool
        False is plain FCFS: no job passes the head job of the list.
    reserve_after : int
        Seconds that a job must have waited before it may be the head job of a shared machine's list under EASY; until
        then it blocks no other. In other modes, and without `backfill`, it has no effect.
    held_jobs : {"pass", "reserve"}
        A job that its limits hold is passed over, or may be the head job of its list; then limits are planned ahead as
        cores are. No effect in ``multiqueue``.
    reserve : {"cores", "nodes", "queues", "queue_nodes", "nothing"}
        What a head job reserves: a number of cores, or cores of particular nodes. With ``queues`` each queue of a
        shared machine has a head job, and nodes stay idle for them, as in Slurm; with ``queue_nodes`` these reserve
        whole nodes, and jobs are placed on nodes as Slurm does. With ``nothing`` jobs of a shared machine start
        wherever they fit, until a job has been the first of the list for `reserve_after`; no job passes it then. No
        effect in ``multiqueue``.
    reservation_depth : int or None
        Number of head jobs of a list where `reserve` is ``cores``; None for all that wait. Other numbers than 1 require
        `held_jobs` ``pass``; they and ``queues`` have an effect only with backfilling, where each job has one list.
    cores_per_node : int
        Cores of a node, where nodes are reserved; the last node has the remainder.
    priority_calc_period : int
        Formulas read eligible times as of the last multiple of these seconds, on the clock of submissions, as Slurm
        computes priorities once each PriorityCalcPeriod; 0: as of every pass.
    class_limits : sequence of int
        Walltimes in seconds, ascending, between the classes of ``multiqueue``; each belongs to the class below.
    fairshare : Fairshare
        The shares that the order ``fairshare`` and formulas read.
    throttles : sequence of Throttle
        Limits in addition to those of the queues; no effect in ``multiqueue``.
    qos : sequence of QOS
        Qualities of service by name; no effect in ``multiqueue``.
    windows : sequence of Window
        Cores that are kept for some jobs, or out of service, in addition to those of a `parsim.State`. A shortpool is a
        sequence of windows, one for each time that it is open.
    node_types : sequence of NodeType
        The nodes of the machine, where they are not all alike. Jobs take amounts of the totals of each type; with
        `reserve` ``nodes`` or ``queue_nodes`` they are placed on particular nodes.

    Raises
    ------
    ValueError
        Lists every field that is wrong.
    """

    cores: int
    queues: Sequence[Queue] = (Queue(),)
    mode: Mode = "shared"
    order: str = "fcfs"
    pool: Pool | None = None
    backfill: bool = True
    reserve_after: int = 0
    held_jobs: HeldJobs = "pass"
    reserve: Reserve = "cores"
    reservation_depth: int | None = 1
    cores_per_node: int = 1
    priority_calc_period: int = 0
    class_limits: Sequence[int] = (100, 1000, 10_000)
    fairshare: Fairshare = EQUAL_SHARES
    throttles: Sequence[Throttle] = ()
    qos: Sequence[QOS] = ()
    windows: Sequence[Window] = ()
    node_types: Sequence[NodeType] = ()

    def __post_init__(self) -> None:
        for name in ("queues", "class_limits", "throttles", "qos", "windows", "node_types"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        found = [f"{path}: {message}" for path, message in self.problems()]
        if found:
            raise ValueError("; ".join(found))

    @classmethod
    def single(cls, cores: int, order: str = "fcfs", *, backfill: bool = True) -> System:
        """Return a machine with one queue without limits: the reference points ``fcfs-easy`` and ``lxf-easy``."""
        return cls(cores=cores, order=order, backfill=backfill)

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield (path of the field, what is wrong with it) for everything that cannot be simulated."""
        if not (_is_whole(self.cores) and 1 <= self.cores <= MAX_CORES):
            yield "cores", f"{self.cores!r} is not a whole number in 1..{MAX_CORES}"
        if not self.queues:
            yield "queues", "at least one queue is needed"
        for i, queue in enumerate(self.queues):
            for path, message in queue.problems():
                yield f"queues[{i}].{path}", message
            if _is_whole(self.cores) and queue.cores[0] > self.cores:
                yield f"queues[{i}].cores", f"no job can enter: from {queue.cores[0]} up, of {self.cores}"
        if self.mode not in ("shared", "partitioned", "hybrid", "multiqueue"):
            yield "mode", f"{self.mode!r} is none of shared, partitioned, hybrid, multiqueue"
        yield from _from_zero("reserve_after", self.reserve_after)
        yield from _from_zero("priority_calc_period", self.priority_calc_period)
        yield from self._reserve_problems()
        yield from self._tier_problems()
        yield from ((f"fairshare.{path}", message) for path, message in self.fairshare.problems())
        resources = {name for each in self.node_types for name in dict(each.resources)} if self.node_types else None
        found = throttle_problems(self.throttles, len(self.queues), resources)
        yield from ((f"throttles{path}", message) for path, message in found)
        yield from ((f"qos{path}", message) for path, message in qos_problems(self.qos))
        for i, window in enumerate(self.windows):
            yield from ((f"windows[{i}].{path}", message) for path, message in window.problems(self))
        yield from self._node_type_problems()
        wrong = [limit for limit in self.class_limits if not _is_whole(limit)]
        if wrong:
            yield "class_limits", f"{tuple(self.class_limits)} has {NOT_WHOLE}"
        elif not all(low < high for low, high in zip((0, *self.class_limits), self.class_limits, strict=False)):
            yield "class_limits", f"{tuple(self.class_limits)} do not ascend from above 0"
        if self.order not in ORDERS:
            try:
                parse_formula(self.order)
            except ValueError as error:
                yield "order", f"none of {', '.join(ORDERS)}, and {error}"
        if self.mode == "hybrid":
            yield from self._pool_problems()
        if not self.is_whole:
            names = self.partition_names
            for i, name in enumerate(names):
                if name in names[:i]:
                    yield f"queues[{i}].name", f"{name!r} is also that of another partition"
        sizes = [queue.partition for queue in self.queues] + [self.pool_cores]
        if not self.is_whole and all(map(_is_whole, sizes)):
            partitions = sum(queue.partition for queue in self.queues)
            if partitions + self.pool_cores != self.cores:
                yield (
                    "queues",
                    f"partitions of {partitions} and a pool of {self.pool_cores} cores do not add up to {self.cores}",
                )

    def _reserve_problems(self) -> Iterator[tuple[str, str]]:
        if self.held_jobs not in ("pass", "reserve"):
            yield "held_jobs", f"{self.held_jobs!r} is neither pass nor reserve"
        if self.reserve not in get_args(Reserve):
            yield "reserve", f"{self.reserve!r} is none of {', '.join(get_args(Reserve))}"
        elif self.reserve in ("queues", "queue_nodes", "nothing") and self.held_jobs == "reserve":
            why = (
                "nothing is reserved" if self.reserve == "nothing" else "Slurm reserves nothing for a job that is held"
            )
            yield "reserve", f"{self.reserve} goes with held_jobs pass only: {why}"
        elif self.reserve == "queue_nodes" and not self.node_types:
            yield "reserve", "queue_nodes places jobs on nodes: describe them as types, as one where all are alike"
        elif (self.reserves_nodes or self.places_chunks) and _is_whole(self.cores) and self.cores > MOST_NODE_CORES:
            yield "reserve", f"nodes are told apart up to {MOST_NODE_CORES} cores, not {self.cores}"
        if self.reservation_depth is not None and not (
            _is_whole(self.reservation_depth) and self.reservation_depth >= 1
        ):
            yield "reservation_depth", f"{self.reservation_depth!r} is no whole number from 1 up, and not None"
        elif self.reservation_depth != 1 and (self.reserve != "cores" or self.held_jobs == "reserve"):
            why = "limits and nodes are planned for one job of each list"
            yield "reservation_depth", f"goes with reserve cores and held_jobs pass only: {why}"
        if not (_is_whole(self.cores_per_node) and self.cores_per_node >= 1):
            yield "cores_per_node", f"{self.cores_per_node!r} is not a whole number from 1 up"

    def _node_type_problems(self) -> Iterator[tuple[str, str]]:
        found = node_type_problems(self.node_types, self.cores)
        yield from ((f"node_types{path}", message) for path, message in found)
        names = [each.name for each in self.node_types]
        for i, queue in enumerate(self.queues):
            for name in (queue.node_types or ()) if self.node_types else ():
                if name not in names:
                    yield f"queues[{i}].node_types", f"{name!r} is none of {', '.join(names)}"
            if queue.exclusive and not self.node_types:
                yield f"queues[{i}].exclusive", "goes with types of nodes only: else jobs have cores, of whatever nodes"
        if self.node_types and self.mode == "multiqueue":
            yield "mode", "multiple-queue backfilling plans cores alone, not what types of nodes have"
        if self.node_types and self.held_jobs != "pass":
            yield "held_jobs", "limits are planned beside cores alone, not beside what types of nodes have: pass"
        if self.node_types and self.mode == "hybrid":
            yield "mode", "nodes of several types have no common pool: partitioned or shared"
        elif self.node_types and not self.is_whole:
            yield from self._owned_node_problems()

    def _owned_node_problems(self) -> Iterator[tuple[str, str]]:
        """Rules of "partitions of several types"."""
        for i, queue in enumerate(self.queues):
            if queue.reservation:
                yield f"queues[{i}].reservation", "no job spans partitions where nodes are of several types"
        nodes = self.owned_nodes
        for i, (queue, its) in enumerate(zip(self.queues, nodes, strict=False)):
            path = f"queues[{i}].partition_nodes"
            for name, count in its.items():
                if name not in [each.name for each in self.node_types]:
                    yield path, f"{name!r} is none of {', '.join(each.name for each in self.node_types)}"
                if not _is_whole(count) or count < 0:
                    yield path, f"{count!r} nodes of {name} are no whole number from 0 up"
            total = sum(its.get(each.name, 0) * each.cores for each in self.node_types)
            if total != queue.partition:
                yield path, f"nodes of {total} cores, for {queue.partition}"
        for each in self.node_types:
            given = sum(its.get(each.name, 0) for its in nodes)
            if given != each.nodes:
                yield "queues", f"own {given} nodes of {each.name}, of {each.nodes}"

    @property
    def owned_nodes(self) -> tuple[dict[str, int], ...]:
        """Number of nodes by the name of their type, of each partition in the order of `partition_names`."""
        if self.is_whole:
            return ({each.name: each.nodes for each in self.node_types},)
        return (*(dict(queue.partition_nodes) for queue in self.queues), {})  # a pool has no nodes of types

    @property
    def owned_types(self) -> tuple[tuple[NodeType, ...], ...]:
        """`node_types` with the number of nodes of each partition, in the order of `partition_names`."""
        return tuple(
            tuple(replace(each, nodes=its.get(each.name, 0)) for each in self.node_types) for its in self.owned_nodes
        )

    def _tier_problems(self) -> Iterator[tuple[str, str]]:
        """Rule "systems with tiers"."""
        if not self.has_tiers:
            return
        plain = (("mode", "shared"), ("held_jobs", "pass"), ("reservation_depth", 1))
        for name, value in plain:
            if getattr(self, name) != value:
                why = (
                    "a partition has jobs of one queue"
                    if name == "mode"
                    else "beside more plans no job preempts another"
                )
                what = f"{name} {value}, not {getattr(self, name)}"
                yield name, f"queues of different tiers are simulated with {what}: {why}"
        if self.reserve not in ("cores", "nothing") and not (self.reserve == "nodes" and self.node_types):
            wanted = "cores, nothing, or nodes of several types"
            yield "reserve", f"queues of different tiers are simulated with reserve {wanted}, not {self.reserve}"
        if self.windows:
            yield "windows", "with queues of different tiers no cores are simulated as out of service"
        tiers = len({queue.tier for queue in self.queues})
        if tiers > MOST_TIERS:
            yield "queues", f"{tiers} different tiers, more than {MOST_TIERS}"

    def _pool_problems(self) -> Iterator[tuple[str, str]]:
        if self.pool is None:
            yield "pool", "a hybrid machine needs one (of 0 cores at least)"
            return
        yield from _from_zero("pool.cores", self.pool.cores)
        if not (_is_finite(self.pool.threshold) and self.pool.threshold >= 0):
            yield "pool.threshold", f"{self.pool.threshold!r} is not a number from 0 up"
        if self.pool.placement not in ("pool", "combined"):
            yield "pool.placement", f"{self.pool.placement!r} is neither pool nor combined"
        if self.pool.entry not in ("either", "move"):
            yield "pool.entry", f"{self.pool.entry!r} is neither either nor move"

    @property
    def formula(self) -> Formula | None:
        """The parsed `order`, where it is not one of `ORDERS`."""
        return None if self.order in ORDERS else parse_formula(self.order)

    @property
    def is_fair(self) -> bool:
        """Whether the order reads fairshare: shares, or the use of them."""
        formula = self.formula
        return self.mode != "multiqueue" and (self.order == FAIRSHARE if formula is None else formula.uses_shares)

    @property
    def reads_users(self) -> bool:
        """Whether the order reads fairshare or the number of running jobs of each user."""
        formula = self.formula
        return self.is_fair or (self.mode != "multiqueue" and formula is not None and bool(formula.uses))

    @property
    def is_whole(self) -> bool:
        """Whether the whole machine is one partition."""
        return self.mode in ("shared", "multiqueue")

    @property
    def reservation_delay(self) -> int:
        """Seconds that a job must wait before it may be a head job: `reserve_after` where it has an effect, else 0."""
        return self.reserve_after if self.mode == "shared" and self.backfill else 0

    @property
    def reserves_nodes(self) -> bool:
        """Whether a head job reserves cores of particular nodes, all of which are alike."""
        return self.reserve == "nodes" and self.mode != "multiqueue" and not self.node_types

    @property
    def places_chunks(self) -> bool:
        """Whether jobs are placed on particular nodes of several types, rather than take amounts of their totals."""
        return self.reserve in ("nodes", "queue_nodes") and bool(self.node_types)

    @property
    def fits_best(self) -> bool:
        """Whether chunks are placed on the nodes that they fill best, as Slurm does, not on the first with room."""
        return self.reserve == "queue_nodes" and bool(self.node_types)

    @property
    def stops_time(self) -> bool:
        """Whether limits can stop the eligible times that the order reads."""
        return self.has_limits and self.formula is not None and self.formula.uses_eligible_time

    @property
    def reserves_nothing(self) -> bool:
        """Whether any job that fits starts, until one has been the first of the list for `reserve_after`."""
        return self.reserve == "nothing" and self.mode == "shared" and self.backfill

    @property
    def calc_period(self) -> int:
        """`priority_calc_period`, seconds, if the order is a formula that reads eligible times, else 0."""
        return self.priority_calc_period if self.formula is not None and self.formula.uses_eligible_time else 0

    @property
    def reserves_for_queues(self) -> bool:
        """Whether each queue has a head job, as in Slurm: `reserve` where it has an effect."""
        return (self.reserve == "queues" and self._lists_are_apart) or self.fits_best

    @property
    def reserves_for_many(self) -> bool:
        """Whether a list has several head jobs: `reservation_depth` where it has an effect."""
        return self.reservation_depth != 1 and self._lists_are_apart

    @property
    def _lists_are_apart(self) -> bool:
        """Whether jobs are backfilled, and each waits in one list, for cores of one partition."""
        if self.mode == "multiqueue" or not self.backfill:
            return False
        if self.mode == "shared":
            return True
        pool = self.pool if self.pool_cores else None
        return not any(queue.reservation for queue in self.queues) and (
            pool is None or (pool.entry == "move" and pool.placement == "pool")
        )

    @property
    def plans_limits(self) -> bool:
        """Whether a job that its limits hold may be a head job: `held_jobs` where it has an effect."""
        return self.held_jobs == "reserve" and self.mode != "multiqueue" and self.has_limits

    @property
    def plans_top_job(self) -> bool:
        """Whether limits or nodes are planned for head jobs."""
        return self.plans_limits or self.reserves_nodes

    @property
    def has_limits(self) -> bool:
        """Whether a queue limits its running jobs, or there is a throttle of any kind."""
        limited = any(getattr(queue, name) is not None for queue in self.queues for name in LIMITS)
        return limited or bool(self.throttles)

    @property
    def exempts_from_queues(self) -> bool:
        """Whether a QOS is exempt from a limit of some queue."""
        limits = {name for name in LIMITS for queue in self.queues if getattr(queue, name) is not None}
        return any(qos.is_exempt(name) for name in limits for qos in self.qos)

    @property
    def uses_estimate(self) -> bool:
        """Whether the order reads the predicted run times of jobs."""
        return self.formula is not None and self.formula.uses_estimate

    @property
    def uses_qos(self) -> bool:
        """Whether the order or a limit reads the QOS of jobs."""
        formula = self.formula
        if (formula is not None and formula.uses_qos) or any(throttle.is_of_qos for throttle in self.throttles):
            return True
        return self.has_limits and any(qos.exempt for qos in self.qos)

    @property
    def has_tiers(self) -> bool:
        """Whether queues are of different tiers: jobs of higher ones go first, and may preempt others."""
        return len({queue.tier for queue in self.queues}) > 1

    @property
    def keeps_out(self) -> bool:
        """Whether throttles may keep submitted jobs out of the waiting lists."""
        limited = any(getattr(throttle, name) is not None for throttle in self.throttles for name in ENTERING)
        return limited and self.mode != "multiqueue"

    @property
    def pool_cores(self) -> int:
        """Cores of the common pool; 0 where there is none."""
        return self.pool.cores if self.mode == "hybrid" and self.pool is not None else 0

    @property
    def partition_names(self) -> tuple[str, ...]:
        """Names of the partitions that jobs run on: one per queue and the common pool, or the whole machine."""
        if self.is_whole:
            return ("machine",)
        names = tuple(queue.name for queue in self.queues)
        return (*names, "pool" if "pool" not in names else "common pool")

    @property
    def partition_cores(self) -> tuple[int, ...]:
        """Cores of each partition, in the order of `partition_names`."""
        if self.is_whole:
            return (self.cores,)
        return (*(queue.partition for queue in self.queues), self.pool_cores)
