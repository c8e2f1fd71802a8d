"""Differences between the simulator and PBS are noted, and none where there is none."""

import pytest

from qconf.config import parse
from qconf.export import exporter

SITE = """\
machine: {{cores: 100, cores_per_node: 10, whole_nodes: {whole}}}
mode: {mode}
order: {order}
queues:
  - {{name: small, cores: [1, 20], priority: 1{small}}}
  - {{name: big, cores: [1, 100], priority: 5000{big}}}
{pool}
"""


def notes(mode="shared", order="fcfs", small="", big="", pool="", binding="qlist", whole="false"):
    config = parse(SITE.format(mode=mode, order=order, small=small, big=big, pool=pool, whole=whole))
    return " ".join(exporter("pbs")(binding=binding).notes(config))


PARTED = {"mode": "partitioned", "small": ", partition: 40", "big": ", partition: 60"}


@pytest.mark.parametrize(
    ("about", "what"),
    [
        ({"big": ", max_run_cores: 80"}, "big wider than 80 cores never start in PBS: the queue lets them in"),
        ({"big": ", max_user_cores: 70"}, "big wider than 70 cores never start"),
        (PARTED, "big wider than 60 cores never start in PBS: neither partition nor pool holds them"),
        ({**PARTED, "binding": "limits"}, "big wider than 60 cores never start"),
        ({"order": "eligible_time", "small": ", max_run_cores: 99"}, "and counts that of a limit of the whole queue"),
        ({**PARTED, "binding": "limits", "whole": "true"}, "For limits of running cores (small, big) PBS counts"),
        ({"order": "lxf", "small": ", max_user_run: 1"}, "For the order lxf the simulator counts all"),
        ({"big": ", starvation: 24h, max_user_cores: 99"}, "For starvation the simulator counts all"),
        ({"big": ", max_run_cores: 100", "whole": "true"}, "For limits of running cores (big) PBS counts the cores"),
        ({"pool": "reserve_after: 90m"}, "A job gets a reservation once it has waited 1h30m"),
        ({"small": ", max_run: 1"}, "`held_jobs: reserve` simulates PBS's way."),
        ({}, "PBS reserves particular nodes"),
        (PARTED, "`reserve: nodes` simulates PBS's way."),
        ({"order": "'1 / ncpus'", "whole": "true"}, "For ncpus in the order PBS counts the cores"),
    ],
)
def test_a_difference_is_noted(about, what):
    assert what in notes(**about)


@pytest.mark.parametrize(
    ("about", "what"),
    [
        ({"small": ", max_run_cores: 20"}, "never start"),
        ({**PARTED, "big": ", reservation: true", "small": ", partition: 100"}, "never start"),
        ({"order": "lxf"}, "counts all"),
        ({"order": "lxf", "small": ", max_run: 1"}, "counts all"),
        ({**PARTED, "binding": "limits", "order": "lxf"}, "counts all"),
        ({"order": "eligible_time", "small": ", max_user_run: 9"}, "counts that"),
        ({"pool": "reserve_after: 0"}, "qconf-reserve"),
        ({}, "can be PBS's top job"),
        ({"small": ", max_run: 1", "pool": "held_jobs: reserve"}, "can be PBS's top job"),
        ({"pool": "reserve: nodes"}, "PBS reserves particular nodes"),
        ({**PARTED, "pool": "reserve: nodes"}, "PBS reserves particular nodes"),
        ({"pool": "backfill: false"}, "PBS reserves particular nodes"),
        ({**PARTED, "pool": "reserve_after: 90m"}, "qconf-reserve"),
        ({**PARTED, "order": "lxf", "whole": "true"}, "counts"),
        ({"order": "'eligible_time / walltime'", "small": ", max_run: 1", "big": ", starvation: 1h"}, "counts all"),
        ({"small": ", max_run: 1"}, "counts all"),
        ({"big": ", max_run_cores: 100"}, "PBS counts"),
        ({"order": "'1 / walltime'", "whole": "true"}, "PBS counts"),
    ],
)
def test_what_is_no_difference_is_not_noted(about, what):
    assert what not in notes(**about)
