"""Runs an exported PBS script with a qstat that lists given jobs and a tool that notes its arguments; and hooks."""

import json
import os
import subprocess
import sys
import time
from types import SimpleNamespace


def job(queue, cores, walltime, waited, state="Q"):
    ctime = time.strftime("%a %b %d %H:%M:%S %Y", time.gmtime(time.time() - waited))
    return {
        "job_state": state,
        "queue": queue,
        "ctime": ctime,
        "Resource_List": {"ncpus": cores, "walltime": walltime},
    }


#: Of the jobs in the file: ids by state and queue, as qselect prints them; and what qstat knows of a queue's or of one.
QSELECT = """
import json, sys
_, _, states, _, queue = sys.argv
jobs = json.load(open("FOLDER/jobs.json"))
here = lambda job: isinstance(job, str) or (job["queue"] == queue and job["job_state"] in states)
print(*[name for name, job in jobs.items() if name != "seconds" and here(job)], sep="\\n")
"""
QSTAT = """
import json, os, re, sys, time
jobs = json.load(open("FOLDER/jobs.json"))
for call in open("FOLDER/calls").read().splitlines() if os.path.exists("FOLDER/calls") else ():
    queue, _, name = call.partition(" ")
    if name in jobs:
        text = json.dumps(jobs[name]) if isinstance(jobs[name], dict) else jobs[name]
        text = re.sub('"queue": "[a-z_]+"', json.dumps({"queue": queue})[1:-1], text)
        jobs[name] = json.loads(text) if isinstance(jobs[name], dict) else text
time.sleep(jobs.pop("seconds", 0))
of = sys.argv[4]
queue = lambda job: "small" if isinstance(job, str) else job["queue"]
here = lambda name, job: of in (name, queue(job))
text = lambda job: job if isinstance(job, str) else json.dumps(job)
texts = [json.dumps(name) + ":" + text(job) for name, job in jobs.items() if here(name, job)]
sys.stdout.buffer.write(("{\\"Jobs\\": {" + ",".join(texts) + "}}").encode("latin-1"))
"""


def run_script(tmp_path, text, listing, *arguments, tool, body=""):
    """Return how the script ended, and the arguments of each call of `tool`, whose last commands are `body`.

    A job of the listing that is a text stands in what qstat prints as it is.
    """
    script = tmp_path / "script"
    script.write_text(text)
    (tmp_path / "jobs.json").write_text(json.dumps(listing))
    shell = f'#!/bin/sh\necho "$@" >> "{tmp_path}/calls"\n{body}\n'
    python = {"qselect": QSELECT, "qstat": QSTAT}
    programs = {name: f"#!{sys.executable}{lines.replace('FOLDER', str(tmp_path))}" for name, lines in python.items()}
    for name, program in {**programs, tool: shell}.items():
        (tmp_path / name).write_text(program)
        (tmp_path / name).chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "LC_ALL": "C", "TZ": "UTC"}
    done = subprocess.run(
        [sys.executable, script, *arguments], env=environment, capture_output=True, text=True, check=False
    )
    calls = (tmp_path / "calls").read_text().split("\n")[:-1] if (tmp_path / "calls").exists() else []
    return done, calls


def run_hook(monkeypatch, text, job, before=None, *, user="ann", **pbs):
    """Run an exported hook on a job, at its submission or where it was `before` at a change; return the event.

    `said` of it has what it was refused for, and what the hook wrote into the log; `accepted`, how often it was let go.
    """
    event = SimpleNamespace(job=job, job_o=before, requestor=user, type=1 if before is None else 2, said=[], accepted=0)

    def accept():
        event.accepted += 1

    event.accept, event.reject = accept, event.said.append
    module = SimpleNamespace(event=lambda: event, QUEUEJOB=1, MODIFYJOB=2, LOG_WARNING=4, select=str, **pbs)
    module.logmsg = lambda _, line: event.said.append(line)
    monkeypatch.setitem(sys.modules, "pbs", module)
    exec(text, {})
    return event


def asking(names, wanted, **attributes):
    """Return a job with some of the resources of these names."""
    return SimpleNamespace(Resource_List=dict.fromkeys(names) | (wanted or {}), **attributes)
