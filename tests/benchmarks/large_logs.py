"""Time and memory of `qconf import` and `qconf inspect` on a log of a million jobs.

    python -m tests.benchmarks.large_logs                      # sacct, a million jobs
    python -m tests.benchmarks.large_logs --kind pbs --jobs 300000 --steps 2
    python -m tests.benchmarks.large_logs --write log.txt      # the log alone

Each command runs in a separate process; memory is its peak.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

FIRST = 1767225600  # 2026-01-01
USERS, QUEUES = 400, ("short", "long", "gpu", "bigmem", "debug")
SACCT = (
    "JobIDRaw|JobID|User|Account|Partition|State|Submit|Eligible|Start|End|ElapsedRaw|Suspended|TimelimitRaw|Timelimit"
    "|AllocCPUS|ReqCPUS|NNodes|AllocTRES|Constraints|Reservation|QOS|AdminComment"
)


def clock(seconds: int) -> str:
    return f"{seconds // 86400}-{seconds // 3600 % 24:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"


def jobs(count: int, seed: int = 1) -> Iterator[tuple[int, ...]]:
    """Yield number, submit, start, end, limit, cores, user and queue of random jobs, in 250 days for most counts."""
    dice = np.random.default_rng(seed)
    for first in range(0, count, 10_000):
        size = min(10_000, count - first)
        submit = FIRST + (np.arange(first, first + size) * (250 * 86400 // count if count < 21_600_000 else 1))
        start = submit + dice.integers(0, 7200, size)
        limit = dice.integers(1, 96, size) * 1800
        end = start + np.maximum(1, (limit * dice.random(size)).astype(np.int64))
        cores = 2 ** dice.integers(0, 8, size)
        who, where = dice.integers(0, USERS, size), dice.integers(0, len(QUEUES), size)
        columns = (each.tolist() for each in (submit, start, end, limit, cores, who, where))
        yield from zip(range(first + 1, first + size + 1), *columns, strict=True)


def sacct(count: int, steps: int = 0, local: bool = False) -> Iterator[str]:
    stamp = (lambda second: datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S")) if local else str
    yield SACCT
    for job, submit, start, end, limit, cores, user, queue in jobs(count):
        times = "|".join(map(stamp, (submit, submit, start, end)))
        ran, nodes = end - start, -(-cores // 32)
        tres = f"billing={cores},cpu={cores},gres/gpu={cores // 32},mem={cores * 4}G,node={nodes}"
        yield (
            f"{job}|{job}|user{user}|group{user % 40}|{QUEUES[queue]}|COMPLETED|{times}|{ran}|00:00:00|{limit // 60}"
            f"|{clock(limit)}|{cores}|{cores}|{nodes}|{tres}|||normal|"
        )
        for step in ("batch", "extern", "0", "1")[:steps]:
            yield (
                f"{job}.{step}|{job}.{step}||group{user % 40}||COMPLETED|{times}|{ran}|00:00:00|||{cores}|{cores}"
                f"|{nodes}|cpu={cores},mem={cores * 4}G,node={nodes}||||"
            )


def csv(count: int, steps: int = 0, local: bool = False) -> Iterator[str]:
    del steps
    stamp = (lambda second: datetime.fromtimestamp(second, UTC).isoformat()) if local else str
    yield "job_id,submit,runtime,walltime,cores,queue,user,start,end,state,group"
    for job, submit, start, end, limit, cores, user, queue in jobs(count):
        yield (
            f"{job},{stamp(submit)},{end - start},{limit},{cores},{QUEUES[queue]},user{user},{stamp(start)}"
            f",{stamp(end)},completed,group{user % 40}"
        )


def swf(count: int, steps: int = 0, local: bool = False) -> Iterator[str]:
    del steps, local
    yield f"; MaxProcs: 4096\n; UnixStartTime: {FIRST}"
    for job, submit, start, end, limit, cores, user, queue in jobs(count):
        ran = f"{submit - FIRST} {start - submit} {end - start} {cores}"
        yield f"{job} {ran} -1 -1 {cores} {limit} -1 1 {user} 1 -1 {queue} -1 -1 -1"


def pbs(count: int, steps: int = 0, local: bool = False) -> Iterator[str]:
    del steps, local

    def stamp(second: int) -> str:
        return datetime.fromtimestamp(second, UTC).strftime("%m/%d/%Y %H:%M:%S")

    for job, submit, start, end, limit, cores, user, queue in jobs(count):
        wanted = (
            f"Resource_List.ncpus={cores} Resource_List.nodect=1 Resource_List.select=1:ncpus={cores}:mem={cores * 4}gb"
        )
        wanted += f" Resource_List.walltime={limit // 3600:02d}:{limit // 60 % 60:02d}:00"
        who = f"user=user{user} group=group{user % 40} project=_pbs_project_default jobname=a queue={QUEUES[queue]}"
        who += f" ctime={submit} qtime={submit} etime={submit}"
        yield f"{stamp(submit)};Q;{job}.srv;{who} {wanted}"
        ran = f"start={start} exec_host=n1/0*{cores} {wanted}"
        yield f"{stamp(start)};S;{job}.srv;{who} {ran} resource_assigned.ncpus={cores}"
        used = (
            f"Exit_status=0 resources_used.ncpus={cores} resources_used.walltime={clock(end - start)[2:]} run_count=1"
        )
        yield f"{stamp(end)};E;{job}.srv;{who} {ran} session=1 end={end} {used}"


KINDS = {"sacct": sacct, "csv": csv, "swf": swf, "pbs": pbs}


def write(path: Path, kind: str, count: int, steps: int = 0, local: bool = False) -> None:
    with path.open("w") as stream:
        stream.writelines(line + "\n" for line in KINDS[kind](count, steps, local))


def measure(*command: str) -> tuple[float, float, int]:
    """Return seconds, peak memory in MB and exit code of a command."""
    watch = "import resource, subprocess, sys; code = subprocess.call(sys.argv[1:], stdout=subprocess.DEVNULL); "
    watch += "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, code)"
    began = time.perf_counter()
    run = subprocess.run([sys.executable, "-c", watch, *command], capture_output=True, text=True, check=True)
    kib, code = map(int, run.stdout.split())
    return time.perf_counter() - began, kib / 1000, code


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kind", choices=KINDS, default="sacct")
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("--steps", type=int, default=0, help="rows of steps for each job of sacct")
    parser.add_argument("--local", action="store_true", help="write local times in place of Unix seconds")
    parser.add_argument("--qconf", nargs="*", default=[str(Path(sys.executable).with_name("qconf"))])
    parser.add_argument("--write", type=Path, help="write the log, and measure nothing")
    given = parser.parse_args()
    if given.write:
        write(given.write, given.kind, given.jobs, given.steps, given.local)
        return
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        write(log, given.kind, given.jobs, given.steps, given.local)
        print(f"{given.kind}: {given.jobs} jobs, {log.stat().st_size / 1e6:.0f} MB")
        for qconf in given.qconf:
            for command in (("import", str(log), "-o", str(Path(folder) / "out" / "h.csv")), ("inspect", str(log))):
                seconds, megabytes, code = measure(qconf, *command)
                print(f"{qconf} {command[0]}: {seconds:.1f} s, {megabytes:.0f} MB" + f", exit code {code}" * bool(code))


if __name__ == "__main__":
    main()
