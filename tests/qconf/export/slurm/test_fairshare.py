"""Fairshare to Slurm and back: weight, half-life, kind of factor, shares of associations."""

from itertools import pairwise

import pytest

from qconf.config import QueueConfig, parse
from qconf.errors import InputError
from qconf.export import exporter
from qconf.export.slurm.fairshare import read_shares
from tests.qconf.export.sites import new_conf, slurm_files, slurm_read, written

SLURM = exporter("slurm")
SITE = """machine: {{name: m, cores: 64}}
order: "min(eligible_time, 604800) + 50000 * fair_share"
queues:
  - {{name: work, cores: [1, 64]}}
priority_calc_period: 2m
fairshare: {{decay_time: 1h, decay_factor: {factor}, fair_share: {kind}, unknown_shares: 1, charged: max}}
shares:
  - {{name: physics, shares: 60}}
  - {{name: alice, shares: 2, group: physics}}
  - {{name: bob, shares: 40}}
"""
ASSOCIATIONS = "root|||1\nphysics|root||60\nphysics||alice|2\nroot||bob|40\n"


def site(kind):
    return parse(SITE.format(kind=kind, factor=0.5 ** (1 / 168)))


@pytest.mark.parametrize("kind", ["classic", "tree"])
def test_round_trip(kind, tmp_path):
    config = site(kind)
    written(tmp_path, {**slurm_files(config), "shares": ASSOCIATIONS})
    new_conf(tmp_path, "ClusterName=m\nNodeName=n[1-8] CPUs=8\nPartitionName=former Nodes=ALL\n")
    found = SLURM().read(tmp_path / "slurm.conf.after", name="m", shares=tmp_path / "shares").config
    for key in ("order", "priority_calc_period", "fairshare", "shares"):
        assert getattr(found, key) == getattr(config, key)


AGED = "min(eligible_time, 604800) + 604800 * fair_share"


@pytest.mark.parametrize(
    ("written", "seconds", "order", "said"),
    [
        ("", 300, AGED, ""),
        ("PriorityCalcPeriod=1", 60, AGED, ""),
        ("PriorityCalcPeriod=x", 300, AGED, "PriorityCalcPeriod"),
        ("PriorityMaxAge=UNLIMITED", 300, AGED, "PriorityMaxAge=UNLIMITED"),
        (
            *("PriorityWeightTRES=CPU=1000,Mem=250", 300, f"{AGED} + 604800 * ncpus / 64"),
            "PriorityWeightTRES=Mem=250: left out of the order",
        ),
    ],
)
def test_what_is_read_of_priorities_and_what_is_said(written, seconds, order, said, tmp_path):
    weights = "PriorityType=priority/multifactor\nPriorityWeightAge=1000\nPriorityWeightFairshare=1000\n"
    text = f"ClusterName=m\nNodeName=n[1-8] CPUs=8\nPartitionName=a Nodes=ALL\n{weights}{written}\n"
    found = slurm_read(tmp_path, text)
    assert (found.config.priority_calc_period, found.config.order) == (seconds, order)
    assert said in "; ".join(found.warnings)
    assert any("PriorityCalcPeriod" in warning for warning in found.warnings) == ("=x" in written)


POINTS = "(7200 if walltime <= 3600 else 60 if walltime <= 7200 else 0) + (90 if ncpus <= 4 else 0)"


def queues_of(**places):
    """Return queues, each of longer jobs than the one before, with their priorities."""
    edges = (0, 36000, 72000, 90000)
    return tuple(
        QueueConfig(name=name, cores=(1, 64), walltime=times, priority=places[name])
        for name, times in zip(places, pairwise(edges), strict=False)
    )


