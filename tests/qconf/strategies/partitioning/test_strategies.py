"""pp, static, dp-nlp, exact, dqr and hybrid on small periods: order of their waits, logs, and unusual input."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import OptimizeResult

from parsim import Workload
from qconf.config import PoolConfig, lost_job
from qconf.errors import InputError
from qconf.evaluation.feasibility import fixed_violations
from qconf.evaluation.period import NotApplicableError, Period, TrainingSet
from qconf.export.pbs import PbsExporter
from qconf.strategies import baselines, names, propose
from qconf.strategies.partitioning.bounds import lower_bounds
from qconf.strategies.partitioning.hybrid import FEWEST_CHUNKS, MOST_CHUNKS, default_chunk, threshold
from qconf.strategies.partitioning.sizes import partition_space
from tests.qconf.small import DAY, LONG, SHORT, WIDE, site, three, training, two

FEW = {"samples": 30}
SLACK = {"slack": 0.95, "tau_util": 1.0}  # constraints that many divisions keep
LOOSE = {"samples": 30, **SLACK}
TUNED = ("pp", "static", "dp-nlp", "exact", "dqr", "hybrid")
CASES = {
    "plain": lambda: training(two(), jobs=300),
    "reserved": lambda: training(three(), jobs=200),
    "shared base": lambda: training(three(mode="shared"), jobs=200),
    "another order": lambda: training(two(order="lxf"), jobs=200),
    "limits": lambda: training(site({**SHORT, "max_run": 2}, {**LONG, "max_user_run": 2}), jobs=200),
    "overload": lambda: training(two(), jobs=800, span=DAY),
    "one job": lambda: training(two(), jobs=1),
    "one second": lambda: training(two(), jobs=40, span=0),
    "two epochs": lambda: training(two(), jobs=2),
    "one queue": lambda: training(site({**LONG, "partition": 64}), jobs=200, span=3 * DAY),
    "a queue without jobs": lambda: training(two(), jobs=200, only=[1]),
    "jobs in the reserved queue alone": lambda: training(three(), jobs=60, only=[2]),
    "a partition narrower than its jobs": lambda: training(
        site({**SHORT, "partition": 60}, {**LONG, "partition": 4}, WIDE), jobs=60, seed=3, span=3 * DAY
    ),
    "no backfilling": lambda: training(two(backfill=False), jobs=200),
    "hybrid base": lambda: training(
        site(SHORT, {**LONG, "partition": 24}, mode="hybrid", pool={"cores": 16, "threshold": 0.25}), jobs=200
    ),
    "whole nodes": lambda: training(
        three().replace(machine={"cores": 64, "cores_per_node": 8, "whole_nodes": True}), jobs=200
    ),
}


def machine_of(config):
    return sum(queue.partition for queue in config.queues) + (config.pool.cores if config.pool else 0)


@pytest.mark.parametrize("case", CASES)
def test_every_strategy_has_a_valid_proposal_for_every_training_set(case):
    """Sizes sum to the machine, every job is routed, and no wait is longer than with the present partitions."""
    here = CASES[case]()
    waits = {}
    for name in TUNED:
        proposal = propose(name, here, FEW)
        config = proposal.config
        assert not proposal.not_exportable
        assert machine_of(config) == 64
        assert config == here.base or all(queue.partition % config.grid == 0 for queue in config.queues)
        assert lost_job(here.base.queues, config.queues) is None
        assert len(proposal.simulate(here.period)) == len(here)
        assert proposal.decisions
        waits[name] = here.weighted_wait(config)
    assert waits["static"] == waits["pp"]
    assert waits["dp-nlp"] <= waits["pp"]
    assert waits["dqr"] <= waits["dp-nlp"]
    assert waits["exact"] <= waits["dp-nlp"] + 1e-6
    if here.base.mode == "partitioned":
        current = here.weighted_wait(here.base)
        assert all(waits[name] <= current + 1e-9 for name in ("dp-nlp", "dqr", "hybrid"))


@pytest.mark.parametrize("name", ["dp-nlp", "dqr", "hybrid"])
@pytest.mark.parametrize("case", ["plain", "reserved"])
def test_the_number_of_workers_does_not_matter(name, case):
    one, two_ = (propose(name, CASES[case](), {"samples": 30, "workers": workers}) for workers in (1, 2))
    assert one == two_


@pytest.mark.parametrize("name", TUNED)
def test_an_empty_training_set_or_one_of_too_wide_jobs_is_refused(name):
    with pytest.raises(NotApplicableError, match="no job to train on"):
        propose(name, training(two(), jobs=0), FEW)
    base = site({**SHORT, "cores": (33, 40)}, {**LONG, "cores": (33, 40)})
    with pytest.raises(NotApplicableError, match="no partitions can hold them"):
        propose(name, training(base, jobs=50), FEW)


def steps(proposal, step):
    return [each for each in proposal.decisions if each["step"] == step]


@pytest.mark.parametrize("name", ["pp", "dp-nlp", "dqr", "hybrid", "exact"])
@pytest.mark.parametrize(
    ("base", "about", "note"),
    [
        (two(), {"jobs": 40, "only": [1]}, "no job in short: the least size is that of the narrowest job admitted"),
        (site({**LONG, "partition": 64}), {"jobs": 2}, "one queue owns a partition: it gets the whole machine"),
    ],
)
def test_every_strategy_has_data_warnings_for_a_short_history(name, base, about, note):
    notes = propose(name, training(base, span=0, **about), FEW).decisions[0]["notes"]
    assert {"only 1 of 3 epochs have jobs: the others do not count", note} <= {*notes}


@pytest.mark.parametrize("name", ["dp-nlp", "dqr", "hybrid"])
def test_bounds_that_do_not_fit_the_machine_are_moved_with_a_note(name):
    here = training(two(), jobs=2000, span=DAY)
    proposal = propose(name, here, {"samples": 30, "tau_util": 0.01})
    (bounds,) = steps(proposal, "bounds")
    assert sum(bounds["wanted"]) > 64 >= sum(bounds["low"])
    assert "moved" in bounds["notes"][0]
    assert here.weighted_wait(proposal.config) <= here.weighted_wait(here.base)


def test_present_partitions_that_no_division_improves_are_kept_with_a_note():
    base = site({**SHORT, "cores": (8, 8), "partition": 63}, {**LONG, "partition": 1}, WIDE)
    kept = []
    for seed in range(8):
        here = training(base, jobs=40, seed=seed, span=2 * DAY)
        proposal = propose("dp-nlp", here, FEW)
        current = here.weighted_wait(here.base)
        assert here.weighted_wait(proposal.config) <= current + 1e-9
        kept.append(bool(steps(proposal, "keep")))
        assert kept[-1] == (proposal.config == base)
    assert any(kept)


@pytest.mark.parametrize("jobs", [0, 1])
@pytest.mark.parametrize("name", ["current", "fcfs-easy", "lxf-easy", "shared", "mqb"])
def test_strategies_that_are_not_trained_need_no_job(name, jobs):
    here = training(two(), jobs=jobs)
    assert len(propose(name, here, FEW).simulate(here.period)) == jobs


@pytest.mark.parametrize("value", [np.nan, -1e9])
def test_dp_nlp_survives_bad_surrogates(monkeypatch, value):
    class BadSurrogate:
        degree, penalty, r2, rmse, crossed = 1, 1.0, -9.0, 0.0, np.zeros(3)

        def __call__(self, fractions):
            return value

        def gradient(self, fractions):
            return np.full(fractions.size, value)

    monkeypatch.setattr("qconf.strategies.partitioning.program.fit", lambda *_, **__: BadSurrogate())
    here = training(two(), jobs=300)
    proposal = propose("dp-nlp", here, LOOSE)
    assert here.weighted_wait(proposal.config) <= here.weighted_wait(here.base)
    if np.isnan(value):
        assert steps(proposal, "minimum")[0]["note"] == "no search ended well"
    assert steps(proposal, "surrogate")[0]["note"] == "a bad fit"


@pytest.mark.parametrize("end", [np.nan, np.inf, -1.0])
def test_dp_nlp_survives_a_search_without_a_valid_end(monkeypatch, end):
    ended = OptimizeResult(x=np.full(2, end), fun=end, success=False, status=9)
    monkeypatch.setattr("scipy.optimize.minimize", lambda *_, **__: ended)
    here = training(two(), jobs=300)
    proposal = propose("dp-nlp", here, LOOSE)
    assert here.weighted_wait(proposal.config) <= here.weighted_wait(here.base)
    (minimum,) = steps(proposal, "minimum")
    assert minimum["converged"] == 0
    assert (minimum["note"] == "no search ended well") is not np.isfinite(end)


def four(jobs=500, seed=0):
    """Four queues on a thousand cores, on which more divisions are feasible than are simulated."""
    queues = (
        {**LONG, "name": name, "cores": (1, most), "partition": 250}
        for name, most in zip("abcd", (40, 80, 160, 240), strict=True)
    )
    return training(site(*queues, cores=1000), jobs=jobs, seed=seed, span=4 * DAY)


def test_dp_nlp_goes_on_without_a_surrogate_and_says_so():
    """Fewer jobs than parameters: samples and moves decide; the other strategies go on."""
    here = four(jobs=9)
    proposal = propose("dp-nlp", here, FEW)
    (step,) = steps(proposal, "surrogate")
    assert "jobs are fewer than the 4 parameters of a polynomial. Samples and moves" in step["note"]
    assert step["notes"] == [step["note"]]  # of the row
    assert steps(proposal, "decide")[0]["proposed_by"] != "surrogate"
    assert not steps(proposal, "proposals")
    assert propose("dqr", here, FEW).config


def test_the_log_says_who_proposed_what_and_no_more_is_simulated_than_allowed():
    chosen = set()
    for seed in range(2):
        proposal = propose("dp-nlp", four(seed=seed), {"samples": 20, "simulations": 44, **SLACK})
        log = {each["step"]: each for each in proposal.decisions}
        proposed, decide = log["proposals"], log["decide"]
        counts = {len(proposed[name]) for name in ("nodes", "of", "expected", "weighted_waits")}
        assert counts == {10}
        assert decide["tried"] == 20 + 10
        assert decide["tried"] + log["neighbours"]["tried"] <= 44
        by_surrogate = decide["nodes"] in proposed["nodes"]
        assert (decide["proposed_by"] == "surrogate") == by_surrogate
        chosen.add(decide["proposed_by"])
    assert "surrogate" in chosen


def test_a_single_pass_is_the_papers():
    options = {"samples": 30, "simulations": 30, "decide_by": "program", **SLACK}
    log = propose("dp-nlp", training(two(), jobs=400), options)
    assert not steps(log, "proposals")
    assert steps(log, "optimum")[0]["by_program"]
    with pytest.raises(InputError, match="fewer simulations than samples"):
        propose("dp-nlp", training(two(), jobs=50), {"samples": 30, "simulations": 25})


def test_dp_nlp_measures_its_regret_on_a_million_cores():
    wide = {**LONG, "cores": (1, 400_000), "partition": 999_000}
    here = training(site({**SHORT, "partition": 1000}, wide, cores=1_000_000), jobs=100, span=DAY)
    (entry,) = steps(propose("dp-nlp", here, FEW), "regret")
    assert 0 < entry["free_optimum"] <= min(entry["constrained_optimum"], entry["weighted_wait"])
    assert not entry["proven"]


def test_the_chunks_of_hybrid_are_so_few_that_each_can_be_simulated(monkeypatch):
    assert default_chunk(training(two(), jobs=10)) == 5
    nodes = two().replace(machine={"cores": 64, "cores_per_node": 4, "whole_nodes": True})
    assert default_chunk(training(nodes, jobs=10)) == 4
    here = training(two(cores=1_000_000, mode="shared"), jobs=100)
    assert 1_000_000 / default_chunk(here) <= MOST_CHUNKS
    monkeypatch.setattr("qconf.strategies.partitioning.hybrid.MOST_WORK", 100 * 100)
    assert FEWEST_CHUNKS <= 1_000_000 / default_chunk(here) <= 100


@pytest.mark.parametrize("seed", range(4))
def test_dp_nlp_comes_near_the_constrained_optimum(seed):
    (regret,) = steps(propose("dp-nlp", training(two(), jobs=400, seed=seed), {}), "regret")
    assert regret["above_constrained_percent"] <= 5
    assert regret["above_free_percent"] >= 0
    assert regret["proven"]


def test_dp_nlp_searches_around_its_best_division_and_logs_the_result():
    gained = []
    for seed in range(3):
        proposal = propose("dp-nlp", four(seed=seed), {"samples": 20, "simulations": 50, **SLACK, "degree": 1})
        (decide,), (near,) = steps(proposal, "decide"), steps(proposal, "neighbours")
        assert near["kept"] == (near["weighted_wait"] < decide["weighted_wait"])
        nodes = near["nodes"] if near["kept"] else decide["nodes"]
        assert [queue.partition for queue in proposal.config.queues] == nodes
        assert near["tried"] <= 50 - decide["tried"]
        gained.append(near["kept"])
    assert any(gained)


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_the_degree_of_the_surrogates_may_be_given(degree):
    proposal = propose("dp-nlp", training(two(), jobs=400), {"samples": 40, "slack": 0.95, "degree": degree})
    assert [each["degree"] for each in steps(proposal, "surrogate")] == [degree] * 3


def test_the_weights_of_the_epochs_count():
    here = training(two(), jobs=300)
    usual = propose("dp-nlp", here, LOOSE)
    assert [each["weight"] for each in steps(usual, "surrogate")] == [0.3333, 0.6667, 1.0]
    even = propose("exact", here, {"samples": 30, "weights": (1.0, 1.0)})
    cut = replace(here, weights=(1.0, 1.0))
    assert len(cut.epochs) == 2
    assert steps(even, "table")[0]["weighted_wait"] == round(cut.weighted_wait(even.config), 1)
    assert steps(even, "table")[0]["weighted_wait"] != steps(propose("exact", here, FEW), "table")[0]["weighted_wait"]
    assert propose("dp-nlp", here, LOOSE) == usual


@pytest.mark.parametrize("slack", [0.0, 0.3])
def test_dp_nlp_keeps_its_constraints_unless_pp_is_better(slack):
    for seed in range(3):
        here = training(two(mode="shared"), jobs=400, seed=seed)
        proposal = propose("dp-nlp", here, {"samples": 30, "slack": slack})
        bounds = lower_bounds(here, partition_space(here), slack, 0.9)
        nodes = np.array([queue.partition for queue in proposal.config.queues])
        pp = [queue.partition for queue in propose("pp", here).config.queues]
        assert bounds.keeps(nodes) or nodes.tolist() == pp


def uneven():
    """Two kinds of jobs in one queue, and a queue that is nearly empty: candidates for splits and merges."""
    base = site({**LONG, "cores": (1, 16), "partition": 48}, {**WIDE, "cores": (17, 40)}, {**SHORT, "partition": 16})
    return training(base, jobs=500, seed=3, span=8 * DAY)


def test_dqr_logs_every_step():
    here = uneven()
    proposal = propose("dqr", here, FEW)
    splits, merges = steps(proposal, "split"), steps(proposal, "merge")
    assert {each["by"] for each in splits} == {"walltime", "cpu-hours", "jobs"}
    assert all(each["why"] for each in (*splits, *merges))
    reached = {each["weighted_wait"] for step in ("decide", "neighbours") for each in steps(proposal, step)}
    for each in (*splits, *merges):
        if "weighted_wait" in each:
            assert any(each["before"] == pytest.approx(wait, abs=0.2) for wait in reached)
        if each["kept"]:
            assert each["weighted_wait"] < each["before"]
            reached.add(each["weighted_wait"])
    assert any(each["kept"] for each in (*splits, *merges))
    (end,) = steps(proposal, "queues")
    assert end["weighted_wait"] == round(here.weighted_wait(proposal.config), 1)
    assert end["queues"] == len(proposal.config.queues)


def test_dqr_keeps_reserved_and_fixed_queues():
    base = three(fixed=("queues.*.cores", "queues.*.walltime"))
    proposal = propose("dqr", training(base, jobs=300), FEW)
    assert proposal.config.names == base.names
    assert [(q.cores, q.walltime) for q in proposal.config.queues] == [(q.cores, q.walltime) for q in base.queues]
    free = propose("dqr", training(three(), jobs=300), FEW).config
    assert free.queue("wide") == three().queue("wide")


def test_dqr_visits_queues_in_the_chosen_order():
    def visited(**options):
        found = steps(propose("dqr", uneven(), {"samples": 30, **options}), "split")
        return list(dict.fromkeys(each["queue"] for each in found))

    assert visited() == ["short", "long"]
    orders = {tuple(visited(visit_order="random", seed=seed)) for seed in range(4)}
    assert orders == {("short", "long"), ("long", "short")}


def bimodal():
    """Jobs of equal walltimes, most of which end after a minute: they differ in their actual run times only."""
    base = site({**LONG, "cores": (1, 8), "partition": 48}, {**SHORT, "cores": (1, 8), "partition": 16})
    rng = np.random.default_rng(0)
    submit = np.sort(rng.integers(0, 6 * DAY, 500))
    runtime = np.where(rng.random(500) < 0.7, 60, 36000)
    walltime, queue = np.full(500, 36000), np.zeros(500, dtype=np.int64)
    return TrainingSet(Period(Workload(submit, rng.integers(1, 9, 500), runtime, walltime, queue=queue), base))


def test_dqr_can_split_by_actual_run_time_and_the_proposal_is_not_exportable():
    here = bimodal()
    proposal = propose("dqr", here, {"samples": 30, "split_on": "runtime"})
    assert proposal.runtimes == ((0, 18000), (0, 2**31 - 1))
    assert proposal.not_exportable
    schedule = proposal.simulate(here.period)
    assert not proposal.verify(here.period, schedule)
    assert schedule.wait.mean() < here.period.simulate(propose("dqr", here, FEW).config).wait.mean()
    assert propose("dqr", here, FEW).runtimes is None


@pytest.mark.parametrize(
    ("name", "options", "why"),
    [
        *(
            ("hybrid", {option: "none"}, "Choose among")
            for option in ("split_on", "visit_order", "carve", "pool_entry", "pool_placement", "reference")
        ),
        ("dqr", {"degree": 4}, "degree = 4: no such degree"),
        *(("dqr", {"weights": each}, "no weights") for each in ((), (1.0, -1.0), (np.nan,))),
        ("current", {"objective": "speed"}, "no such objective"),
        ("current", {"samples": 19}, "Give 20 or more"),
        ("current", {"slack": float("nan")}, "Give a number from 0 to 1"),
        ("current", {"tau_util": 1.1}, "Give a number from 0 to 1"),
        ("current", {"chunk": -7}, "Give 1 or more"),
        ("current", {"degradation": float("nan")}, "Give 0 or more"),
        ("none", {}, "no such strategy"),
        ("pp", {"order": "size"}, "no such option"),
    ],
)
def test_unknown_choices_and_invalid_options_are_refused(name, options, why):
    with pytest.raises(InputError, match=why):
        propose(name, training(two(), jobs=60), options)


@pytest.mark.parametrize(("carve", "mode"), [("live", "hybrid"), ("partitions", "partitioned")])
def test_hybrid_carves_within_the_degradation(carve, mode):
    here = training(three(), jobs=600, seed=0, span=6 * DAY)
    dqr = here.weighted_wait(propose("dqr", here, FEW).config)
    proposal = propose("hybrid", here, {"samples": 30, "carve": carve, "chunk": 2})
    (end,) = steps(proposal, "pool")
    assert end["dqr_weighted_wait"] == round(dqr, 1)
    config = proposal.config
    assert config.mode == mode
    assert here.weighted_wait(config) == pytest.approx(end["weighted_wait"], abs=0.1)
    assert end["weighted_wait"] <= 1.3 * dqr + 0.1
    pool = (0, "move") if config.pool is None else (config.pool.cores, config.pool.entry)
    assert pool == (end["cores"], "move")


def test_hybrid_searches_a_pool_that_a_batch_system_can_have():
    here = training(three(), jobs=600, seed=0, span=6 * DAY)
    dqr = propose("dqr", here, FEW).config
    proposal = propose("hybrid", here, FEW)
    config, tried = proposal.config, steps(proposal, "pool search")
    assert (config.mode, config.pool.entry, config.pool.placement) == ("hybrid", "move", "combined")
    assert proposal.not_exportable == ""
    assert PbsExporter().export(config).files
    assert [each["tau"] for each in tried] == [0.5, 0.0]
    (kept,) = [each for each in tried if each["kept"]]
    assert kept["score"] == min(each["score"] for each in tried) < 0
    assert (kept["tau"], kept["pool"]) == (config.pool.threshold, config.pool.cores)
    (end,) = steps(proposal, "pool")
    assert here.weighted_wait(config) == pytest.approx(end["weighted_wait"], abs=0.1)
    assert end["weighted_wait"] < here.weighted_wait(dqr)
    assert max(epoch.simulate(config).wait.max() for _, epoch in here.epochs) == kept["longest_wait"]


def test_hybrid_is_dqr_where_every_pool_makes_a_queue_wait_longer():
    here = training(two(), jobs=3, span=6 * DAY)  # no job waits
    proposal = propose("hybrid", here, FEW)
    assert proposal.config == propose("dqr", here, FEW).config
    assert not any(each["kept"] for each in steps(proposal, "pool search"))
    assert steps(proposal, "pool")[0]["cores"] == 0


def test_a_fixed_threshold_is_the_only_one_searched():
    base = three().replace(pool=PoolConfig(threshold=2.0), fixed=("pool.threshold",))
    proposal = propose("hybrid", training(base, jobs=300), FEW)
    assert [each["tau"] for each in steps(proposal, "pool search")] == [2.0]


def test_hybrid_with_a_pool_entry_that_pbs_cannot_do_is_not_exportable_even_without_a_pool():
    """The proposal for another training set may have a pool."""
    here = training(three(), jobs=600, seed=0, span=6 * DAY)
    proposal = propose("hybrid", here, {"samples": 30, "chunk": 2, "carve": "partitions", "pool_entry": "either"})
    assert proposal.config.mode == "partitioned"
    assert "a batch system holds it in one queue" in proposal.not_exportable


@pytest.mark.parametrize("carve", ["search", "live"])
@pytest.mark.parametrize("placement", ["pool", "combined"])
def test_entry_and_placement_of_the_pool_are_as_chosen_or_as_configured(placement, carve):
    here = training(
        three().replace(pool=PoolConfig(placement=placement, starving_first=True)), jobs=600, seed=0, span=6 * DAY
    )
    options = {"samples": 30, "chunk": 2, "carve": carve}
    kept = propose("hybrid", here, options)
    assert (kept.config.mode, kept.config.pool.entry, kept.not_exportable) == ("hybrid", "move", "")
    assert (kept.config.pool.placement, kept.config.pool.starving_first) == (placement, True)
    other = {"pool": "combined", "combined": "pool"}[placement]
    chosen = propose("hybrid", here, {**options, "pool_entry": "either", "pool_placement": other})
    assert (chosen.config.pool.entry, chosen.config.pool.placement) == ("either", other)
    assert "a batch system holds it in one queue" in chosen.not_exportable
    if (carve, placement) == ("live", "pool"):  # the reference simulator takes long
        assert not chosen.verify(here.period, chosen.simulate(here.period))
    (end,) = steps(chosen, "pool")
    assert here.weighted_wait(chosen.config) == pytest.approx(end["weighted_wait"], abs=0.1)


def test_dqr_splits_a_queue_again_as_long_as_it_helps():
    tried = steps(propose("dqr", bimodal(), {"samples": 30, "split_on": "runtime"}), "split")
    kept = [each["kept"] for each in tried if each["queue"] == "long"]
    assert kept == [True, False, False] + 3 * [False]  # a round has three ways; the second round keeps none


def test_dqr_merges_as_long_as_it_helps():
    queues = ({**LONG, "partition": 32}, {**SHORT, "partition": 16}, {**SHORT, "name": "tiny", "partition": 16})
    here = training(site(*({**queue, "cores": (1, 8)} for queue in queues)), jobs=400, seed=1, span=6 * DAY)
    proposal = propose("dqr", here, FEW)
    assert [each["kept"] for each in steps(proposal, "merge")] == [True, False, False, True]
    assert proposal.config.names == ("long",)


def test_a_larger_degradation_carves_no_smaller_pool():
    pools = [
        steps(propose("hybrid", uneven(), {**FEW, "carve": "live", "degradation": degradation}), "pool")[0]["cores"]
        for degradation in (0.0, 0.3, 1e9)
    ]
    assert pools == sorted(pools)
    assert pools[-1] == 64


def test_tau_is_half_the_priority_of_the_reference_queue():
    """That of the month before is calculated anew, and the site's own stays."""
    own = training(site({**SHORT, "priority": 10.0}, {**LONG, "priority": 40.0}), jobs=100)
    assert threshold(own) == (20.0, "long")
    assert threshold(own, "short") == (5.0, "short")
    joined = {**LONG, "name": "joined", "priority": 10.0, "partition": 48}
    before = own.under(site(joined, mode="hybrid", pool={"cores": 16, "threshold": 20.0}))
    assert threshold(replace(before, site=own.base)) == (5.0, "joined")
    for pool, tau in (({"threshold": 0.25}, (0.25, "")), ({"reference": "short"}, (5.0, "joined"))):
        base = site(SHORT, {**LONG, "partition": 24}, mode="hybrid", pool={"cores": 16, **pool})
        assert threshold(replace(before, site=base)) == tau
        assert threshold(training(base)) == (tau if "threshold" in pool else (0.5, "short"))


def test_modules_of_the_package_register_their_strategies():
    assert names()[:4] == ("current", "fcfs-easy", "lxf-easy", "shared")
    assert set(TUNED) | {"mqb", "auto", "auto-guarded"} <= set(names(default=True))
    assert {"planned-sjf", "dynp"} <= set(names()) - set(names(default=True))
    assert baselines() == ("fcfs-easy", "lxf-easy", "shared")


@pytest.mark.parametrize("name", TUNED)
def test_a_fixed_partition_keeps_its_size(name):
    base = site(
        {**SHORT, "partition": 16}, LONG, {"name": "more", "cores": (1, 4), "walltime": (0, 7200), "partition": 8}
    )
    here = training(base.replace(fixed=("queues.short.partition",)), jobs=300)
    config = propose(name, here, FEW).config
    assert config.queue("short").partition == 16
    assert machine_of(config) == 64
    assert fixed_violations(here.base, config) == []
    with pytest.raises(NotApplicableError, match="every partition is marked as fixed"):
        propose(name, training(base.replace(fixed=("queues.*.partition",)), jobs=30), FEW)
