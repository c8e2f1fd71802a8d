"""A snapshot under a configuration: the jobs and cores to simulate, the jobs left out, and warnings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from parsim import UNSTARTED, Queue, Quota, State, System, Window, Workload
from parsim.model.node_types import Request
from parsim.model.workload import MAX_CORES, MAX_DURATION, Column
from qconf.config import CORE_LIMITS, POOL_SUFFIX, SiteConfig, kept_off, over_limit, qos_of, route, throttled
from qconf.errors import InputError
from qconf.evaluation.calendar import dedicated, hourly, outages
from qconf.evaluation.calendar import windows as downtimes
from qconf.history.chunks import requests, taken, without_place, without_time
from qconf.history.needs import followed, needed, wanted
from qconf.history.times import zone
from qconf.prediction.nodes import cores_of, in_service
from qconf.prediction.starts import Present
from qconf.snapshot import Closure, Job, Snapshot

FAR = 10 * 366 * 86400  #: seconds after which a node of unknown return is back, in the simulator
GRACE = 60  #: expected rest of a job past its walltime, seconds


@dataclass(frozen=True)
class Ahead:
    """A snapshot ready to be simulated, and the jobs that are left out."""

    now: int
    present: Present
    system: System
    jobs: tuple[Job, ...]  #: in the order of `present`
    left_out: tuple[tuple[Job, str], ...]  #: waiting jobs that are not simulated, and why
    warnings: tuple[str, ...]
    users: Mapping[str, int]  #: number of each user in `present`

    def idle(self, instant: int) -> int:
        """Return the cores in service that are idle at an instant, if the running jobs use their whole walltimes."""
        w, state = self.present.workload, self.present.state
        runs = (state.start < self.now) & (state.start + w.walltime > instant)
        lost = sum(
            cores_of(each, self.system)
            for each in state.windows
            if each.begin <= instant < each.end and each.queue is None
        )
        return max(0, self.system.cores - int(w.cores[runs].sum()) - lost)

    @property
    def unknown_from(self) -> int:
        """A planned start from here on waits for nodes whose return is unknown."""
        return self.now + FAR


def ahead(snapshot: Snapshot, config: SiteConfig, extra: Sequence[Job] = ()) -> Ahead:
    """Put the jobs of a snapshot, and `extra` ones after them, on the machine of a configuration.

    Raises `InputError` if nothing can be predicted.
    """
    warnings = Counter(snapshot.warnings)
    now, cores = snapshot.now, config.machine.cores
    if any(throttle.kind == "group" for throttle in config.throttles):
        warnings["throttles of groups are left out: a snapshot does not tell the groups of jobs"] += 1
        config = config.replace(throttles=tuple(each for each in config.throttles if each.kind != "group"))
    if any(qos.groups for qos in config.qos):
        warnings["no job is of a QOS by its group: a snapshot does not tell the groups of jobs"] += 1
    if config.is_fair:
        warnings["all have used nothing of their shares so far: a snapshot does not tell the use of before"] += 1
    lasting = [each for each in snapshot.closures if each.end is None or each.end > now]
    closed = snapshot.cores not in (None, cores) or bool(lasting)
    nodes = in_service(snapshot, config, lasting) if config.nodes else None
    reserved: list[Closure] = []  # of whole nodes
    if nodes is not None:
        reserved = [each for each in lasting if each.node not in nodes.lost]
        lasting = []
        for name, count in nodes.down.items():
            warnings[f"{count} of the nodes {name} {'are' if count > 1 else 'is'} down: simulated without"] += 1
        if unnamed := nodes.unnamed(snapshot.nodes):
            few = ", ".join(unnamed[:3]) + ", ..." * (len(unnamed) > 3)
            warnings[f"nodes that no hosts of the configuration name are left out: {few}"] += 1
    elif config.nodes and closed:
        warnings[
            "types of nodes are left out: they are not simulated where cores are reserved or down of nodes that are "
            "not named, or that no hosts of the configuration name, nor on a divided machine"
        ] += 1
        config = config.with_all_alike()
    if config.has_tiers and closed:
        warnings["no job preempts another: tiers are not simulated where cores are out of service"] += 1
        config = config.with_one_tier()
    if snapshot.cores is not None and snapshot.cores != cores and nodes is None:
        if snapshot.cores > cores:
            raise InputError(
                f"the nodes of the snapshot have {snapshot.cores} cores, the machine of the configuration {cores}",
                field="machine.cores",
                fix="predict with the configuration of this machine",
            )
        warnings[
            f"the snapshot has nodes of {snapshot.cores} cores, of the machine's {cores}: the others are down"
            + (", and each partition lacks its share" if config.mode != "shared" else "")
        ] += 1
    there = cores if snapshot.cores is None or nodes is not None else snapshot.cores
    windows = [Window(now, now + FAR, cores - there, known_end=False)] if there < cores else []
    queues = {closure.queue for closure in snapshot.closures if closure.queue}
    names = [*config.names, *sorted(queues & {job.queue for job in snapshot.jobs} - set(config.names))]
    system = config.system() if nodes is None else nodes.system
    if len(names) > len(config.names):
        more = [Queue(name) for name in names[len(config.names) :]]
        if config.mode != "shared":
            raise InputError("jobs in reservations are predicted on a machine in mode shared only", field="mode")
        system = replace(system, queues=(*system.queues, *more))
    for closure in (*reserved, *lasting):
        end = now + FAR if closure.end is None else closure.end
        queue = names.index(closure.queue) if closure.queue in names else None
        if nodes is not None:
            windows += nodes.window(closure, end, queue)
            if nodes.takes_parts(closure):
                warnings["parts of nodes are reserved: about as many cores are taken, of whole ones of these"] += 1
            continue
        lost = min(closure.cores, cores)
        windows.append(Window(closure.begin, end, lost, None, (), None, closure.end is not None, queue))
    kept, left_out = _sorted_out([*snapshot.jobs, *extra], config, system, names, now, warnings)
    if not kept:
        raise InputError("the snapshot has no job that can be predicted", fix="take it from the server that runs jobs")
    users = {user: i for i, user in enumerate(sorted({job.user for job, _ in kept if job.user}))}
    planned = downtimes(outages(config, 0, snapshot.timezone), config.system(), now, tuple(users))
    windows += planned if nodes is None else nodes.moved(planned)
    walltime = np.array([job.walltime for job, _ in kept])
    position = {qos.name: i for i, qos in enumerate(config.qos)}
    workload = Workload(
        submit=np.array([max(job.submit, job.not_before or job.submit) for job, _ in kept]),
        cores=np.array([job.cores for job, _ in kept]),
        runtime=walltime,
        walltime=walltime,
        queue=np.array([queue for _, queue in kept]),
        user=np.array([users.get(job.user, -1) for job, _ in kept]),
        user_names=tuple(users),
        qos=np.array([position.get(_qos(job, config, queue)[0], -1) for job, queue in kept], dtype=np.int64),
        qos_names=[qos.name for qos in config.qos],
    )
    workload = with_needs(workload, kept, config)
    if nodes is not None and (astray := sum(any(name in nodes.lost for name, _ in job.on) for job, _ in kept)):
        warnings["a job runs on a node that is out of service: it is taken to be on others"] += astray
    start = [UNSTARTED if job.start is None else job.start for job, _ in kept]
    system = dedicated(system, config.shortpools, (now, now), 0, snapshot.timezone)
    present = Present(
        workload,
        State(now, start, nodes=nodes.of([job for job, _ in kept]) if nodes is not None else None, windows=windows),
        [job.user for job, _ in kept],
        [job.name for job, _ in kept],
        (lambda jobs: hourly(jobs, config, 0, zone(snapshot.timezone))) if config.hours else None,
    )
    counted = tuple(text if count == 1 else f"{count} times: {text}" for text, count in warnings.items())
    return Ahead(now, present, system, tuple(job for job, _ in kept), tuple(left_out), counted, users)


def with_needs(jobs: Workload, kept: Sequence[tuple[Job, int]], config: SiteConfig) -> Workload:
    """Return the jobs with their dependencies, licences, array limits and requests of chunks."""
    order = np.argsort(jobs.submit, kind="stable")
    table = pd.DataFrame({name: [getattr(kept[row][0], name) for row in order] for name in ("job_id", "needs")})
    after, quotas = needed(table, config.licences)
    moved = [Quota(quota.name, quota.most, order[quota.rows], quota.amounts, quota.changes) for quota in quotas]
    jobs = replace(jobs, after=order[after], quotas=moved)
    if not config.nodes:
        return jobs
    number, found = requests(np.array([job.needs for job, _ in kept], dtype=object), jobs.cores, config)
    return replace(jobs, request=np.maximum(number, -1), requests=found)


def _sorted_out(
    jobs: Sequence[Job], config: SiteConfig, system: System, names: list[str], now: int, warnings: Counter[str]
) -> tuple[list[tuple[Job, int]], list[tuple[Job, str]]]:
    """Return the jobs to simulate, with their queues, and the jobs left out, with the reasons."""
    kept: list[tuple[Job, int]] = []
    left_out: list[tuple[Job, str]] = []
    idle = system.cores
    for job in sorted(jobs, key=lambda job: (job.start is None, job.start or 0)):
        queue = _queue(job, config, names)
        if job.queue and job.queue.removesuffix(POOL_SUFFIX) not in names:
            warnings[f"the configuration has no queue {job.queue}: its jobs are taken by their size"] += 1
        limit = config.queues[queue] if queue < len(config.queues) else None
        most = MAX_DURATION if limit is None else limit.walltime[1]
        walltime = min(job.walltime or most, MAX_DURATION)
        if not job.walltime and walltime == MAX_DURATION:
            warnings["a job has no walltime, and its queue none: a week stands for it"] += 1
            walltime = 7 * 86400
        widest = config.machine.cores
        if limit is not None:
            all_cores, has_user = np.array([MAX_CORES]), np.array([bool(job.user)])
            for name in CORE_LIMITS:
                if over_limit(config, limit, name, all_cores, has_user, _qos(job, config, queue))[0]:
                    widest = min(widest, getattr(limit, name))
        if job.start is not None:
            never = limit is not None and _never_starts(config, queue, job, walltime)
            if config.machine.cores >= job.cores and (job.cores > widest or never):
                raise InputError(
                    f"job {job.job_id} runs on {job.cores} cores, which a limit of the configuration never lets it",
                    field=f"queues.{job.queue or names[queue]}",
                    fix="predict with the limits that the batch system had when the job started",
                )
            if job.cores > idle:
                warnings["a job runs that the machine has no cores for: it is left out"] += 1
                continue
            runs = _on_nodes(config, system, queue, job, warnings)
            if runs is None:
                continue
            idle -= job.cores
            start = min(job.start, now - 1)
            if job.start > now:
                warnings["a job started after the snapshot: clocks are apart"] += 1
            if start + walltime <= now:
                warnings["a job runs past its walltime: it is expected to end within a minute"] += 1
                walltime = now - start + GRACE
            kept.append((replace(runs, start=start, submit=min(job.submit, start), walltime=walltime), queue))
            continue
        if job.held:
            left_out.append((job, job.held))
        elif short := next((name for name, count in wanted(job.needs) if count > config.licences.get(name, count)), ""):
            left_out.append((job, f"asks for more licences {short} than the {config.licences[short]} of the site"))
        elif job.cores > widest:
            left_out.append((job, f"asks for {job.cores} cores, and may have {widest} at most"))
        elif _has_no_place(config, system if limit is None else config.system(), queue, job):
            left_out.append((job, "fits no nodes of its queue"))
        elif _has_no_place(config, system, queue, job):
            left_out.append((job, "needs nodes that are down"))
        elif limit is not None and _never_starts(config, queue, job, walltime):
            left_out.append((job, "asks for more than throttles let one job have"))
        elif _kept_off(config, queue, job, walltime):
            left_out.append((job, "finds no time between those of a shortpool"))
        else:
            kept.append((replace(job, walltime=walltime), queue))
    while True:  # a job that depends on one left out is left out too
        gone = {job.job_id for job, _ in left_out}
        late = [(job, queue, set(followed(job.needs)) & gone) for job, queue in kept]
        if not any(others for *_, others in late):
            return kept, left_out
        left_out += [(job, f"waits for job {min(others)}") for job, _, others in late if others]
        kept = [(job, queue) for job, queue, others in late if not others]


def _on_nodes(config: SiteConfig, system: System, queue: int, job: Job, warnings: Counter[str]) -> Job | None:
    """Return a running job that its nodes can hold: without chunks if these do not fit; None if nothing fits."""
    if not _has_no_place(config, system, queue, job):
        return job
    plain = replace(job, needs=" ".join(each for each in job.needs.split() if not each.startswith("chunk:")))
    fits = not _has_no_place(config, system, queue, plain)
    warnings[
        f"a job runs that the nodes of its queue cannot hold: {'its cores alone count' if fits else 'it is left out'}"
    ] += 1
    return plain if fits else None


def _request(job: Job, config: SiteConfig) -> tuple[Column, list[Request], Column]:
    """Return a job's request number (-1 for none), the requests, and its cores, as arrays for one job."""
    cores = np.array([job.cores])
    number, found = requests(np.array([job.needs], dtype=object), cores, config)
    return np.maximum(number, -1), found, cores


