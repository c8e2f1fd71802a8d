"""auto and auto-guarded: gains, guard rails, `fixed`, and unusual training sets."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from parsim import System, Workload, metrics, simulate
from parsim.model.formula import parse as parse_formula
from qconf.config import Target, lost_job
from qconf.evaluation.feasibility import fixed_violations
from qconf.evaluation.period import NotApplicableError, Period, TrainingSet
from qconf.evaluation.score import log_ratios, weights
from qconf.export.pbs.order import formula
from qconf.export.priorities import scale
from qconf.strategies import propose, variants
from qconf.strategies.auto.candidates import limited
from qconf.strategies.auto.estimator import posterior, prices, prior_of
from qconf.strategies.auto.families import FAMILIES, LEAST, AutoOptions, General, Member, Named, usual_longest
from qconf.strategies.auto.frame import Frame
from qconf.strategies.auto.measures import logarithms, of_orders
from qconf.strategies.auto.search import MARGIN, PIECE, PRICES, _Candidate, _Search, climb, orders_wanted
from tests.qconf.small import DAY, LONG, SHORT, WIDE, site, three, training, two
from tests.qconf.strategies.partitioning.test_strategies import CASES

KINDS = ("auto", "auto-guarded")
WHOLE = {**LONG, "partition": 0}


def first_come(**changes):
    """A site whose wide jobs go before all others, which may change."""
    changes = {"policy": "may-change", **changes}
    queues = ({**SHORT, "partition": 0}, {**LONG, "partition": 0}, {**WIDE, "priority": 100, "reservation": False})
    return site(*queues, mode="shared", **changes)


@cache
def busy(base, seed=1, jobs=1500):
    """Many short jobs, few wide ones."""
    return training(base, jobs=jobs, seed=seed, span=12 * DAY, only=[0] * 8 + [1] * 4 + [2])


@cache
def found_in(here, name="auto"):
    """What a strategy proposes for a training set that several tests ask about."""
    return propose(name, here)


@cache
def parts(base):
    """The proposals of auto for a busy training set, by what each changes."""
    return variants("auto", busy(base))


def withs(proposal):
    """With what it compared the present, or another candidate."""
    return {str(step.get("with")) for step in proposal.decisions}


def with_each(base, **changes):
    return base.with_queues([queue.model_copy(update=changes) for queue in base.queues])


def tails(here, config):
    wait = here.period.simulate(config).wait
    return np.array([np.percentile(wait[here.workload.queue == q], 95) for q in range(3)]), wait.max()


def seldom(values, *usual):
    """Those that are not usual are for `make test-all`."""
    return [pytest.param(each, marks=[] if each in usual else pytest.mark.slow) for each in values]


PAIRS = [(name, case) for case in CASES for name in KINDS]


@pytest.mark.parametrize("pair", seldom(PAIRS, *zip(KINDS * 6, CASES, strict=False)), ids=" ".join)
def test_every_training_set_has_a_valid_proposal(pair):
    name, case = pair
    here = CASES[case]()
    proposal = propose(name, here)
    assert not proposal.not_exportable
    assert lost_job(here.base.queues, proposal.config.queues) is None
    schedule = proposal.simulate(here.period)
    assert len(here) > 300 or not proposal.verify(here.period, schedule)  # which asks the reference simulator
    assert proposal.decisions[-1]["with"] == "current"


@pytest.mark.parametrize("name", KINDS)
def test_an_empty_training_set_is_refused(name):
    with pytest.raises(NotApplicableError, match="no jobs"):
        propose(name, training(two(), jobs=0))


def test_auto_gains_and_logs_its_candidates():
    here = busy(first_come())
    proposal = found_in(here)
    assert here.period.simulate(proposal.config).wait.mean() < 0.8 * here.period.simulate(here.base).wait.mean()
    found = proposal.decisions[0]
    assert (found["step"], found["tried"]) == ("orders", len(FAMILIES["formula"]))
    assert proposal.config.order == found["best"]
    assert formula(proposal.config, scale(proposal.config.queues))[0]
    assert "long on at most 60 % of the cores" in withs(proposal)
    divided = withs(propose("auto", training(three(mode="shared"), jobs=500)))
    assert {"partitions in proportion to work", "a pool of 50 %"} <= divided


@pytest.mark.parametrize(("wish", "seed"), [({"p95_wait": 3600}, 4), ({"weight": 20.0}, 4)])
def test_what_the_site_wants_decides_what_is_best(wish, seed):
    wanted = busy(first_come(targets=(Target(queue="wide", **wish),)), seed=seed)
    plain = replace(wanted, period=replace(wanted.period, base=first_come()))
    (indifferent, _), (wished, _) = (tails(here, found_in(here).config) for here in (plain, wanted))
    assert wished[2] < 0.5 * indifferent[2]
    assert wished[0] > indifferent[0]


@pytest.mark.parametrize(("hours", "seed"), [(36, 1), (66, 2)])
def test_with_guarding_a_queue_gets_priority_until_its_target_is_met(hours, seed):
    wish = Target(queue="wide", p95_wait=hours * 3600)
    sets = (busy(first_come(targets=targets), seed, jobs=1200) for targets in ((), (wish,)))
    (without, _), (met, _) = (tails(here, propose("auto-guarded", here).config) for here in sets)
    assert met[2] <= hours * 3600 < without[2]


def test_a_target_that_is_missed_costs_its_logarithm():
    here = busy(first_come(targets=(Target(queue="wide", p95_wait=3600), Target(queue="short", p95_wait=30 * DAY))))
    running = _Search(here, AutoOptions())
    plain = _Search(replace(here, period=replace(here.period, base=first_come())), AutoOptions())
    sjf = [each.simulate([("sjf", each.base.replace(order="sjf"))])[0] for each in (running, plain)]
    (_, _, then), (_, _, now) = (tails(here, each.config)[0] for each in (running.current, sjf[0]))
    gained, without = (each.score - of.current.score for each, of in zip(sjf, (running, plain), strict=True))
    assert gained - without == pytest.approx(np.log((now + 60) / (then + 60)))
    assert plain.current.score == 0


def test_which_order_is_best_does_not_depend_on_the_base():
    """Else every run would gain a little over the result of the last one, only by longer waits."""
    here = busy(first_come())
    found = found_in(here).config
    assert propose("auto", TrainingSet(Period(here.workload, first_come(order="ljf")))).config.order == found.order
    assert propose("auto", TrainingSet(Period(here.workload, found))).config == found


def after(periods):
    """The last of several training sets, with the periods of the earlier ones."""
    return replace(periods[-1], earlier=tuple(each.period for each in periods[:-1]))


def new_search(here):
    """A guarded search before it runs."""
    return _Search(here, AutoOptions(), guard=True)


def longest(*periods):
    """The longest wait of these training sets, first come, first served on one list."""
    jobs = [Workload(w.submit, w.cores, w.runtime, w.walltime) for w in (each.workload for each in periods)]
    return float(max(simulate(each, System.single(64)).wait.max() for each in jobs))


def prior_with(best, delayed=None):
    """A prior of which one order is the best by far, or the same one with a delay."""

    def found(members):
        rows = np.zeros((len(members), 4))
        wanted = Member(best) if delayed is None else Member(best, delayed)
        rows[members.index(wanted)] = -9.0, -9.0, 0.0, 0.0
        return rows

    return found


def by_hand(periods, tails):
    """What is best by the prior and these periods, computed from their schedules; the base is fcfs-easy."""
    members = [each for each in FAMILIES["formula"] if not each.delay]
    rows, seen = [], float(max(wait.max() for _, wait in firsts(periods)))
    submits = [each.workload.submit for each in periods]
    usual = usual_longest(seen, sum(float(submit[-1] - submit[0]) for submit in submits) / DAY)
    for each in periods:
        w = each.workload
        jobs, queue = Workload(w.submit, w.cores, w.runtime, w.walltime), w.queue
        found = [simulate(jobs, System.single(64, order=member.order.formula(64, usual))) for member in members]
        first = each.period.simulate(each.base)
        known = [max(own[here.workload.queue == q].max() for here, own in firsts(periods)) for q in range(3)]
        then = [first.wait.mean(), metrics.bounded_slowdown(first).mean(), first.wait.max()]
        rows.append([])
        for one in found:
            now = [one.wait.mean(), metrics.bounded_slowdown(one).mean(), one.wait.max()]
            beyond = [max(np.log((one.wait[queue == q].max() + 3600) / (known[q] + 3600)), 0) for q in range(3)]
            rows[-1].append([*log_ratios(np.array(now), np.array(then)), np.mean(beyond)])
    expected = posterior(prior_of(tuple(members)), np.array(rows), [len(each) for each in periods])
    best = int(np.argmin(prices(expected, weights("mean-wait", tails))))
    return members[best].order.formula(64, usual), expected[best]


def firsts(periods):
    """Each of these with its waits, first come, first served."""
    for each in periods:
        yield each, each.period.simulate(each.base).wait


@pytest.mark.parametrize("tails", [0.0, 4.0])
def test_the_prior_and_all_known_periods_decide_by_a_stated_price(tails):
    base = first_come()
    periods = [training(base, jobs=1500, seed=seed, span=8 * DAY, only=[0, 0, 1, 2]) for seed in (2, 3, 4)]
    found = propose("auto", after(periods), {"tails": tails}).decisions[0]
    best, expected = by_hand(periods, tails)
    assert (found["months"], found["best"]) == (3, best)
    assert found["wait_ratio"] == pytest.approx(np.exp(expected[0]), abs=1e-4)
    assert found["longest_ratio"] == pytest.approx(np.exp(expected[2]), abs=1e-4)
    assert "months" not in propose("auto", periods[-1]).decisions[0]


def test_the_longest_wait_falls_and_the_mean_wait_grows_with_the_price_of_the_tails():
    step = next(d for d in found_in(busy(first_come())).decisions if d["step"] == "tails")
    assert step["weights"] == list(PRICES)
    assert step["chosen"] in PRICES
    assert step["longest_ratios"][0] >= step["longest_ratios"][-1]
    assert step["wait_ratios"][0] <= step["wait_ratios"][-1]


def test_after_a_quiet_month_the_ageing_is_that_of_the_busy_one_over_more_days():
    base = first_come()
    loud = busy(base)
    quiet = training(base, jobs=30, span=25 * DAY, only=[0])
    found, alone = propose("auto", after([loud, quiet])), found_in(loud)
    constants = [int(each.config.order.split("(1 + (eligible_time / ")[-1].split(")")[0]) for each in (found, alone)]
    days = [sum(each.period.days for each in known) for known in ((loud, quiet), (loud,))]
    assert constants[0] / constants[1] == pytest.approx((days[1] / days[0]) ** 0.37, rel=0.2)
    only_quiet = propose("auto", quiet).config.order
    assert f"(1 + (eligible_time / {LEAST}) ** 5)" in only_quiet


def test_a_month_without_waits_keeps_the_prior_and_not_the_present_order():
    base = first_come()
    idle = training(base, jobs=12, span=9 * DAY, only=[0])
    assert idle.period.simulate(base).wait.max() == 0
    members = [each for each in FAMILIES["formula"] if not each.delay]
    best = members[int(np.argmin(prices(prior_of(tuple(members)), weights("mean-wait", AutoOptions().tails))))]
    assert propose("auto", idle).config == base.replace(order=best.order.formula(64, 0.0))
    gains = found_in(busy(base))
    assert gains.config != base
    assert "note" not in gains.decisions[-1]


def test_the_prior_decides_about_reservations_until_three_months_are_known():
    base = first_come()
    periods = [training(base, jobs=250, seed=seed, span=2 * DAY, only=[0, 0, 1]) for seed in (3, 4, 5)]
    late = prior_with(General(), DAY)
    for months, delay in ((1, 0), (2, 0), (3, DAY)):
        proposal = climb(after(periods[:months]), AutoOptions(), prior=late)
        assert proposal[""].config.reserve_after == delay
        step = next(d for d in proposal[""].decisions if d["step"] == "reservations")
        assert (step["months"], step["after"]) == (months, "24h")
        assert step["note"] == ("better than at once" if delay else "not chosen from fewer than 3 months")
        assert bool(proposal["delay"].not_yet) == (delay == 0)
    at_once = climb(after(periods), AutoOptions(), prior=prior_with(General()))[""]
    assert at_once.config.reserve_after == 0
    assert at_once.config.order == General().formula(64, longest(*periods))
    fixed = replace(periods[0], period=Period(periods[0].workload, base.replace(fixed=("reserve_after",))))
    assert "delay" not in climb(fixed, AutoOptions())


def test_an_order_that_needs_no_training_is_taken_where_it_is_better():
    here = busy(first_come())
    assert climb(here, AutoOptions(), prior=prior_with(Named("lxf")))[""].config.order == "lxf"


def test_candidates_that_divide_the_machine_keep_fixed_partitions():
    here = training(three(fixed=("queues.short.partition",)), jobs=300)
    tried = {d.get("with") for d in propose("auto", here).decisions if d["step"] == "compare"}
    assert {"partitions in proportion to work", "a pool of 50 %"} <= tried


@pytest.mark.parametrize("seed", seldom([1, 2, 3], 1))
def test_with_guarding_the_tails_of_every_queue_stay_short(seed):
    here = busy(first_come(), seed)
    before, longest = tails(here, here.base)
    free, _ = tails(here, found_in(here).config)
    assert (free > np.maximum(1.4 * before, before + 3600)).any()
    guarded = propose("auto-guarded", here)
    late, most = tails(here, guarded.config)
    assert (late <= np.maximum(1.4 * before, before + 3600)).all()
    assert most <= max(1.4 * longest, longest + 3600)
    assert guarded.config != here.base
    entry = next(d for d in guarded.decisions if d["step"] == "guard rails")
    assert entry["queues"]
    assert min(entry["factors"].values()) == 1 < max(entry["factors"].values())


def test_a_fixed_order_stays_even_if_it_is_the_general_one():
    base = first_come(order=General().formula(64, DAY), fixed=("order",))
    proposal = propose("auto", busy(base))
    assert proposal.config.order == base.order
    assert proposal.decisions[0] == {"step": "orders", "note": "none can be tried: order is fixed"}


def test_limits_are_tried_on_a_shared_machine_only_and_not_where_the_base_has_them():
    base = three(mode="partitioned", fixed=("order",))
    assert list(limited(training(base, jobs=500), base)) == []
    here = busy(first_come())
    assert "long on at most 80 % of the cores" in dict(limited(here, here.base))
    queues = [q.model_copy(update={"max_run_cores": 48} if q.name == "long" else {}) for q in here.base.queues]
    tried = dict(limited(here, here.base.with_queues(queues)))
    assert "long on at most 80 % of the cores" not in tried
    assert tried["long on at most 60 % of the cores"].queue("long").max_run_cores == 38


def test_orders_use_priorities_that_are_fixed():
    here = busy(first_come())
    base = here.base.replace(fixed=(f"queues.{here.base.names[0]}.priority",))
    found = propose("auto", TrainingSet(Period(here.workload, base)))
    orders = next(step for step in found.decisions if step["step"] == "orders")
    assert orders["best"].startswith("queue_priority * ")
    assert fixed_violations(base, found.config) == []
    assert [queue.priority for queue in found.config.queues] == [queue.priority for queue in base.queues]


def test_ineligible_candidates_are_logged_and_do_not_end_the_search(monkeypatch):
    base = site({**SHORT, "partition": 0}, {**LONG, "partition": 0}, mode="shared", fixed=("queues.long.priority",))
    here = training(base, jobs=300)
    running = new_search(here)
    plain = base.replace(order="fcfs")
    dearer = [queue.model_copy(update={"priority": 7.0}) for queue in base.queues]
    found = running.simulate([("as it is", plain), ("dearer", base.with_queues(dearer)), ("again", plain)])
    assert [None if each is None else each.what for each in found] == ["as it is", None, "again"]
    assert [step.record() for step in running.log] == [
        {"step": "not tried", "with": "dearer", "why": "changes queues.long.priority, which is fixed"}
    ]
    monkeypatch.setattr(running, "simulate", lambda configs: [None for _ in configs])
    late = replace(running.current, member=running.members[0], behind=np.array([True, False]))
    assert running.guarded(late) is None


def candidate(score, halves=(-1.0, -1.0), broken=(False, False)):
    return _Candidate(
        "it", first_come(), score, np.array(halves), np.array(broken), np.array(broken), sum(broken), score
    )


def test_a_more_complicated_candidate_must_be_better_by_the_margin_in_both_halves_without_a_longer_tail():
    chosen = candidate(-0.5, (-0.5, -0.5), (True, False))
    running, edge = new_search(busy(first_come())), -0.5 - MARGIN
    enough = edge - 0.01
    kept, why = running.outdoes(candidate(enough, (enough, enough), (True, False)), chosen)
    assert (kept, why) == (True, "better by more than the margin, in both halves of the history")
    assert running.outdoes(candidate(edge, (enough, enough)), chosen) == (False, "")
    for halves in ((enough, edge), (edge, enough)):
        kept, why = running.outdoes(candidate(enough, halves), chosen)
        assert not kept
        assert "not in both halves" in why
    kept, why = running.outdoes(candidate(enough, (enough, enough), (True, True)), chosen)
    assert not kept
    assert "longest waits" in why


def test_a_candidate_that_is_better_by_the_margin_is_proposed(monkeypatch):
    here = busy(first_come())
    running = new_search(here)
    better = lambda it, _: (it.what == "long on at most 80 % of the cores", "better here")  # noqa: E731
    monkeypatch.setattr(running, "outdoes", better)
    proposal = running.run()[""]
    assert proposal.config.queue("long").max_run_cores == 51
    assert proposal.decisions[-2]["note"] == proposal.decisions[-1].get("note", "better here")


def test_candidates_with_jobs_that_could_never_run_are_not_tried():
    """A queue that admits jobs as wide as the machine cannot be limited to less, however narrow its jobs are."""
    queues = ({**LONG, "partition": 0, "cores": (1, 64)}, {**SHORT, "partition": 0})
    base = site(*queues, mode="shared")
    here = training(site({**LONG, "partition": 0}, {**SHORT, "partition": 0}, mode="shared"), jobs=900, span=6 * DAY)
    found = propose("auto", TrainingSet(Period(here.workload, base))).decisions
    assert any("would never start" in d["why"] for d in found if d["step"] == "not tried")
    tried = {d["with"] for d in found if d["step"] == "compare"}
    assert tried
    assert not any(each.startswith(("long on at most", "a pool", "partitions")) for each in tried)
    narrow = withs(propose("auto", here))
    assert {"long on at most 60 % of the cores", "long on at most 80 % of the cores"} <= narrow
    assert any(each.startswith("jobs of long above") and each.endswith("60 % of the cores") for each in narrow)


@pytest.mark.parametrize("name", seldom(KINDS, "auto-guarded"))
@pytest.mark.parametrize(
    "base",
    [
        site({**LONG, "partition": 40, "cores": (1, 60)}, {**SHORT, "partition": 24}),  # wide jobs span both partitions
        site(
            {**LONG, "partition": 0, "cores": (1, 60), "max_user_cores": 30}, {**SHORT, "partition": 0}, mode="shared"
        ),
    ],
)
def test_training_sets_may_have_jobs_wider_than_a_batch_system_would_start(base, name):
    """The simulator runs them: they span partitions, or have no user whose cores are limited."""
    rng = np.random.default_rng(1)
    wide = rng.random(400) < 0.05
    submit, walltime = np.sort(rng.integers(0, 6 * DAY, 400)), rng.integers(1, 36000, 400)
    walltime[~wide] = np.minimum(walltime[~wide], 20000)
    jobs = Workload(submit, np.where(wide, 55, rng.integers(1, 9, 400)), walltime, walltime, queue=np.zeros(400, int))
    assert propose(name, TrainingSet(Period(jobs, base))).decisions[-1]["with"] == "current"


@pytest.mark.parametrize("limit", seldom(["max_run", "max_user_run", "max_user_cores"], "max_user_cores"))
def test_a_queue_with_limits_is_not_split(limit):
    base = first_come(fixed=(f"queues.*.{limit}",))
    limited = base.with_queues([base.queues[0], base.queues[1].model_copy(update={limit: 16}), base.queues[2]])
    tried = withs(propose("auto", busy(limited)))
    assert tried
    assert not any(each.startswith("jobs of long above") for each in tried)
    assert any(each.startswith("jobs of long above") for each in withs(propose("auto", busy(base))))


@pytest.mark.parametrize("name", seldom(KINDS, "auto"))
@pytest.mark.parametrize(
    "fixed", [("order",), ("mode",), ("queues.wide.priority",), ("queues.long",), ("queues.*",), ("order", "pool")]
)
def test_everything_fixed_stays(name, fixed):
    here = busy(first_come(fixed=fixed))
    assert fixed_violations(here.base, propose(name, here).config) == []


def test_fixed_limits_stay_and_others_are_removed():
    queues = ({**SHORT, "partition": 0, "max_run": 9}, {**LONG, "partition": 0, "max_run": 8})
    base = site(*queues, mode="shared", fixed=("queues.short.max_run",), policy={"limits": "may-change"})
    proposal = propose("auto", training(base, jobs=700))
    assert [queue.max_run for queue in proposal.config.queues] == [9, None]


@pytest.mark.parametrize("objective", seldom(["mean-wait", "bounded-slowdown", "mixed"], "mixed"))
def test_workers_and_repetition_do_not_matter(objective):
    here = training(three(mode="shared"), jobs=500)
    one = propose("auto", here, {"objective": objective})
    two_workers = propose("auto", TrainingSet(Period(here.workload, here.base)), {"objective": objective, "workers": 2})
    assert one.config == two_workers.config
    assert one.decisions == two_workers.decisions


def test_the_orders_are_simulated_in_pieces_that_workers_may_simulate_ahead():
    here = training(three(mode="shared"), jobs=200)
    found = _Search(here, AutoOptions())
    wanted = orders_wanted(here, AutoOptions())
    assert [(of_orders, here.period, piece) for piece in found.pieces] == wanted
    assert len(wanted) > 1
    assert max(len(orders) for _, _, (_, orders, _) in wanted) <= PIECE
    means = [each.means for each in found.measured(here.period)]
    each_alone = [of_orders(here.period, system, (order,), 1)[0].means for system, order in found.systems]
    assert np.array_equal(means, each_alone)
    rows = [logarithms(here.period, each, found.seen) for each in found.measured(here.period)]
    assert np.isfinite(rows).all()


def with_policy(**changes):
    """A site with priorities, starvation periods and running limits."""
    short = {**SHORT, "partition": 0, "priority": 10, "starvation": "1h", "max_run": 30}
    long = {**LONG, "partition": 0, "priority": 20, "starvation": "4h"}
    return site(short, long, {**WIDE, "priority": 40, "reservation": False}, mode="shared", **changes)


def test_an_order_keeps_limits_and_has_priorities_and_starvation_periods_inside():
    base = with_policy()
    found = found_in(busy(base)).config
    periods = "14400 if queue_priority == 20 else 1e15 if queue_priority == 40 else 3600"
    starving = f"1e28 * (1 + eligible_time) if eligible_time >= ({periods})"
    assert found.order.startswith(f"{starving} else (queue_priority * (")
    assert found == base.replace(order=found.order)


def test_a_starving_job_goes_before_all_others_in_the_order():
    here = busy(with_policy())
    found = found_in(here)
    formula = Frame().formula(here.base, "walltime - walltime")  # the policy alone
    values = parse_formula(formula)
    assert values.uses_eligible_time
    alone = here.period.simulate(here.base.replace(order=formula))
    kept = here.period.simulate(found.config)
    waited = [schedule.wait[here.workload.queue == 0].max() for schedule in (alone, kept)]
    free = here.period.simulate(here.base.replace(order=Frame(frozenset({"starvation"})).formula(here.base, "ncpus")))
    assert max(waited) < free.wait[here.workload.queue == 0].max()


def test_periods_that_a_formula_cannot_distinguish_are_noted():
    queues = ({**SHORT, "partition": 0, "starvation": "2h"}, {**LONG, "partition": 0, "starvation": "1h"})
    here = training(site(*queues, mode="shared"), jobs=300)
    orders = propose("auto", here).decisions[0]
    assert orders["notes"] == ["queue short starves after 1h in a formula, not 2h: another queue has its priority"]
    assert orders["best"].startswith("1e28 * (1 + eligible_time) if eligible_time >= 3600 else (")


def test_every_part_of_the_policy_is_dropped_by_itself_and_all_together():
    found = parts(with_policy())
    order = found["general order"].config
    without = found["general limits"].config
    assert without == with_each(order, max_run=None)
    assert "eligible_time >=" not in found["general starvation"].config.order
    assert "queue_priority *" not in found["general priorities"].config.order
    bare = found["general policy"].config
    assert "queue_priority" not in bare.order
    assert all(queue.max_run is None and queue.starvation is None for queue in bare.queues)
    assert "general user-limits" not in found  # there are none


def test_guarding_leaves_priorities_that_differ_as_they_are():
    base = with_policy()
    guarded = propose("auto-guarded", busy(base)).config
    assert [queue.priority for queue in guarded.queues] == [queue.priority for queue in base.queues]


def test_a_partitioned_machine_keeps_its_partitions_on_the_lower_rungs():
    base = three(mode="partitioned")
    found = variants("auto", training(base, jobs=500))
    assert [queue.partition for queue in found["general order"].config.queues] == [q.partition for q in base.queues]
    assert found["general order"].config.mode == "partitioned"
    assert "general delay" not in found
    assert found["general partitions"].title.startswith(("one shared machine", "partitions", "a pool"))


def test_a_reservation_delay_is_proposed_later_where_few_months_are_known():
    found = parts(first_come())["general delay"]
    assert found.config.reserve_after == DAY
    assert found.not_yet == "a reservation delay is recommended from 3 known months on, and 1 is known"
    assert found_in(busy(first_come())).config.reserve_after == 0


def test_orders_age_only_where_no_starvation_period_bounds_the_waits():
    queues = ({**SHORT, "partition": 0, "starvation": "2h"}, {**LONG, "partition": 0, "starvation": "4h"})
    here = training(site(*queues, mode="shared"), jobs=700)
    found = variants("auto", here)
    assert "** 5" not in found["general order"].config.order
    assert "** 5" in found["general starvation"].config.order
    some = here.base.with_queues([here.base.queues[0].model_copy(update={"starvation": None}), here.base.queues[1]])
    partly = variants("auto", TrainingSet(Period(here.workload, some)))["general order"].config.order
    assert "** 5" in partly


@pytest.mark.parametrize(
    ("may_change", "title"),
    [
        ((), "the order alone"),
        (("limits",), "the order, without running limits"),
        (("limits", "starvation"), "the order, without running limits and without starvation periods"),
    ],
)
def test_a_title_says_what_of_the_policy_is_dropped(may_change, title):
    base = with_each(first_come(policy=may_change), max_run=2, starvation=DAY)
    assert variants("auto", busy(base))["general order"].title == title