@pytest.mark.parametrize(
    "order",
    [
        f"min(eligible_time, 2592000) + {POINTS} + 5000 * fair_share",
        f"min(eligible_time, 86400) + {POINTS}",
        f"min(eligible_time, 86400) + {POINTS.partition(' + ')[0]}",
        f"300 * queue_priority + min(eligible_time, 86400) + {POINTS.partition(' + ')[2]} + 7 * fair_share",
        f"10000000000 * queue_priority + min(eligible_time, 2592000) + {POINTS}",
        f"10000000000 * queue_priority + 600 * queue_priority + min(eligible_time, 2592000) + {POINTS}",
        site("tree").order,
    ],
)
def test_the_order_of_an_export_comes_back(order, tmp_path):
    by_queue = "queue_priority" in order
    queues = queues_of(day=4.0 if by_queue else 1.0, late=1.0, long=2.0 if by_queue else 1.0)
    config = site("tree").replace(order=order, queues=queues, shares=(), priority_calc_period=60)
    written(tmp_path, slurm_files(config))
    new_conf(tmp_path, "NodeName=n[1-8] CPUs=8\nPartitionName=former Nodes=ALL\n")
    found = SLURM().read(tmp_path / "slurm.conf.after")
    assert found.config.order == order
    assert [queue.priority for queue in found.config.queues] == [queue.priority for queue in queues]
    assert not [each for each in found.warnings if "job_submit" in each or "PriorityType" in each]


def test_places_against_the_tiers_are_said(tmp_path):
    order = "10000000000 * queue_priority + 600 * queue_priority + min(eligible_time, 2592000)"
    files = slurm_files(site("tree").replace(order=order, queues=queues_of(day=4.0, late=1.0), shares=()))
    other = files["partitions.conf"].replace("Tier=4", "Tier=3").replace("Tier=1", "Tier=4")
    weights = "PriorityType=priority/multifactor\nPriorityWeightAge=2592000\nPriorityMaxAge=30-0\n"
    found = slurm_read(written(tmp_path, files, "job_submit.lua"), f"NodeName=n[1-8] CPUs=8\n{weights}{other}")
    assert [queue.priority for queue in found.config.queues] == [3, 4]
    assert "600" not in found.config.order
    assert any("not in the order of their tiers" in warning for warning in found.warnings)


def test_half_life_period_and_shares():
    files = slurm_files(site("classic"))
    assert '"PriorityDecayHalfLife": "7-00:00:00"' in files["new-conf"]
    assert '"PriorityFlags": ["NO_FAIR_TREE", "MAX_TRES"]' in files["new-conf"]
    assert files["shares.sacctmgr"].splitlines() == [
        "modify account where name=physics set fairshare=60",
        "modify user where name=alice account=physics set fairshare=2",
        "modify user where name=bob account=root set fairshare=40",
    ]
    assert "python3 -I accounts load shares.sacctmgr" in files["PLAN.md"]
    said = "`priority_calc_period` simulates Slurm's way"
    assert said not in files["PLAN.md"]
    at_every_look = slurm_files(site("tree").replace(priority_calc_period=0))
    assert said in at_every_look["PLAN.md"]
    assert '"PriorityCalcPeriod": "1"' in at_every_look["new-conf"]
    without = slurm_files(site("tree").replace(order="fcfs"))  # which leaves shares alone
    assert "shares.sacctmgr" not in without
    assert "Fairshare" not in without["new-conf"]


FULL = (
    "Cluster|Account|User|Partition|Share|Priority|GrpJobs|GrpTRES|GrpSubmit|GrpWall|GrpTRESMins|MaxJobs|MaxTRES"
    "|MaxTRESPerNode|MaxSubmit|MaxWall|MaxTRESMins|QOS|Def QOS|GrpTRESRunMins"
)
END = "|||gres/gpu=16||||||||||normal||"


def shares_of(text, tmp_path, cluster="x"):
    (tmp_path / "shares").write_text(text)
    warnings = []
    found = read_shares(tmp_path / "shares", warnings, cluster)
    return [(share.name, share.shares, share.group) for share in found], warnings


