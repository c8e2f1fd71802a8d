import base64
import hashlib
import json
import math
import re
from dataclasses import replace
from difflib import unified_diff

import pytest

from qconf.config import QueueConfig
from qconf.evaluation.impact import GROWTH, Group, Impact
from qconf.export import Export, exporter
from qconf.fidelity.grade import Grade
from qconf.recommend.doubts import Doubt
from qconf.recommend.fidelity import Fidelity
from qconf.recommend.recommendation import Rung
from qconf.report.changes import definitions
from qconf.report.exported import Exported
from qconf.report.figures import figures
from qconf.report.tune_page import LONGEST_FILE, _group, _proposals, render
from tests.qconf.report import example, small
from tests.qconf.report.page import Page
from tests.qconf.report.snapshots import check_snapshot

HOSTILE = ("<script>alert(1)</script>", "\"'><img/src=x/onerror=alert(2)>&amp;{{7*7}}")


def export(*files, not_exportable=""):
    return Exported(exporter("pbs")(), Export(dict.fromkeys(files, "")), not_exportable)


@pytest.fixture(scope="module")
def page():
    found = example.recommendation()
    exported = export("PLAN.md", "queues.qmgr")
    return render(found, figures(found), history=example.history(), warnings=["watch out"], exported=exported)


def test_opens_offline_and_is_no_large_file(page):
    assert len(page.encode()) < 2_000_000
    parsed = Page(page)
    assert parsed.wrong == []
    assert not set(parsed.tags) & {"link", "img", "iframe", "object", "base"}
    assert parsed.sources == []
    assert parsed.handlers == []
    assert {link for link in parsed.links if not link.startswith("#")} == {"pbs/PLAN.md"}
    assert not re.search(
        r"https?:|//\w+\.\w|\bsrc=|@import|data:", re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL)
    )


def test_no_script_runs_but_its_own(page):
    """The policy names the digest of the one script; what else is in a script element is data."""
    scripts = re.findall(r"<script([^>]*)>(.*?)</script>", page, flags=re.DOTALL)
    assert {kind for kind, _ in scripts[:-1]} == {' type="application/json" class="spec"'}
    assert scripts[-1][0] == ""
    digest = base64.b64encode(hashlib.sha256(scripts[-1][1].encode()).digest()).decode()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    assert f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'" in policy
    assert "unsafe-eval" not in policy
    assert all(json.loads(spec) for _, spec in scripts[:-1])


def test_ids_are_unique_and_every_reference_has_its_target(page):
    parsed = Page(page)
    assert len(parsed.ids) == len(set(parsed.ids))
    references = {link[1:] for link in parsed.links if link.startswith("#")} | set(
        re.findall(r"url\(#([^)]*)\)", page[: page.rindex("<script>")])
    )
    assert references <= set(parsed.ids)


def test_figures_take_the_colours_of_the_page(page):
    """A colour of a chart is a variable of the style, so that it is light, dark or on paper as the page is."""
    specs = "".join(re.findall(r'class="spec">(.*?)</script>', page, flags=re.DOTALL))
    assert page.count('class="chart"') > 8
    assert not re.search("#[0-9a-fA-F]{6}", specs)
    used = set(re.findall(r"var\((--[a-z0-9]+)\)", specs))
    assert used <= set(re.findall(r"(--[a-z0-9]+):", page))


def test_says_first_what_to_do(page):
    text = " ".join(" ".join(Page(page[page.index("<header") :]).texts).split())
    order = ["CHANGE: auto is expected to lower", "Load: pbs/PLAN.md", "How sure", "Who loses", "Undo"]
    order += ["watch out", "What it needs", "How to load it", "Worse off", "Decisions"]
    assert [text.index(word) for word in order] == sorted(text.index(word) for word in order)
    assert "7 282 jobs" in text


