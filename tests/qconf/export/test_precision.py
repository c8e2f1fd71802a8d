"""Formulas in single precision: jobs that the simulated order keeps apart stay apart in PBS."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parsim.model.formula import JOB_NAMES
from parsim.model.formula import parse as parse_formula
from qconf.config import parse
from qconf.errors import ExportError
from qconf.export import exporter
from qconf.export.pbs.order import formula, refuse
from qconf.export.precision import Jobs, lost, met
from qconf.export.priorities import scale
from qconf.history import clean, read

SITE = """\
machine: {{name: m, cores: 4096}}
order: {}
queues:
  - {{name: a, cores: [1, 64], walltime: [0, 12h], priority: 10}}
  - {{name: b, cores: [1, 512], walltime: [12h, 72h], priority: 40}}
  - {{name: c, cores: [65, 4096], walltime: [0, 24h], priority: 100}}
"""
MULTIFACTOR = (
    "10000000000 * queue_priority + min(eligible_time, 604800) + (302400 if walltime <= 3600 else 151200 if "
    "walltime <= 43200 else 0) + (1000 if ncpus <= 8 else 500 if ncpus <= 64 else 0)"
)
JUST = MULTIFACTOR.replace("10000000000", "{}")
MAUI = "{maui: {queue_time: 1, expansion_factor: {weight: 10, cap: 100}, queue: 10000000000}}"
STARVING = "1e28 * (1 + eligible_time) if eligible_time >= 86400 else ({})"
FAMILY = (
    "(1 + (eligible_time / (30 * (max(walltime, 1) / 20) ** 0.8)) ** 2.5 * (ncpus / 4) ** 1.2) / "
    "(max(walltime, 1) * ncpus ** 0.7) * queue_priority"
)
#: Terms for the queue beside which single precision keeps nothing of what is added.
LARGE = {
    "multifactor": f'"{MULTIFACTOR}"',
    "maui": MAUI,
    "shares": f'"{MULTIFACTOR} + 100000 * fairshare_factor"',
    "behind starving jobs": f'"{STARVING.format(MULTIFACTOR)}"',
    "a constant": '"1e12 + eligible_time / max(walltime, 1)"',
}
ORDERS = {
    "multifactor": f'"{JUST.format(10000)}"',
    "behind starving jobs": f'"{STARVING.format(JUST.format(10000))}"',
    "family": f'"{STARVING.format(FAMILY)}"',
    "queues that overlap": '"3000 * queue_priority + eligible_time"',
    **{name: name for name in ("fcfs", "sjf", "ljf", "lxf", "wfp3")},
}


def site(order, priorities=(10, 40, 100)):
    text = SITE.format(ORDERS.get(order, order))
    for old, new in zip((10, 40, 100), priorities, strict=True):
        text = text.replace(f"priority: {old}}}", f"priority: {new}}}")
    return parse(text)


def exported(config):
    return exporter("pbs")().export(config).files["queues.qmgr"]


def values(text, jobs, kind):
    """Evaluate a formula for jobs of (priority, walltime, cores, wait), as PBS keeps it or not."""
    base = np.zeros((len(JOB_NAMES), len(jobs)))
    for name, column in zip(("queue_priority", "walltime", "ncpus"), np.array(jobs, dtype=float).T, strict=False):
        base[JOB_NAMES.index(name)] = column
    return parse_formula(text).values(base, np.array([job[3] for job in jobs], dtype=float)).astype(kind)


@pytest.mark.parametrize("order", ORDERS)
def test_nine_ages_and_sizes_stay_apart(order):
    """The order of jobs by the exported formula in single precision is that by the configuration's in double."""
    config = site(order)
    text, _ = formula(config, scale(config.queues))
    raw = config.order if config.order not in ORDERS else text
    sizes = {10: (1, 8, 64), 40: (2, 64, 512), 100: (128, 1000, 4096)}
    walltimes = {10: (1800, 7200, 43200), 40: (50000, 90000, 250000), 100: (600, 3600, 86400)}
    jobs = [
        (level, walltimes[level][i], size, age)
        for level in sizes
        for i, size in enumerate(sizes[level])
        for age in (60, 7200, 80000)
    ]
    double, single = values(raw, jobs, np.float64), values(text, jobs, np.float32)
    for i, j in itertools.permutations(range(len(jobs)), 2):
        if double[i] > double[j]:
            assert single[i] > single[j], (jobs[i], jobs[j])


@pytest.mark.parametrize("order", ["lxf", "wfp3", "sjf", "ljf"])
def test_large_priorities_leave_the_digits_of_named_orders(order):
    config = site(order, (1021, 1022, 1023))
    text, _ = formula(config, scale(config.queues))
    jobs = [(1022, 100000, 64, 3600), (1022, 100050, 64, 3600), (1021, 3600, 1, 1000), (1023, 3600, 64, 1)]
    single = values(text, jobs, np.float32)
    assert (single[0] < single[1]) == (order == "ljf")
    assert single[0] != single[1]
    assert single[2] < single[:2].min()
    assert single[3] > single[:2].max()


