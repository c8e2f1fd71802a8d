"""What is done on a private Slurm in a rehearsal: blocks run, what an undo brings back, and jobs that are lost."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field

from qconf.export.slurm.private_server import PrivateSlurm

SAVED = {
    "partitions": "scontrol --oneliner show partition",
    "configuration": "scontrol show config | grep -E '^(Sched|Priority|Preempt|JobSubmit|AccountingStorageEnf)'",
    "QOS": "sacctmgr --noheader --parsable2 show qos "
    "format=Name,GrpJobs,GrpTRES,MaxJobsPU,MaxTRESPU,Priority,Flags 2> /dev/null",
    "associations": "sacctmgr --noheader --parsable2 show associations "
    "format=Account,User,GrpJobs,GrpTRES,GrpTRESRunMins,GrpSubmit,QOS,DefaultQOS 2> /dev/null",
    "/etc/slurm": "cd /etc/slurm && sha256sum *",
}
RUN = "rm -f /srv/end; chmod 755 /srv"  #: jobs that `UNTIL` then run until a plan waits for their end
ENDED = "touch ~/ended-$SLURM_JOB_ID"  #: what a job does last: one that was killed has not
UNTIL = f"--wrap 'until [ -e /srv/end ]; do sleep 0.2; done; {ENDED}'"
LONGEST_BLOCK = 300  #: seconds that a block of a plan may take here, where no job runs for long
_FINE = {"PENDING", "RUNNING", "COMPLETING", "COMPLETED"}


@dataclass
class Rehearsal:
    """What was done, and what went otherwise than the plan says."""

    version: str
    blocks: int = 0  #: blocks of the plan, each run in a shell of its own
    examples: int = 0  #: jobs that landed in the queue that the configuration has for them
    jobs: int = 0  #: that ran or waited when the plan or its undo began
    moved: int = 0  #: of those, in another partition when it was loaded
    rolled_back: bool = False
    refused: tuple[str, ...] = ()
    problems: list[str] = field(default_factory=list)

    @property
    def summary(self) -> str:
        """One line for a person."""
        return (
            f"Slurm {self.version}: {self.blocks} blocks of the plan, {self.examples} examples in their queue, "
            f"{self.jobs} jobs ran or waited, {self.moved} of them were moved, "
            + ("rolled back" if self.rolled_back else "not rolled back")
        )


def saved(server: PrivateSlurm) -> dict[str, str]:
    """Return what an undo has to bring back."""
    return {name: server.run(command).stdout for name, command in SAVED.items()}


def tasks(server: PrivateSlurm) -> dict[str, dict[str, str]]:
    """Return what Slurm holds of each job, or of each task of an array."""
    found = {}
    for line in server.run("SLURM_BITSTR_LEN=0 scontrol --oneliner show job").stdout.splitlines():
        values = dict(word.split("=", 1) for word in line.split() if "=" in word)
        if "JobId" not in values:
            continue
        for task in _tasks(values.get("ArrayTaskId", "")):
            found[f"{values['ArrayJobId']}_{task}"] = values
        if "ArrayTaskId" not in values:
            found[values["JobId"]] = values
    return found


def _tasks(text: str) -> Iterator[int]:
    for each in filter(None, text.partition("%")[0].split(",")):
        first, _, last = each.partition("-")
        yield from range(int(first), int(last or first) + 1)


def lost(server: PrivateSlurm, jobs: list[str]) -> list[str]:
    """Name the jobs that are gone, or in a state that only a loss leads to; all are then taken away."""
    held = tasks(server)
    found = [f"job {job} is lost" for job in jobs if job not in held]
    ended = {job: held[job] for job in jobs if job in held and held[job]["JobState"] not in _FINE}
    done = server.run("ls /srv/home/*").stdout.split()
    for job in (job for job in jobs if job in held and held[job]["JobState"].startswith("COMPLET")):
        found += [] if f"ended-{held[job]['JobId']}" in done else [f"job {job} was killed"]
    anew = (job for job in jobs if job in held and held[job].get("Restarts", "0") != "0")
    found += [f"job {job} was killed and is begun anew" for job in anew]
    found += [f"job {job} ended as {each['JobState']} ({each['Partition']})" for job, each in ended.items()]
    server.run("squeue --all --noheader --format=%A | sort -u | xargs -r scancel")
    server.wait("! squeue --all --noheader | grep .", "jobs do not end")
    return found


def run_blocks(steps: list[tuple[str, str]], server: PrivateSlurm, result: Rehearsal) -> None:
    """Run blocks of a plan, each in a shell of its own that takes no file's mode for granted; note what fails."""
    for title, block in steps:
        if re.search("until jobs=|for name in shortpool_", block):  # some run on until the plan waits for them
            server.run("(sleep 1; touch /srv/end) > /dev/null 2>&1 &")
        quick = re.sub(r"sleep \d", "sleep 0.2", block)  # between two looks
        try:
            done = server.run(f"umask 077\n{quick}", timeout=LONGEST_BLOCK)
        except subprocess.TimeoutExpired:
            result.problems.append(f"{title}: not done after {LONGEST_BLOCK} s")
            return
        result.blocks += 1
        if done.returncode:
            result.problems.append(f"{title}: exit {done.returncode}: {done.stdout.strip()[-500:]}")
