"""Who may use a queue is policy: read, kept through split, merge and pool, exported, compared."""

import pytest

from qconf.config import AccessConfig, ConfigError, dump, parse
from qconf.evaluation.feasibility import fixed_violations
from qconf.export import ExportError, exporter
from qconf.export.nodes import read_nodes
from qconf.export.pbs.init import derive
from qconf.export.pbs.server import Server, lists
from qconf.strategies.partitioning.split_merge import Layout, mergeable
from tests.qconf.export.pbs.listings import listing
from tests.qconf.export.pbs.model import PbsServer
from tests.qconf.export.sites import HYBRID, pbs_files

PRINTED = listing(
    """
wide: acl_user_enable = True; acl_users = alice; acl_users += bob@*; acl_groups = staff; resources_min.ncpus = 9; \
resources_max.ncpus = 64
narrow: resources_max.ncpus = 8
route: queue_type = Route; route_destinations = wide; route_destinations += narrow
""",
    "default_queue = route",
)
OURS = AccessConfig(users=("alice", "bob@*"))


def site():
    return derive(Server.parse(PRINTED), cores=64).config


def changed(config, **changes):
    """The site's configuration with other fields of `wide`."""
    wide, narrow = config.queues
    return config.with_queues([wide.model_copy(update=changes), narrow])


def split(config, **second):
    wide, narrow = config.queues
    other = wide.model_copy(update={"name": "wide-2", "cores": (33, 64), **second})
    return config.with_queues([wide.model_copy(update={"cores": (9, 32)}), other, narrow])


def test_init_reads_it_and_the_configuration_writes_it():
    config = site()
    assert [queue.access for queue in config.queues] == [OURS, None]
    assert 'access: {users: [alice, "bob@*"]}' in dump(config)
    assert parse(dump(config)) == config
    with pytest.raises(ConfigError, match="access"):
        parse(dump(config).replace("alice", "'alice bob'"))


def test_a_split_is_exported_with_it_and_taken_back():
    files = pbs_files(split(site()), current=PRINTED)
    server = PbsServer(PRINTED)
    server.load(files["queues.qmgr"])
    for name in ("wide", "wide-2"):
        assert server.queues[name]["acl_users"] == ["alice", "bob@*"]
        assert server.queues[name]["acl_user_enable"] == "True"
    assert "acl_user_enable" not in server.queues["narrow"]
    server.load(files["rollback.qmgr"])
    assert server.printed() == PbsServer(PRINTED).printed()


def test_the_pool_is_as_restricted_as_the_queue():
    config = parse(HYBRID.replace("priority: 40,", "priority: 40, access: {groups: [staff]},"))
    server = PbsServer(pbs_files(config, nodes=read_nodes("n[1-12]"))["queues.qmgr"])
    assert server.queues["small_p"]["acl_groups"] == server.queues["small"]["acl_groups"] == ["staff"]
    assert server.queues["small_p"]["acl_group_enable"] == "True"


def test_what_would_open_or_close_a_queue_is_not_exportable():
    config = site()
    opened = split(config, access=None)
    with pytest.raises(ExportError, match="who may use the queues of wide's jobs would change"):
        pbs_files(opened, current=PRINTED)
    wider = config.queues[1].model_copy(update={"cores": (1, 16)})
    with pytest.raises(ExportError, match="would change"):
        pbs_files(config.with_queues([config.queues[0].model_copy(update={"cores": (17, 64)}), wider]), current=PRINTED)
    silent = changed(config, access=None)  # the server's own lists stay
    assert "acl_" not in pbs_files(silent, current=PRINTED)["queues.qmgr"]


@pytest.mark.parametrize(
    ("proposal", "violated"),
    [
        (split(site()), []),
        (changed(site(), priority=7.0), []),
        (split(site(), access=None), ["queues.wide.access"]),
        (split(site(), access=AccessConfig(users=("carol",))), ["queues.wide.access"]),
        (site().with_queues([site().queues[1].model_copy(update={"cores": (1, 64)})]), ["queues.wide.access"]),
        (site().with_queues([site().queues[0].model_copy(update={"cores": (1, 64)})]), ["queues.narrow.access"]),
    ],
)
def test_no_proposal_may_change_it(proposal, violated):
    assert fixed_violations(site(), proposal) == violated


def test_queues_of_different_users_are_not_merged():
    halves = tuple(queue.model_copy(update={"partition": 32}) for queue in site().queues)
    config = site().replace(mode="partitioned", queues=halves)
    assert list(mergeable(Layout.of(config))) == []
    same = config.with_queues([queue.model_copy(update={"access": OURS}) for queue in config.queues])
    assert list(mergeable(Layout.of(same))) == [(0, 1)]


@pytest.mark.parametrize(
    ("lines", "new"),
    [
        ("set queue wide from_route_only = True\nset queue narrow from_route_only = True\n", "True"),
        ("set queue wide from_route_only = True\n", None),
    ],
)
def test_queues_that_jobs_enter_by_routing_alone_stay_so(lines, new):
    server = PbsServer(PRINTED + lines)
    server.load(pbs_files(split(site()), current=PRINTED + lines)["queues.qmgr"])
    assert server.queues["wide"]["from_route_only"] == "True"
    assert server.queues["wide-2"].get("from_route_only") == new


def test_a_list_that_is_not_switched_on_restricts_nothing():
    assert lists({"acl_users": "alice"}) == {}
    assert lists({"acl_user_enable": "True"}) == {"users": []}
    assert lists({"acl_host_enable": "true", "acl_hosts": "login1, login2"}) == {"hosts": ["login1", "login2"]}


def test_slurm_says_that_it_has_no_form_for_it():
    assert any("access" in reason for reason in exporter("slurm")().check(site()))
