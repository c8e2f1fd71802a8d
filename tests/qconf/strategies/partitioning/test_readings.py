"""The paper to the letter: each reading is an option that can be switched alone."""

import numpy as np
import pytest

from qconf.errors import InputError
from qconf.strategies import option_fields, propose, settings
from qconf.strategies.partitioning.options import PartitionOptions, as_read
from qconf.strategies.partitioning.split_merge import Layout, mergeable, splits
from qconf.strategies.presets import PAPER, preset
from tests.qconf.small import LONG, SHORT, site, training, two
from tests.qconf.strategies.partitioning.test_strategies import bimodal, steps

FEW = {"samples": 30}
LOOSE = {**FEW, "slack": 0.95, "tau_util": 1.0}


def test_the_preset_sets_options_that_there_are_to_values_that_they_may_have():
    assert set(PAPER.settings) <= set(option_fields())
    assert preset("paper") is PAPER
    assert not preset(None).settings
    here = training(site({**SHORT, "cores": (1, 8)}, LONG), jobs=400)
    for name in ("pp", "static", "dp-nlp", "dqr", "hybrid", "exact"):
        assert propose(name, here, dict(PAPER.settings)).config.machine.cores == 64
    with pytest.raises(InputError, match="Choose among paper"):
        preset("papers")


def test_the_papers_machine_has_no_whole_nodes():
    base = two()
    assert PAPER.site(base) is base
    whole = base.replace(machine=base.machine.model_copy(update={"cores_per_node": 8, "whole_nodes": True}))
    assert (whole.grid, PAPER.site(whole).grid) == (8, 1)
    assert preset(None).site(whole) is whole


def test_the_programs_optimum_is_the_result_whatever_the_simulator_says():
    here = training(two(), jobs=400)
    plain = propose("dp-nlp", here, LOOSE)
    letter = propose("dp-nlp", here, {**LOOSE, "decide_by": "program"})
    assert not steps(letter, "decide")
    assert not steps(letter, "neighbours")
    (found,) = steps(letter, "optimum")
    assert found["by_program"]
    assert [queue.partition for queue in letter.config.queues] == found["nodes"]
    assert here.weighted_wait(letter.config) == pytest.approx(found["weighted_wait"], abs=0.1)
    assert here.weighted_wait(plain.config) <= found["weighted_wait"] + 0.1


def test_a_plain_polynomial_has_no_penalty():
    here = training(two(), jobs=400)
    found = propose("dp-nlp", here, {**LOOSE, "surrogate": "plain", "degree": 2})
    assert {step["penalty"] for step in steps(found, "surrogate")} == {0.0}
    assert {step["penalty"] for step in steps(propose("dp-nlp", here, LOOSE), "surrogate")} != {0.0}


def test_one_sided_proportions_leave_the_first_queue_more_than_its_share():
    here = training(two(), jobs=600)
    options = {**FEW, "slack": 0.0, "proportions": "one-sided", "tau_util": 1.0}
    (bounds,) = steps(propose("dp-nlp", here, options), "bounds")
    assert bounds["slack"] == 0
    nodes = np.array([queue.partition for queue in propose("dp-nlp", here, options).config.queues])
    share = here.period.core_seconds / here.period.core_seconds.sum()
    assert nodes[0] + 1 >= share[0] / share[1] * (nodes[1] - 1)
    exact = steps(propose("exact", here, options), "table")[0]
    assert exact["constrained_weighted_wait"] <= steps(propose("dp-nlp", here, options), "regret")[0]["weighted_wait"]


def test_limits_and_starvation_on_partitions_are_as_read():
    base = site({**SHORT, "max_run": 3, "starvation": 3600}, {**LONG, "max_user_cores": 30})
    here = training(base, jobs=400)
    assert as_read(here, PartitionOptions()) is here
    for name in ("pp", "dp-nlp", "dqr", "hybrid"):
        kept = propose(name, here, {**FEW, "carve": "partitions"}).config.queues
        read = propose(
            name, here, {**FEW, "carve": "partitions", "partition_limits": "dropped", "partition_starvation": "24h"}
        ).config.queues
        assert kept[0].max_run == 3 or len(kept) == 1
        assert not any(queue.limited for queue in read)
        assert {queue.starvation for queue in read} == {86400}


def test_jobs_of_exactly_half_the_limit_are_in_the_part_that_is_wanted():
    here = training(two(), jobs=500)
    edges = []
    for half_first in (True, False):
        by_time = next(splits(here, Layout.of(here.base), 1, "walltime", 1, half_first=half_first))
        edges.append(by_time.layout.config.queues[1].walltime[1])
    assert edges == [18000, 17999]


def test_only_ranges_with_a_size_in_common_are_merged_as_printed():
    here = training(site(SHORT, {**LONG, "cores": (9, 16)}))
    layout = Layout.of(here.base)
    assert list(mergeable(layout)) == [(0, 1)]
    assert list(mergeable(layout, gap=0)) == []
    kinds = [
        {step["queues"] for step in steps(propose("dqr", here, {**FEW, "merge_cores": kind}), "merge")}
        for kind in ("adjacent", "common")
    ]
    assert kinds == [{"short + long"}, set()]


def test_the_second_part_of_a_split_is_split_too_where_both_are():
    options = {**FEW, "split_on": "runtime"}
    first, both = (
        {step["queue"] for step in steps(propose("dqr", bimodal(), {**options, "split_parts": parts}), "split")}
        for parts in ("first", "both")
    )
    assert "long" in first
    assert both - first == {"long-2"}


def test_splits_are_measured_on_the_undivided_period():
    here = training(two(), jobs=500)
    first, whole = (propose("dqr", here, {**FEW, "measured_on": each}) for each in ("epochs", "period"))
    (queues,) = steps(whole, "queues")
    assert queues["weighted_wait"] == pytest.approx(here.period.simulate(whole.config).wait.mean(), abs=0.06)
    assert steps(first, "queues")[0]["weighted_wait"] == pytest.approx(here.weighted_wait(first.config), abs=0.06)


def test_every_reading_is_an_option_with_a_default_of_its_own():
    known = settings()
    fixed = {"samples", "weights", "tau_util", "degradation", "excess", "rounding", "split_on", "split_parts"}
    same = {name for name, value in PAPER.settings.items() if known[name] == value}
    assert same <= fixed | {"visit_order", "least_size"}
