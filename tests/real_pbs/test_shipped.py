"""What a real server does as it is shipped, and what it prints: nothing is reserved, text is what JSON is."""

import json
import time

import pytest

from qconf.snapshot import read_snapshot
from tests.servers.pbs_server import PrivateServer

NODES = {f"n{number:02}": 1 for number in range(1, 17)}


def submit(server, cores, walltime, seconds):
    job = server.qsub(f"-l select={cores}:ncpus=1 -l walltime={walltime}", seconds=seconds)
    time.sleep(4)
    return job


def state(server, job):
    return server.run(f"qstat -f {job} | sed -n 's/ *job_state = //p'").stdout.strip()


@pytest.mark.parametrize("strict", [False, True])
def test_without_strict_ordering_nothing_is_reserved(tmp_path, strict):
    """Whatever backfill_depth is: a long narrow job passes a wide one that waits, and keeps it waiting."""
    with PrivateServer(NODES) as server:
        shipped = server.run("grep '^strict_ordering' /srv/pbs/sched_priv/sched_config").stdout
        assert shipped.split() == ["strict_ordering:", "false", "ALL"]
        if strict:
            server.run("sed -i 's/^strict_ordering.*/strict_ordering: True ALL/' /srv/pbs/sched_priv/sched_config")
            server.run("kill -HUP $(cat /srv/pbs/sched_priv/sched.lock)")
        server.run("qmgr -c 'set server backfill_depth = 5'; qmgr -c 'set server scheduling = True'")
        submit(server, 15, 60, 60)
        wide, narrow = submit(server, 16, 60, 5), submit(server, 1, 3600, 60)
        assert (state(server, wide), state(server, narrow)) == ("Q", "Q" if strict else "R")
        found = {}
        for kind, flag in (("text", ""), ("json", "-F json")):
            folder = tmp_path / kind
            folder.mkdir()
            (folder / "jobs").write_text(server.run(f"qstat -t -f {flag}").stdout)
            (folder / "nodes").write_text(server.run(f"pbsnodes -a -v {flag}").stdout)
            found[kind] = folder
        (found["text"] / "taken_at").write_text(str(json.loads((found["json"] / "jobs").read_text())["timestamp"]))
        text, document = (read_snapshot(folder) for folder in found.values())
        assert (text, len(text.jobs), text.cores) == (document, 3, 16)
