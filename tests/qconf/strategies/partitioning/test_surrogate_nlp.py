import numpy as np
import pytest

from qconf.strategies.partitioning.feasible import Feasible, feasible_samples
from qconf.strategies.partitioning.nlp import minimise
from qconf.strategies.partitioning.surrogate import UnfittedError, fit, near


def fractions(count, k=3, seed=0):
    least = np.zeros(k, dtype=np.int64)
    return np.array(feasible_samples(count, Feasible(10_000, least), seed)) / 10_000


def cubic(x):
    a, b = x[..., 0], x[..., 1]
    return 900 + 400 * a - 700 * b + 2000 * a * b - 1500 * a**2 * b + 3000 * b**3


def test_a_cubic_is_recovered():
    x = fractions(120)
    surrogate = fit(x, cubic(x), logs=False)
    assert surrogate.degree == 3
    assert surrogate.r2 > 0.999
    fresh = fractions(50, seed=9)
    assert [surrogate(each) for each in fresh] == pytest.approx(cubic(fresh).tolist(), abs=3)


@pytest.mark.parametrize("logs", [True, False])
def test_the_gradient_is_the_numeric_one(logs):
    x = fractions(120, k=4)
    surrogate = fit(x, cubic(x) + 50 * x[:, 2], logs=logs)
    step = 1e-6
    for each in fractions(10, k=4, seed=3):
        numeric = [(surrogate(each + step * unit) - surrogate(each - step * unit)) / (2 * step) for unit in np.eye(4)]
        assert surrogate.gradient(each) == pytest.approx(numeric, rel=1e-4, abs=1e-3)


def test_a_fit_to_noise_has_a_small_r2():
    x = fractions(80)
    surrogate = fit(x, np.random.default_rng(0).random(80))
    assert surrogate.r2 < 0.5


def test_equal_waits_can_be_fitted():
    x = fractions(40)
    surrogate = fit(x, np.zeros(40))
    assert surrogate(x[0]) == pytest.approx(0)
    assert np.isfinite(surrogate.gradient(x[0])).all()


def test_nothing_is_expected_that_cannot_be():
    """A cubic of waits along twelve sizes expects less than nothing far off; one of their logarithms does not."""
    x = np.column_stack([np.linspace(0.4, 0.5, 12), np.linspace(0.6, 0.5, 12)])
    waits = 40_000 * (x[:, 0] - 0.39) ** 3 * 1e3 + np.tile([0.0, 900.0], 6)
    far = np.column_stack([np.linspace(0, 1, 50), np.linspace(1, 0, 50)])
    plain, logs = (fit(x, waits, (3,), (0.0,), logs=logs) for logs in (False, True))
    assert min(plain(each) for each in far) < 0
    spread = (1 + waits.max()) / (1 + waits.min())
    for each in far:
        assert 0 <= logs(each) <= spread * (1 + waits.max())
        assert np.isfinite(logs.gradient(each)).all()


@pytest.mark.parametrize(
    ("count", "waits", "most", "why"),
    [
        (7, 1.0, None, "7 divisions are too few"),
        (40, np.nan, None, "a mean wait is no number"),
        (40, 1.0, 2, "2 jobs are fewer than the 3 parameters"),
    ],
)
def test_what_cannot_be_fitted_says_why(count, waits, most, why):
    with pytest.raises(UnfittedError, match=why):
        fit(fractions(count), np.full(count, waits), most=most)


def test_a_degree_with_more_coefficients_than_jobs_is_left_out():
    x = fractions(120)
    assert fit(x, cubic(x), most=5).degree == 1
    assert fit(x, cubic(x), most=6).degree == 2


def test_samples_near_the_best_count_most():
    x = fractions(60)
    weights = near(x, 5)
    assert weights[5] == weights.max() == 1
    assert (np.argsort(weights)[-2:] != np.argsort(weights)[:2]).all()
    bent = np.where(x[:, 0] < x[5, 0], 100.0, 100 + 5000 * (x[:, 0] - x[5, 0]))
    local, whole = (fit(x, bent, (1,), weights=each) for each in (weights, None))
    assert abs(local(x[5]) - bent[5]) < abs(whole(x[5]) - bent[5])


class Bowl:
    """(f0 - 0.2)^2 + (f1 - 0.5)^2, in a thousand seconds."""

    def __call__(self, f):
        return 1000 * ((f[0] - 0.2) ** 2 + (f[1] - 0.5) ** 2)

    def gradient(self, f):
        return np.array([2000 * (f[0] - 0.2), 2000 * (f[1] - 0.5), 0.0])


class Broken:
    def __call__(self, f):
        return float("nan")

    def gradient(self, f):
        return np.full(f.size, np.nan)


def free_of(low, slack=1.0, share=(0.0, 0.0, 0.0)):
    return Feasible(1000, np.array(low), slack, np.array(share))


STARTS = [np.array([300, 300, 400]), np.array([100, 100, 800])]


def test_the_known_minimum_is_found():
    found = minimise([(1.0, Bowl())], free_of([0, 0, 0]), STARTS)
    assert np.abs(found.divisions[0] - [200, 500, 300]).max() <= 2
    assert found.converged == found.starts == 2
    assert found.expected == sorted(found.expected)


def test_the_minimum_keeps_bounds_and_proportions():
    found = minimise([(1.0, Bowl())], free_of([300, 0, 0]), STARTS)
    assert abs(found.divisions[0][0] - 300) <= 1
    assert found.divisions[0][0] >= 300
    equal = free_of([0, 0, 0], slack=0.1, share=(1 / 3, 1 / 3, 1 / 3))
    best = minimise([(1.0, Bowl())], equal, STARTS).divisions[0]
    assert equal.keeps(best)
    assert best.sum() == 1000


def test_a_surrogate_of_nan_is_left_out():
    found = minimise([(1.0, Broken())], free_of([0, 0, 0]), STARTS)
    assert found.divisions == []
    assert found.starts == 2


def test_without_surrogates_there_is_no_minimum():
    assert minimise([], free_of([0, 0, 0]), STARTS).divisions == []


def test_what_is_expected_of_a_sample_is_by_a_fit_without_it():
    x = np.random.default_rng(3).dirichlet(np.ones(4), 40)
    waits = cubic(x) + np.random.default_rng(4).normal(0, 50, 40)
    surrogate = fit(x, waits, (1,), logs=False)
    z = (x[:, :-1] - surrogate.mean) / surrogate.scale
    for i in range(0, 40, 7):
        rest = np.delete(np.arange(40), i)
        penalised = np.hstack([np.sqrt(surrogate.penalty) * np.eye(3), np.zeros((3, 1))])  # not the intercept
        rows = np.vstack([np.column_stack([z[rest], np.ones(39)]), penalised])
        found = np.linalg.lstsq(rows, np.concatenate([waits[rest], np.zeros(3)]))[0]
        assert surrogate.crossed[i] == pytest.approx(found[:-1] @ z[i] + found[-1])
    assert surrogate.rmse == pytest.approx(np.sqrt(np.mean((surrogate.crossed - waits) ** 2)))
