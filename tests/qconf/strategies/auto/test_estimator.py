"""The estimator: what the prior and a site's months make of each order."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from qconf.evaluation.score import TAILS
from qconf.strategies.auto.estimator import MONTH, STRENGTH, posterior, prices, prior_of, ranked
from qconf.strategies.auto.families import FAMILIES

WEIGHTS = np.array([1.0, 0.4, 1.0])
PRIOR = np.array([[-0.5, -0.8, 0.3, 0.1], [-0.4, -0.6, 0.2, 0.0], [0.0, 0.0, 0.0, 0.0]])
numbers = st.floats(-3, 3)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_order_has_a_prior_and_the_best_gains(family):
    members = FAMILIES[family]
    assert len({each.name for each in members}) == len(members)
    prior = prior_of(members)
    assert prior.shape == (len(members), 4)
    best = prior[np.argmin(prices(prior, WEIGHTS))]
    assert best[0] < -0.2
    assert (prior[:, 3] >= 0).all()


def test_by_the_prior_the_best_general_order_is_better_than_all_rivals_and_reserves_at_once():
    members = FAMILIES["formula"]
    found = ranked(members, prior_of(members), np.array([1.0, 0.4, TAILS]))
    best = members[int(np.argmin(found))]
    assert "general" in best.name
    assert best.delay == 0


@given(arrays(float, (3, 4), elements=numbers))
def test_without_months_it_is_the_prior(prior):
    np.testing.assert_allclose(posterior(prior, np.zeros((0, 3, 4)), []), prior)


@given(arrays(float, (3, 4), elements=numbers), st.integers(1, 40), st.integers(1, 9000))
def test_months_without_waits_change_no_ranking(prior, months, jobs):
    quiet = posterior(prior, np.zeros((months, 3, 4)), [jobs] * months)
    share = STRENGTH / (STRENGTH + months * min(jobs / MONTH, 1))
    np.testing.assert_allclose(quiet, share * prior, atol=1e-12)


@given(arrays(float, (3, 4), elements=numbers), arrays(float, (3, 4), elements=numbers), st.integers(1, 30))
def test_it_moves_from_the_prior_to_the_site_as_months_come(prior, site, months):
    found = posterior(prior, np.repeat(site[None], months, axis=0), [MONTH] * months)
    assert (np.minimum(prior, site) - 1e-9 <= found).all()
    assert (found <= np.maximum(prior, site) + 1e-9).all()
    np.testing.assert_allclose(found, (STRENGTH * prior + months * site) / (STRENGTH + months))


def test_a_month_of_few_jobs_weighs_less_and_the_prior_has_nothing_of_targets():
    month = np.full((1, 3, 5), -1.0)
    few, many = (posterior(PRIOR, month, [jobs]) for jobs in (MONTH // 10, 10 * MONTH))
    assert (np.abs(few[:, :4] - PRIOR) < np.abs(many[:, :4] - PRIOR)).all()
    assert (many[:, 4] == -1).all()


def test_the_price_of_the_tails_decides_between_wait_and_longest_wait():
    cheap, dear = (int(np.argmin(prices(PRIOR, np.array([1.0, 0.4, tails])))) for tails in (0.0, 8.0))
    assert (cheap, dear) == (0, 1)
    targets = np.hstack([PRIOR, [[0.0], [0.0], [-5.0]]])
    assert np.argmin(prices(targets, WEIGHTS)) == 2