@pytest.mark.parametrize("shown_too", ["<s>", "<kbd>r</kbd>"])
def test_nothing_that_was_given_becomes_markup(shown_too):
    found = small.recommendation("CHANGE", HOSTILE, "</style><b>m</b>", "<i>x</i>")
    exported = export("<s>", "PLAN.md") if shown_too == "<s>" else export(not_exportable=shown_too)
    text = render(found, figures(found), warnings=["<u>w</u>"], exported=exported)
    parsed = Page(text)
    assert parsed.wrong == []
    assert parsed.sources == parsed.handlers == []
    assert not set(parsed.tags) & {"img", "b", "i", "u", "s", "kbd"}
    assert len(re.findall("<script>", text)) == 1
    shown = "".join(parsed.texts)
    for given in (*HOSTILE, "</style><b>m</b>", "<i>x</i>", "<u>w</u>", shown_too):
        assert given in shown


def body(verdict):
    text = render(small.recommendation(verdict), {}, exported=export("PLAN.md"))
    return text[text.index("<body>") : text.index("<script>")]


def test_a_change_is_as_it_was_reviewed():
    check_snapshot("report-change.html", body("CHANGE"))


def test_what_differs_where_nothing_is_to_be_changed_is_as_it_was_reviewed():
    pages = (body(verdict).splitlines() for verdict in ("CHANGE", "KEEP"))
    check_snapshot("report-keep.diff", "\n".join([*unified_diff(*pages, "CHANGE", "KEEP", n=1, lineterm=""), ""]))


def test_dates_are_those_of_the_historys_zone():
    text = render(small.recommendation(), {}, history=replace(example.history(), timezone="Europe/Stockholm"))
    assert "2016-02-01 01:00" in text
    assert "Dates are those of zone Europe/Stockholm" in text


def test_why_a_configuration_is_not_exportable():
    text = render(small.recommendation(), {}, exported=export("PLAN.md", not_exportable="PBS has no such order"))
    assert "This configuration is not exportable to PBS: PBS has no such order" in text
    assert "pbs/PLAN.md" not in text


def test_what_to_know_before_what_to_do():
    found = small.recommendation()
    rows = [replace(row, needs=("a timer",)) if row.name == "hybrid" else row for row in found.rows]
    found = replace(found, rows=rows, without_scripts=rows[1])
    near = Fidelity(100, 128880.0, 0.0, 24120.0, 0.0, 0.12, grade=Grade("E", 0.2, 3.0, 90, 12))
    waits = dict.fromkeys(GROWTH, 3600.0)
    groups = (
        Group("queue", "long", 7, 1.0, 0.5, waits, waits | {"mean_wait": 7200.0}),
        Group("size", "jobs of 1 core", 7, 1.0, 0.5, waits, waits | {"mean_wait": 0.0}),
    )
    doubts = tuple(Doubt(what, "a cause", "a command") for what in ("35.80 h recorded", "queue q never drains"))
    found = replace(found, impact=Impact(groups), near=near, doubts=doubts, verdict="CHECK")
    text = render(found, {})
    shown = " ".join(" ".join(Page(text[text.index("<header") :]).texts).split())
    order = ["CHECK", "35.80 h recorded", "Likeliest cause: a cause", "Who loses", "Also: queue q never drains"]
    order += ["What it needs", "a timer", "lxf-easy, gain +8.0 (-2.0 to", "How to load it"]
    order += ["Who wins and who loses", "queue long waits 2.0 times as long: mean", "Strategies"]
    assert [shown.index(word) for word in order] == sorted(shown.index(word) for word in order)
    assert shown.count("jobs of 1 core") == 1  # in the table: it is not worse
    assert '<small class="gain better">-1.00</small>' in text[text.index("jobs by their cores") :]
    assert "without it: keep what you have" in render(replace(found, without_scripts=None), {})
    plain = render(small.recommendation("KEEP"), {})
    assert "Worse off" not in plain
    assert "What it needs" not in plain
    assert 'class="trust"' not in plain


def test_a_change_is_marked_where_it_is_worse_or_better():
    row = {"jobs": 5.0, **dict.fromkeys(GROWTH, 36000.0)}
    worse, better, little = (row | {"mean_wait": wait} for wait in (72000.0, 18000.0, 36600.0))

    def cell(before, after):
        found = _group("q", 5, 0.5, before, after)["cells"][0]
        return found["difference"], found.get("sense", "")

    assert cell(row, worse) == ("+10.00", "worse")
    assert cell(row, better) == ("-5.00", "better")
    assert cell(row, little) == ("+0.17", "")
    assert cell(row, row) == ("0.00", "")
    none = row | dict.fromkeys(GROWTH, math.nan)
    assert cell(none, none) == ("-", "")
    assert cell(row, None) == ("", "")


