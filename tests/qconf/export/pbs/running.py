"""Runs an exported PBS script with a qstat that lists given jobs and a tool that notes its arguments."""

import json
import os
import subprocess
import sys
import time


def job(queue, cores, walltime, waited, state="Q"):
    ctime = time.strftime("%a %b %d %H:%M:%S %Y", time.localtime(time.time() - waited))
    return {
        "job_state": state,
        "queue": queue,
        "ctime": ctime,
        "Resource_List": {"ncpus": cores, "walltime": walltime},
    }


def run_script(tmp_path, text, listing, *arguments, tool, body=""):
    """Return how the script ended, and the arguments of each call of `tool`, whose last commands are `body`."""
    script = tmp_path / "script"
    script.write_text(text)
    (tmp_path / "jobs.json").write_text(json.dumps({"Jobs": listing}) if isinstance(listing, dict) else listing)
    for name, lines in (
        ("qstat", f'cat "{tmp_path}/jobs.json"'),
        (tool, f'echo "$@" >> "{tmp_path}/calls"\n{body}'),
    ):
        (tmp_path / name).write_text(f"#!/bin/sh\n{lines}\n")
        (tmp_path / name).chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "LC_ALL": "C"}
    done = subprocess.run(
        [sys.executable, script, *arguments], env=environment, capture_output=True, text=True, check=False
    )
    calls = (tmp_path / "calls").read_text().split("\n")[:-1] if (tmp_path / "calls").exists() else []
    return done, calls