def _has_no_place(config: SiteConfig, system: System, queue: int, job: Job) -> bool:
    return bool(config.nodes) and bool(without_place(*_request(job, config), np.array([queue]), system)[0])


def _kept_off(config: SiteConfig, queue: int, job: Job, walltime: int) -> bool:
    """Whether a job finds no time between those of shortpools."""
    of, known = np.array([walltime]), np.array([queue]) if queue < len(config.queues) else None
    if config.nodes and config.shortpools and known is not None:
        return bool(without_time(*_request(job, config), of, known, config)[0])
    return bool(kept_off(config, np.array([job.cores]), of, known)[0])


def _never_starts(config: SiteConfig, queue: int, job: Job, walltime: int) -> bool:
    names = {"user": np.array([job.user], dtype=object), "qos": _qos(job, config, queue)}
    number, found, cores = _request(job, config)
    takes = partial(taken, number, found)
    of = config.queues[queue].name
    return bool(throttled(config, of, cores, np.array([walltime]), names, takes)[0])


def _qos(job: Job, config: SiteConfig, queue: int) -> NDArray[np.object_]:
    """Return the name of the QOS of a job, empty for none, shape (1,)."""
    of = config.queues[queue].name if queue < len(config.queues) else ""
    return qos_of(config, *(np.array([each], dtype=object) for each in (job.qos, job.user, job.account, "", of)))