@pytest.mark.parametrize("header", [f"{FULL}\n", f"{FULL}|\n", ""])
def test_all_columns_of_sacctmgr(header, tmp_path):
    end, limits = END + "|" * header.count("|\n"), ["limits of associations are not simulated"] * bool(header)
    lines = "x|root|||1", "x|root|root||1", "x|chem|||10", "x|chem|u1||parent", "x|phys|||5", "x|phys|u2||2"
    found, warnings = shares_of(header + "".join(f"{line}{end}\n" for line in lines), tmp_path)
    assert found == [("root", 1, None), ("chem", 10, None), ("u1", 1, "chem"), ("phys", 5, None), ("u2", 2, "phys")]
    assert [text.split(":")[0] for text in warnings] == [*limits, "shares", "shares of 1 users are parent"]


def test_the_tree_of_sacctmgr_and_of_sshare(tmp_path):
    tree = "Cluster|Account|User|Share\nx|root||1\nx| sci||30\nx|  chem||10\nx|   chem|u1|2\nx|  phys||5\nx| art||7\n"
    found = [("sci", 30, None), ("chem", 10, "sci"), ("u1", 2, "chem"), ("phys", 5, "sci"), ("art", 7, None)]
    assert shares_of(tree, tmp_path) == (found, [])
    sshare = "Account|User|RawShares|NormShares\nroot|||1\n sci||30|0.8\n  chem||10|0.6\n   chem|u1|2|1.0\n"
    assert shares_of(sshare, tmp_path) == (found[:3], [])
    below = "sci|root||30\nchem|sci||parent\ndyn|chem||parent\ndyn||u1|2\nchem||u2|3\n"  # the share is the parent's
    assert shares_of(below, tmp_path) == ([("sci", 30, None), ("u1", 2, "sci"), ("u2", 3, "sci")], [])


def test_a_dump_of_sacctmgr(tmp_path):
    text = (
        "# To edit this file start with a cluster line for the new cluster\n"
        "Cluster - 'x':Fairshare=1:QOS='normal'\nParent - 'root'\n"
        "User - 'root':DefaultAccount='root':AdminLevel='Administrator':Fairshare=1\n"
        "Account - 'sci':Description='all: of it':Organization='sci':Fairshare=30:GrpTRES=cpu=64\n"
        "Account - 'art':Description='art'\n"
        "Parent - 'sci'\nAccount - 'chem':Fairshare=parent\nUser - 'u1':Partition='gpu':Fairshare=7\n"
        "Parent - 'chem'\nUser - 'u2':DefaultAccount='chem':Fairshare=2:MaxJobs=4\n"
    )
    found, warnings = shares_of(text, tmp_path)
    assert found == [("root", 1, None), ("sci", 30, None), ("art", 1, None), ("u2", 2, "sci"), ("u1", 7, "sci")]
    assert warnings == ["limits of associations are not simulated: grptres of sci, maxjobs of u2"]


def test_several_partitions_accounts_and_clusters(tmp_path):
    text = (
        "User|Fairshare|Account|Par Name|Partition|Cluster\n"
        "|1|root|||y\n|9|chem|root||y\n|1|root|||X\n|10|chem|root||X\n|20|phys|root||X\n"
        "u1|5|chem||gpu|X\nu1|2|chem|||X\nu1|3|phys|||X\nu2|4|chem||cpu|X\nu2|6|chem||gpu|X\n"
    )
    found, warnings = shares_of(text, tmp_path)
    assert found == [("chem", 10, None), ("phys", 20, None), ("u1", 2, "chem"), ("u2", 4, "chem")]
    assert warnings == [
        "shares are those of the cluster X; 1 others are in the file",
        "shares of u1: in several accounts, only those in chem were taken",
        "shares of u1: for several partitions, only those in chem were taken",
        "shares of u2: for several partitions, only those in chem were taken",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a|b|c\n", r"line 1: is no line like 'physics"),
        ("Cluster|Account|User\nx|a|\n", "no column Share or Fairshare"),
    ],
)
def test_what_is_no_listing_of_shares(text, said, tmp_path):
    with pytest.raises(InputError, match=said):
        shares_of(text, tmp_path)
