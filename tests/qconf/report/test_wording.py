import math

import numpy as np
import pytest

from qconf.report import wording
from tests.qconf.report import small


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0.00"), (5400, "1.50"), (3_599_999, "1000.00"), (36e6, "10000"), (math.nan, "-")]
)
def test_hours(seconds, text):
    assert wording.hours(seconds) == text


@pytest.mark.parametrize(("gain", "text"), [(None, "-"), (math.nan, "-"), (0.2, "+20.0"), (-0.051, "-5.1")])
def test_gain(gain, text):
    assert wording.gain_text(gain) == text


def test_the_gain_on_resampled_days_has_its_interval():
    assert wording.interval_text(None) == "-"
    assert wording.interval_text(small.bootstrap(0.074, -0.02, 0.17)) == "+7.4 (-2.0 to +17.0)"


def test_texts_in_which_one_number_changes_are_one():
    raised = [f"slack raised from 0.30 to {number} in small72" for number in ("0.41", "0.34", "0.4")]
    merged = wording.merged([raised[0], "no job in a", *raised[1:], raised[0], "no job in b"])
    assert merged == [
        ("slack raised from 0.30 to 0.34 ... 0.41 in small72", raised),
        ("no job in a", ["no job in a"]),
        ("no job in b", ["no job in b"]),
    ]


def test_texts_in_which_two_numbers_change_stay_apart():
    texts = ["from 1 to 2", "from 1 to 3", "from 2 to 4", "queue a1", "queue a2"]
    assert [text for text, _ in wording.merged(texts)] == ["from 1 to 2 ... 3", "from 2 to 4", "queue a1", "queue a2"]


def test_a_short_interval_is_in_whole_per_cents():
    assert wording.interval_text(small.bootstrap(0.074, -0.02, 0.176), short=True) == "+7.4 (-2 to +18)"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        ("", "-"),
        ([], "-"),
        (True, "yes"),
        (np.bool_(False), "no"),
        (np.float64(0.123456789), "0.123457"),
        (math.inf, "-"),
        (np.array([1, 2]), "1, 2"),
        ({"a": [1, {"b": 2.0}]}, "a 1, b 2"),
        (28354, "28354"),
    ],
)
def test_values_of_decisions(value, text):
    assert wording.value_text(value) == text


def test_facts():
    base = small.site()
    short = wording.queue_facts(base.queues[0], base)
    assert short["running at most"] == "40 jobs, 1 job a user"
    assert short["runs on (cores)"] == "whole machine"
    assert wording.queue_facts(base.queues[1], base)["cores"] == "1 and more"
    pooled = wording.site_facts(small.hybrid(base))["common pool"]
    assert pooled == "32 cores, above priority factor 2.5, placement pool, entry either"