@pytest.mark.parametrize("order", LARGE)
def test_what_is_added_to_a_large_term_for_the_queue_is_noted_or_refused(order):
    config = site(LARGE[order])
    priorities = scale(config.queues)
    share = lost(config.order, config, tuple(priorities.values.items()))
    assert share > 0.001
    if share > 0.01:
        with pytest.raises(ExportError, match="give the large part a weight that is just large enough"):
            exported(config)
    else:
        assert "single precision" in " ".join(exporter("pbs")().export(config).notes)


def test_what_cannot_be_kept_apart_is_refused():
    config = site('"1e13 * ncpus - walltime"')
    with pytest.raises(ExportError, match=r"single precision, 24 binary digits, in which [0-9.]+% of the pairs"):
        exporter("pbs")().export(config)
    with pytest.raises(ExportError, match="single precision"):
        exported(site('"1e9 * ncpus + fairshare_factor"'))
    # Equal values go by submission, which is the order of waits.
    refuse(site('"1e13 * ncpus + eligible_time"'), scale(config.queues))


def test_the_formula_of_the_server_stays_what_it_is():
    config = site(LARGE["multifactor"])
    priorities = scale(config.queues)
    assert formula(config, priorities, present=MULTIFACTOR) == (MULTIFACTOR, [])
    refuse(site('"1e13 * ncpus - walltime"'), priorities, present="1e13 * ncpus - walltime")


def test_the_jobs_of_a_history_decide_where_they_are_known(tmp_path):
    """Walltimes of whole days stay apart where those of minutes would not."""
    rows = "".join(f"{n},{n * 60},60,{86400 * (n % 3 + 1)},4,{n * 60 + 30 * n},a\n" for n in range(1, 200))
    (tmp_path / "log.csv").write_text("job_id,submit,runtime,walltime,cores,start,queue\n" + rows)
    config = parse("machine: {name: m, cores: 64}\norder: '2e11 - walltime'\nqueues: [{name: a, walltime: [0, 72h]}]\n")
    priorities = scale(config.queues)
    jobs = met(clean(read(tmp_path / "log.csv"), config))
    assert {*jobs.walltime.tolist()} == {86400, 172800, 259200}
    assert (jobs.wait <= 30 * 199).all()
    refuse(config, priorities, jobs)
    with pytest.raises(ExportError, match="single precision"):
        refuse(config, priorities)
    assert exporter("pbs")().meeting(jobs).check(config) == []


def test_an_exporter_that_meets_jobs_is_another():
    one = exporter("pbs")()
    other = one.meeting(Jobs(*np.ones((3, 1), dtype=np.int64)))
    assert one.jobs is None
    assert other.jobs.wait.tolist() == [1]


@settings(max_examples=60)
@given(
    large=st.sampled_from(["1e6", "1e8", "1e10", "1e13"]),
    terms=st.lists(
        st.sampled_from(
            ["min(eligible_time, 604800)", "walltime / 60", "5 * ncpus", "(900 if ncpus <= 8 else 0)", "-walltime / 7"]
        ),
        min_size=1,
        max_size=3,
        unique=True,
    ),
    levels=st.lists(st.integers(1, 1023), min_size=3, max_size=3, unique=True),
)
def test_the_share_of_pairs_is_that_of_a_look_at_each(large, terms, levels):
    text = f"{large} * queue_priority + {' + '.join(terms)}"
    config = site(f'"{text}"', levels)
    rng = np.random.default_rng(3)
    queues = rng.integers(0, 3, 60)
    walltimes, cores = [(3600, 43200), (43201, 86400), (86401, 259200)], [(1, 64), (1, 512), (513, 4096)]
    jobs = [(levels[q], *(int(rng.integers(*each)) for each in (walltimes[q], cores[q], (0, 604800)))) for q in queues]
    jobs = [job for job, q in zip(jobs, queues, strict=True) if q < 2 or job[1] <= 86400]
    wanted, single = values(text, jobs, np.float64), values(text, jobs, np.float32)
    wrong = pairs = 0
    for i, j in itertools.permutations(range(len(jobs)), 2):
        if wanted[i] > wanted[j] + 1e-12 * max(abs(wanted[i]), abs(wanted[j])):
            pairs += 1
            wrong += single[i] < single[j] or (single[i] == single[j] and jobs[i][3] <= jobs[j][3])
    _, walltime, size, wait = np.array(jobs).T
    priorities = tuple(zip(config.names, levels, strict=True))
    assert lost(text, config, priorities, Jobs(size, walltime, wait)) == pytest.approx(wrong / max(1, pairs))
