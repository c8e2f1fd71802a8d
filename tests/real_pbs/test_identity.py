"""A real server is what init reads of it: exported unedited nothing is loaded, and one edit changes that alone."""

import pytest

from qconf.config import dump, parse
from qconf.export.pbs import PbsExporter
from qconf.export.pbs.init import derive
from qconf.export.pbs.server import Scheduler, Server
from tests.qconf.export.pbs.listings import Site
from tests.qconf.export.pbs.test_identity import differences, edited, is_nothing
from tests.real_pbs.test_exports import ACCESS, SITE, read_nodes_of
from tests.servers.pbs import PRINTED, held, install, resemble
from tests.servers.rehearsal import Rehearsal, run_blocks

HOOK = "create hook sizes; create hook away; set hook away enabled = False; set hook sizes event = queuejob"
SERVERS = {
    "site": (SITE, "max_user_run", 0),
    "access": (ACCESS, "walltime", 1),
    **{
        f"random {seed}": (Site(seed).printed(), edit, 0)
        for seed, edit in ((19, "max_run"), (31, "priority"), (9, "throttles"))
    },
    "added": (SITE, "new", 0),
    "order": (ACCESS, "order", 0),
}


@pytest.mark.parametrize("name", SERVERS)
def test_a_server_unedited_and_with_one_edit(name, fresh, tmp_path):
    printed, edit, number = SERVERS[name]
    resemble(fresh, Server.parse(fresh.run(PRINTED).stdout + printed))  # what it refuses is not there
    for statement in HOOK.split("; "):
        fresh.run(f"qmgr -c '{statement}'")
    try:
        (tmp_path / "listing").write_text(fresh.run(f"{PRINTED}; qmgr -c 'print hook'").stdout)
        (tmp_path / "sched_config").write_text(fresh.run("cat /srv/pbs/sched_priv/sched_config").stdout)
        server = Server.read(tmp_path / "listing")
        options = {"nodes": read_nodes_of(fresh, tmp_path), "scheduler": Scheduler.read(tmp_path / "sched_config")}
        derived = derive(server, **options)
        assert [each for each in derived.warnings if "sizes (queuejob)" in each and "away" not in each]
        exporter = PbsExporter(current=server, **options)
        assert is_nothing(exporter.export(parse(dump(derived.config))))
        wanted, allowed = edited(derived.config, edit, number)
        folder = tmp_path / "export"
        folder.mkdir()
        before, result = fresh.run(PRINTED).stdout, Rehearsal("")
        plan = install(exporter.export(wanted).files, fresh, folder)
        run_blocks(plan.steps, fresh, result)
        after = held(fresh)
        changed = differences(server, after)
        new = {of for of, _ in changed if of not in server.queues and of in after.queues}
        routes = {(route, "route_destinations") for route in server.of_type("route")} if new else set()
        changed = {each for each in changed if each[0] not in new}
        assert changed
        assert changed <= allowed | routes
        run_blocks(plan.undo, fresh, result)
        assert result.problems == []
        assert fresh.run(PRINTED).stdout == before
    finally:
        fresh.run("qmgr -c 'delete hook sizes'; qmgr -c 'delete hook away'; rm -rf steps.* jobs.* *.before*")