def _queue(job: Job, config: SiteConfig, names: list[str]) -> int:
    """Return the queue of a job: the one it names, else the first that admits it, else the first."""
    name = job.queue.removesuffix(POOL_SUFFIX) if job.queue not in names else job.queue
    if name in names:
        return names.index(name)
    cores, walltime = np.array([job.cores]), np.array([job.walltime])
    admitted = [queue.admits(cores, walltime, config.grid) for queue in config.queues]
    return max(0, int(route(np.array([-1]), admitted)[0]))


@dataclass(frozen=True)
class Gap:
    """Cores that are idle from now on, and for how long, by the walltimes of running and planned jobs."""

    cores: int
    seconds: int | None  #: None: without end


def gaps(found: Ahead, starts: NDArray[np.int64]) -> list[Gap]:
    """Return the idle windows that begin now, the widest first."""
    w, now = found.present.workload, found.now
    spans = [*zip(starts.tolist(), (starts + w.walltime).tolist(), w.cores.tolist(), strict=True)]
    spans += [(each.begin, each.end, cores_of(each, found.system)) for each in found.present.state.windows]
    changes: Counter[int] = Counter()
    for begin, end, cores in spans:
        changes[max(begin, now)] -= cores
        changes[end] += cores
    idle = found.system.cores + changes.pop(now, 0)
    least, out = idle, []
    for instant in sorted(changes):
        idle += changes[instant]
        if idle < least:
            out.append(Gap(least, instant - now))
            least = max(0, idle)
        if least <= 0:
            break
    if least > 0:
        out.append(Gap(least, None))
    return [gap for gap in out if gap.cores > 0]
