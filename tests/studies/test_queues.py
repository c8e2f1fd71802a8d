"""How often queues are the answer."""

from dataclasses import replace

from studies.queues import Verdict, of, page
from tests.qconf.report import small


def test_a_month_is_what_its_recommendation_says_of_queues():
    assert of(small.recommendation(), 0.65, 3) == Verdict(0.65, 3, "hybrid", True, "hybrid", True, 0.31, None)
    kept = replace(small.recommendation("KEEP"), queues=None)
    assert of(kept, 0.65, 3) == Verdict(0.65, 3, "current", False, None, False, None, None)


def test_the_page_counts_months_by_load():
    months = [
        Verdict(0.85, 0, "auto", False, "hybrid", True, 0.2, -0.3),
        Verdict(0.85, 1, "dqr", True, "dqr", True, 0.1, None),
        Verdict(0.65, 0, "current", False, None, False, None, None),
    ]
    rows = [line.split("|")[1:-1] for line in page(months, "x").splitlines() if line.startswith("| 0.")]
    assert [[cell.strip() for cell in row] for row in rows] == [
        ["0.65", "1", "0", "0", "0", "0", "-", "-"],
        ["0.85", "2", "2", "1", "2", "2", "+10 to +20", "-30 to -30"],
    ]
