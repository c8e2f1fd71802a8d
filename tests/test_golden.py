"""A few of the golden schedules; ``python -m tests.golden`` compares all."""

import json

import pytest

from tests import generate, golden

FILE = json.loads(golden.FILE.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "name",
    [
        *("easy", "shared-all", "hybrid-all", "hybrid-top-jobs", "queues-all", "fairshare-all", "entering-all"),
        *("depth-all", "qos-all", "preempt-limits", "multiqueue", "planned"),
    ],
)
def test_no_start_has_moved(name: str) -> None:
    assert golden.few(name) == FILE["disciplines"][name][0]


def test_every_discipline_that_is_tested_has_a_digest() -> None:
    assert {*generate.TESTED} <= FILE["disciplines"].keys()
