"""When which wins: rows that are kept, and a page whose every figure is read from them."""

from __future__ import annotations

import re
from itertools import product
from statistics import geometric_mean
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner

from qconf.errors import InputError
from studies.output import DOCS
from studies.when import __main__ as main
from studies.when import cells, page
from studies.when.cells import Cell, Row, columns, load, text_of
from studies.when.page import FIGURE, PAGE, ROWS

NAMES = [name for name, _, _ in columns()]


def rows(seeds=(0, 1), loads=(0.8, 0.9), limits=(1.0, 0.5), **waits):
    """Every strategy waits 1000 s, some as given; those of seed 1 four times as long, but not `shared`."""
    return [
        Row(seed, limit, offered, name, 3, waits.get(name.replace(" ", "_").replace("-", "_"), 1000.0) * factor)
        for seed in seeds
        for limit in limits
        for offered in loads
        for name in NAMES
        for factor in [4.0 if seed and name != "shared" else 1.0]
    ]


def test_parts_are_of_the_same_point_and_seed():
    found = page.parts(rows(hybrid_common=500.0), "shared")
    assert list(found) == [(1.0, 0.8), (1.0, 0.9), (0.5, 0.8), (0.5, 0.9)]
    assert found[0.5, 0.9]["hybrid common"] == 1.0  # the geometric mean of 0.5 and 2
    assert found[0.5, 0.9]["shared"] == 1.0
    none = page.parts(rows(seeds=(0,), hybrid_common=0.0, shared=0.0), "shared")
    assert none[1.0, 0.8]["hybrid common"] == 1.0


def test_sentences_say_where_hybrid_waits_less_and_by_how_much():
    kept = rows(seeds=(0,), hybrid_adjacent=600.0, static=500.0)
    kept = [*kept, *rows(seeds=(0,), loads=(0.95,), hybrid_adjacent=1300.0, static=2600.0)]
    text = [" ".join(page.sentence(*(page.parts(kept, of) for of in ("shared", "static")), 0.5, merge).split())
            for merge in cells.MERGES]  # fmt: skip
    assert text[0] == (
        "* Limits halved, `adjacent`: it waits less than shared at loads 0.8 and 0.9, by 40 %, and than static at load "
        "0.95, by 50 %."
    )
    assert "it waits less than shared at none of 3 loads (0 % more)" in text[1]
    of_shared = page.parts(rows(seeds=(0,), auto=100.0, pp=100.0), "shared")
    assert "Of 4 points the shortest mean wait has pp at 4 and auto at 4;" in page.winners(of_shared)


@pytest.fixture
def counted(monkeypatch):
    """Calls that compute rows; each strategy waits 1000 s."""
    calls = []

    def measured(cell, names, months, work):
        calls.append((cell, list(names)))
        return [Row(cell.seed, cell.limits, cell.load, name, months, 1000.0) for name in names]

    monkeypatch.setattr(main, "measured", measured)
    return calls


def test_what_is_kept_is_not_computed_again(tmp_path, counted):
    def command(*arguments):
        given = ["--quick", "--workers", "1", "--work", tmp_path / "work", "--out", tmp_path, *arguments]
        return CliRunner().invoke(main.command, [*map(str, given)])

    assert command().exit_code == 0
    assert [names for _, names in counted] == [NAMES] * 4
    text = (tmp_path / PAGE).read_text()
    assert all(len(line) <= 100 or line.startswith(("|", "    ")) for line in text.splitlines())
    kept = tmp_path / "work" / ROWS
    kept.write_text(kept.read_text()[:-9])  # the last line is cut off
    assert command().exit_code == 0
    assert [names for _, names in counted[4:]] == [NAMES[-1:]]
    assert (tmp_path / PAGE).read_text() == text
    result = command("--again", "dqr,pp", "--table", "--loads", "0.75")
    assert "| as configured | 0.75 | **1.00** |" in result.stdout
    assert [names for _, names in counted[5:]] == [["pp", "dqr adjacent", "dqr common"]] * 2
    before = kept.read_text()
    for wrong in (("--loads", "much"), ("--again", "pp,ppp")):
        assert isinstance(command(*wrong).exception, InputError)
    assert kept.read_text() == before


def test_strategies_of_a_point_wait_as_they_do_alone(tmp_path):
    cell = Cell(3, 0.5, 0.7)
    several = cells.measured(cell, ["fcfs-easy", "shared", "pp"], 2, tmp_path)
    (alone,) = cells.measured(cell, ["pp"], 2, tmp_path)
    assert [row.strategy for row in several] == ["fcfs-easy", "shared", "pp"]
    assert several[-1] == alone
    assert several[0].wait < several[1].wait  # whose limits are half of the site's
    assert load(tmp_path / "none") == {}
    (tmp_path / ROWS).write_text(text_of(several))
    assert [*load(tmp_path / ROWS).values()] == several


def test_the_page_and_its_figure_are_those_of_its_rows():
    kept = [*load(DOCS / "figures" / ROWS).values()]
    assert {row.strategy for row in kept} == set(NAMES)
    assert {(row.limits, row.load) for row in kept} == {(limit, at) for limit in cells.LIMITS for at in cells.LOADS}
    assert (DOCS / PAGE).read_text() == page.page(kept)
    drawn = (DOCS / "figures" / FIGURE).read_text()
    assert drawn == page.figure(kept)
    assert len(drawn) < 12_000
    root = ET.fromstring(drawn)
    texts = [each.text for each in root.iter("{http://www.w3.org/2000/svg}text")]
    assert [each for each in texts if each.startswith("limits ")] == [
        f"limits {each}" for each in cells.LIMITS.values()
    ]
    assert {name for name in NAMES if name != "shared"} <= set(texts)
    # What a sentence says of the most is what the rows give.
    waits = {(row.seed, row.limits, row.load, row.strategy): row.wait for row in kept}
    text = " ".join((DOCS / PAGE).read_text().split())

    def ratio(limit, at, name):
        each = [waits[seed, limit, at, name] / waits[seed, limit, at, "shared"] for seed, *_ in waits]
        return round(geometric_mean(each), 2)

    for (limit, what), merge in product(cells.LIMITS.items(), cells.MERGES):
        less = [100 * (1 - each) for at in cells.LOADS if (each := ratio(limit, at, f"hybrid {merge}")) < 1]
        (said,) = re.findall(rf"Limits {what}, `{merge}`: it waits less than shared at (.*?),? and than", text)
        assert str(round(max(less))) in said if less else said.startswith("none")


def test_what_the_manual_says_of_hybrid_is_what_the_rows_give():
    found = page.parts(load(DOCS / "figures" / ROWS).values(), "shared")
    spans = []
    for merge in cells.MERGES:
        for limit in (1.0, 0.5):
            here = [parts[f"hybrid {merge}"] for (of, _), parts in found.items() if of == limit]
            spans.append(f"{min(here):.2f} to {max(here):.2f}")
    text = " ".join((DOCS.parent / "manual" / "strategies.md").read_text().split())
    assert f"waits {spans[0]} of what jobs wait" in text
    assert f"{spans[1]} with every running limit halved" in text
    assert f"(`--merge-cores common`) {spans[2]} and {spans[3]} (" in text