def test_the_ladder_of_changes():
    found = small.recommendation()
    rungs = (
        Rung("order", replace(found.rows[1], title="by slowdown")),
        Rung("policy", replace(found.rows[2], same_as="static")),
        Rung("partitions and pool", found.rows[3], small.bootstrap(0.2, 0.1, 0.3)),
    )
    text = render(replace(found, ladder=rungs), {})
    part = text[text.index('<section id="ladder"') : text.index('<section id="strategies"')]
    shown = " ".join(" ".join(Page(text).texts).split())
    assert Page(text).wrong == []
    assert "order lxf-easy: by slowdown +8.0 (-2.0 to +17.0) -" in shown
    assert "policy static (= pp) - - ineligible: plain: 95 % wait of queue long" in shown
    assert "partitions and pool hybrid +31.0 (+21.0 to +41.0) +20.0 (+10.0 to +30.0)" in shown
    assert part.count('class="winner ') == 1
    assert "From small to large changes" not in render(found, {})


def proposals(*rows, exported):
    found = replace(small.recommendation(), rows=list(rows))
    return [(each["name"], each["note"], each["file"], bool(each["site"])) for each in _proposals(found, exported)]


def test_what_each_strategy_proposes():
    current, lxf, pp, hybrid, exact = small.recommendation().rows
    rows = (
        current,
        replace(lxf, config=current.config),
        replace(pp, config=pp.config.replace(backfill=False)),
        replace(hybrid, not_exportable="no pool has two entries"),
        exact,
    )
    refused = "Not exportable to PBS: " + "; ".join(exporter("pbs")().check(rows[2].config))
    assert "backfill: false on a partitioned machine" in refused
    assert proposals(*rows, exported=export()) == [
        ("current", "", "queues.qmgr", True),
        ("lxf-easy", "The same configuration as current.", "", False),
        ("pp", refused, "", True),
        ("hybrid", "No batch system can do what was simulated: no pool has two entries", "", True),
        ("exact", "It proposes nothing: a queue has no job", "", False),
    ]
    assert proposals(current, exported=None) == [("current", "", "", True)]


def test_a_long_file_is_cut():
    queues = tuple(QueueConfig(name=f"q{i}", cores=(i, i)) for i in range(1, 60))
    row = replace(small.recommendation().rows[0], config=small.site().replace(queues=queues))
    found = replace(small.recommendation("KEEP"), rows=[row])
    (only,) = _proposals(found, export())
    whole = exporter("pbs")().export(row.config).files["queues.qmgr"].splitlines()
    assert only["text"].splitlines() == whole[:LONGEST_FILE]
    assert only["cut"] == len(whole) - LONGEST_FILE > 0
    assert f"queues.qmgr, without its last {only['cut']} lines" in render(found, {}, exported=export())


def test_definitions_before_and_after():
    base = small.site()
    other = base.with_queues(
        [base.queues[0].model_copy(update={"priority": 3.0}), base.queues[1].model_copy(update={"name": "longer"})]
    )
    states = {row["name"]: row["state"] for row in definitions(base, other)}
    assert states == {"short": "changed", "long": "removed", "longer": "new"}
    assert {row["state"] for row in definitions(base, base)} == {"same"}
    priority = next(fact for fact in definitions(base, other)[0]["facts"] if fact["name"] == "priority")
    assert (priority["before"], priority["after"]) == ("10", "3")


def test_a_doubt_is_in_the_headline_and_not_green():
    for verdict, doubts, kind in (("CHANGE", (), "change"), ("CHECK", (Doubt("it starves", "a cause", "do"),), "bad")):
        text = render(replace(small.recommendation(), verdict=verdict, doubts=doubts), {})
        assert f'<span class="verdict">{verdict}:</span>' in text
        assert f"<title>{verdict}: " in text
        assert f'<header class="{kind}">' in text
