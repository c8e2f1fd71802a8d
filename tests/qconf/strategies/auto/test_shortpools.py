"""The search of shortpools: only where it is asked for, the site's own only where it says so."""

from __future__ import annotations

import pytest

from qconf.config import ShortpoolConfig
from qconf.errors import InputError
from qconf.recommend.ladder import rung_of
from qconf.strategies import propose
from qconf.strategies.auto.candidates import kept_for_short
from qconf.strategies.auto.families import AutoOptions
from qconf.strategies.auto.frame import Frame, policy_of
from tests.qconf.strategies.auto.test_search import busy, first_come

OWN = (ShortpoolConfig(cores=4, walltime=3600, days=("mon",), begin="08:00", end="18:00"),)


def compared(training, **settings):
    return [step["with"] for step in propose("auto", training, settings).decisions if step["step"] == "compare"]


def tried(training, **settings):
    return [each for each in compared(training, **settings) if " cores kept " in each or "shortpool" in each]


def test_sizes_walltimes_and_hours_are_searched_where_the_site_says_so():
    here = busy(first_come())
    assert not tried(here)
    steps = propose("auto", here, {"shortpools": "search"}).decisions
    found = [step["with"] for step in steps if step["step"] == "compare"]
    assert "8 cores kept in working hours for jobs of up to 1h" in found
    never = {step["with"]: step["why"] for step in steps if step["step"] == "not tried"}
    assert "jobs would find no time between those of a shortpool" in never["16 cores kept always for jobs of up to 2h"]


def test_the_sites_own_are_kept_unless_they_may_change():
    kept = busy(first_come(shortpools=OWN, policy=()))
    assert policy_of(kept.period)[-1] == "shortpools"
    assert tried(kept, shortpools="search") == ["without shortpools"]
    free = busy(first_come(shortpools=OWN))
    found = tried(free, shortpools="search")
    assert {"shortpools of 2 cores", "shortpools of 8 cores"} < set(found)
    assert Frame(frozenset({"shortpools"})).config(free.period, "sjf").shortpools == ()
    fixed = busy(first_come(shortpools=OWN, fixed=("shortpools",)))
    assert not tried(fixed, shortpools="search")
    assert propose("auto", fixed, {"shortpools": "search"}).config.shortpools == OWN


def test_candidates_fit_the_grid_and_the_jobs():
    here = busy(first_come(policy=()))
    for what, config in kept_for_short(here, here.base):
        (pool,) = config.shortpools
        assert str(pool.cores) in what
        assert ((here.workload.walltime <= pool.walltime).mean()) >= 0.05
        assert rung_of(here.base, config) == 4


def test_a_mistake_in_the_setting_has_one_message():
    with pytest.raises(InputError, match="no such shortpools"):
        AutoOptions(shortpools="maybe").check(first_come())
