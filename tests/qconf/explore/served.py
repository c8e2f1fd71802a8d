"""``qconf explore`` in a process of its own, a log for it, and requests as a page sends them."""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd

ROOT = Path(__file__).parents[3]
QUEUES = ("short", "medium", "wide")
SITE = """machine: {name: toy, cores: 64}
order: fcfs
queues:
  - {name: short, cores: [1, 16], walltime: [0, 2h], priority: 10}
  - {name: medium, cores: [1, 32], walltime: [2h, 12h], priority: 20, max_run: 2}
  - {name: wide, cores: [17, 64], walltime: [0, 12h], priority: 30}
"""
#: On a slow machine, more than a second may pass between two requests that follow each other.
SLOWLY_TYPED = "import qconf.explore.server as server, qconf.cli as cli; server.TYPED = 60.0; cli.main()"


def write_log(folder, jobs=600, days=12, users=("ann", "bob", "eve"), seed=0):
    """Write log.csv of the queues of `SITE`, with ids j0, j1, ..."""
    rng = np.random.default_rng(seed)
    queue = rng.choice(3, jobs, p=[0.6, 0.3, 0.1])
    low, high = (np.array(each)[queue] for each in ((1, 1, 17), (16, 32, 64)))
    above, most = (np.array(each)[queue] for each in ((0, 7200, 0), (7200, 43200, 43200)))
    walltime = above + 1 + (rng.random(jobs) * (most - above - 1)).astype(int)
    pd.DataFrame(
        {
            "job_id": [f"j{i}" for i in range(jobs)],
            "submit": 1454284800 + np.sort(rng.integers(0, days * 86400, jobs)),
            "runtime": np.maximum(1, (walltime * rng.random(jobs)).astype(int)),
            "walltime": walltime,
            "cores": (low + rng.random(jobs) * (high - low + 1)).astype(int).clip(low, high),
            "queue": np.array(QUEUES)[queue],
            "user": np.array(users)[rng.integers(0, len(users), jobs)],
        }
    ).to_csv(folder / "log.csv", index=False)
    return folder / "log.csv"


class Served:
    """A server; `events` reads what it sends to pages."""

    def __init__(self, *arguments, folder):
        self.arguments, self.folder = arguments, folder
        self.begin()

    def begin(self):
        command = [sys.executable, "-c", SLOWLY_TYPED, "explore", *map(str, self.arguments), "--no-browser"]
        about = {"cwd": self.folder, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        self.process = subprocess.Popen(command, env=os.environ | {"PYTHONPATH": str(ROOT)}, **about)
        self.printed = ""
        for line in self.process.stdout:
            self.printed += line
            if found := re.search(r"(http://127\.0\.0\.1:(\d+)/)\?token=(\S+)", line):
                self.address, self.root, self.port, self.token = found[0], found[1], int(found[2]), found[3]
                return
        raise RuntimeError(self.printed)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def end(self, how=signal.SIGINT):
        """Return the exit code and what it said last."""
        self.process.send_signal(how)
        last, _ = self.process.communicate(timeout=30)
        return self.process.returncode, last

    @property
    def cookie(self):
        return {"Cookie": f"qconf-{self.port}={self.token}"}

    def ask(self, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(method, path, body, self.cookie if headers is None else headers)
        found = connection.getresponse()
        return found.status, found.headers, found.read()

    def get(self, path, **headers):
        return self.ask("GET", path, headers=self.cookie | headers)

    def post(self, path, **given):
        headers = self.cookie | {"Content-Type": "application/json"}
        status, _, body = self.ask("POST", f"/api/{path}", json.dumps(given), headers)
        return status, json.loads(body)

    def events(self, until, seconds=60):
        """Return messages by kind, the last of each, when `until` is content with them."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=seconds)
        connection.request("GET", "/api/events", headers=self.cookie)
        found, end = {}, time.monotonic() + seconds
        for line in connection.getresponse():
            if line.startswith(b"data: "):
                message = json.loads(line[6:])
                found[message["kind"]] = message
                if until(found):
                    connection.close()
                    return found
            assert time.monotonic() < end, found.keys()
        raise AssertionError(f"the server ended: {found.keys()}")

    def result(self):
        """Return the messages about the present state once all is known of it."""

        def known(found):
            state = found.get("state", {}).get("serial")
            last = found.get("failed") or found.get("ranges") or {}
            unchanged = "numbers" in found and not found["state"]["document"]["changes"]
            done = last.get("why") or last.get("failed") or last.get("resamples", 0) == last.get("of")
            return unchanged or (last.get("serial") == state and done)

        return self.events(known)
