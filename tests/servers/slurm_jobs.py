"""Jobs of a private Slurm in a rehearsal: their state, and a check that none is lost."""

from __future__ import annotations

from collections.abc import Iterator

from tests.servers.machine import PrivateMachine

RUN = "rm -f /srv/end; chmod 755 /srv"  #: after it, jobs with `UNTIL` run until a plan waits for their end
ENDED = "touch ~/ended-$SLURM_JOB_ID"  #: last command of a job, which a killed job does not reach
UNTIL = f"--wrap 'until [ -e /srv/end ]; do sleep 0.2; done; {ENDED}'"
_FINE = {"PENDING", "RUNNING", "COMPLETING", "COMPLETED"}


def tasks(server: PrivateMachine) -> dict[str, dict[str, str]]:
    """Return the fields of ``scontrol show job`` by id of the job, or of the task of an array."""
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


def lost(server: PrivateMachine, jobs: list[str]) -> list[str]:
    """Return messages for the jobs that are gone, killed, restarted or failed; then cancel all jobs."""
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
