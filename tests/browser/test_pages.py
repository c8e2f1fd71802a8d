"""The pages in a real browser: what is seen, what is asked for, what a reader can do with them.

The accessibility rules are axe-core's (axe-core/, with its licence); only serious ones fail.
"""

import json
import re
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import pandas as pd
import pytest

from qconf.backtest import backtest, compare
from qconf.config import load
from qconf.evaluation.outcome import Outcome
from qconf.evaluation.period import Period
from qconf.export import exporter
from qconf.fidelity.grade import Grade
from qconf.history import clean, read
from qconf.recommend import Evaluated
from qconf.recommend.fidelity import Day, Fidelity
from qconf.recommend.recommendation import Rung
from qconf.report.backtest_page import render_backtest
from qconf.report.exported import Exported
from qconf.report.figures import backtest_figures, figures
from qconf.report.tune_page import render
from tests.browser.chromium import Browser, available
from tests.qconf.report import example, small

pytestmark = pytest.mark.skipif(available() is None, reason="no chromium here")

HERE = Path(__file__).parent
AXE = HERE / "axe-core" / "axe.min.js"
LOOKS = [(360, False), (360, True), (1440, False), (1440, True), (1920, False)]
HOSTILE = "<img/src=x/onerror=hacked=1>\u202e'\"]"


@pytest.fixture(scope="module")
def browser():
    with Browser() as found:
        yield found


@lru_cache(maxsize=1)
def everything():
    """The page of a recommendation with all that a page can have."""
    found = example.recommendation()
    rungs = tuple(Rung(name, row) for name, row in zip(("order", "policy", "boundaries"), found.rows[1:4], strict=True))
    long = replace(found.row, title="the order, and reservations after 24h, without any of the site's policy")
    rungs = (*rungs, Rung("order", found.row, small.bootstrap(0.2, 0.1, 0.3)), Rung("reservation delay", long))
    found = replace(found, winner=long.name, config=long.config)
    days = tuple(
        Day(name, f"2016-02-{day:02}", 3 * day, 900.0 * day, 400.0 * day + 900 * i)
        for i, name in enumerate(found.base.names)
        for day in range(1, 25)
    )
    near = Fidelity(100, 36 * 3600, 3600, 6 * 3600, 3600, 0.12, days, Grade("E", 0.2, 3.0, 90, 12))
    found = replace(found, ladder=rungs, implausible=("queue medium never drains",))
    exported = Exported.of(found, exporter("pbs")())
    inputs = [{"what": "history", "name": "log.csv", "sha256": "0" * 64}]
    return render(
        found,
        figures(found, example.history(), near),
        history=example.history(),
        fidelity=near,
        warnings=["A warning of some length, so that it is seen how it breaks into lines on a narrow screen."],
        exported=exported,
        versions={"qconf": "1", "numpy": "2"},
        inputs=inputs,
    )


@lru_cache(maxsize=1)
def kept():
    found = example.recommendation("KEEP")
    return render(found, figures(found, example.history()), history=example.history())


@lru_cache(maxsize=1)
def many_periods():
    history = example.history()
    found = backtest(history, load(example.SITE), period="7d", fewest=20, strategies=["current", "lxf-easy", "pp"])
    return render_backtest(found, history, backtest_figures(found, history), ["a warning"])


@lru_cache(maxsize=1)
def one_period():
    base, january = load(example.SITE), example.SAMPLE.with_name("cray-xc40-2016-01.csv.gz")
    first, later = clean(read([january]), base), example.history()
    found = compare(first, later, base, strategies=["current", "lxf-easy", "pp"])
    history = first.joined(later)
    return render_backtest(found, history, backtest_figures(found, history))


@lru_cache(maxsize=1)
def hostile(folder):
    """The page of jobs whose users, queues, ids and machine try to be more than text."""
    queues = (HOSTILE.replace("\u202e", ""), "</script><script>hacked=2</script>")
    found = small.recommendation(names=queues, machine=queues[0], text=HOSTILE)
    rows = [
        {"job_id": f"{HOSTILE}{i}", "submit": 1454284800 + 600 * i, "runtime": 5000, "walltime": 7000, "cores": 60}
        | {"queue": queues[i % 2], "user": f"=cmd()|{HOSTILE}"}
        for i in range(200)
    ]
    pd.DataFrame(rows).to_csv(folder / "log.csv", index=False)
    open_to_all = {"cores": (1, 128), "walltime": (0, 86400), "max_run": None, "max_user_run": None}
    base = small.site(queues).replace(
        queues=tuple(queue.model_copy(update=open_to_all) for queue in small.site(queues).queues)
    )
    history = clean(read([folder / "log.csv"]), base)
    period = Period.of(history, base)
    outcome = Outcome(period, period.simulate(base))
    found = replace(found, present=Evaluated(base, outcome), changed=Evaluated(base, outcome))
    return render(found, figures(found, history), history=history, warnings=[HOSTILE])


def write(folder, text):
    path = folder / "report.html"
    path.write_text(text, encoding="utf-8")
    return path


PAGES = {"change": everything, "keep": kept, "backtest": many_periods, "compare": one_period}


@pytest.fixture(scope="module", params=PAGES)
def page(request, tmp_path_factory):
    return write(tmp_path_factory.mktemp(request.param), PAGES[request.param]())


@pytest.fixture(scope="module")
def change(tmp_path_factory):
    return write(tmp_path_factory.mktemp("change"), everything())


SEEN = (HERE / "seen.js").read_text(encoding="utf-8")


@pytest.mark.parametrize(("width", "dark"), LOOKS)
def test_everything_is_seen_and_nothing_lies_on_another(browser, page, width, dark):
    browser.open(page, width=width, dark=dark)
    assert browser.errors == []
    assert browser.requests == [page.as_uri()]
    found = browser.run(SEEN)
    assert found["wide"] <= width
    assert len(found["figures"]) > 3
    assert (found["small"], found["crossing"], found["clipped"]) == ([], [], [])
    assert (found["outside"], found["texts"]) == ([], [])
    left, top, right, bottom = found["verdict"]
    assert 0 <= left < right <= width
    assert 0 <= top < bottom < 700, "the verdict is on the first screen"
    background = browser.run("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", background))) < 200) == dark


@pytest.mark.parametrize(("width", "dark"), [(360, False), (1440, True)])
def test_no_serious_finding_of_axe(browser, page, width, dark):
    browser.open(page, width=width, dark=dark)
    browser.run("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    browser.run(AXE.read_text(encoding="utf-8") + "; 0")
    found = json.loads(browser.run("axe.run(document).then((found) => JSON.stringify(found))"))
    serious = [
        (each["id"], each["nodes"][0]["html"][:160], each["nodes"][0].get("failureSummary", "")[:300])
        for each in found["violations"]
        if each["impact"] in ("serious", "critical")
    ]
    assert serious == []
    assert len(found["passes"]) > 15, "the rules did run"


def test_every_figure_of_a_recommendation_is_there(browser, change):
    browser.open(change)
    names = browser.run("[...document.querySelectorAll('figure')].map((each) => each.id.replace('figure-', ''))")
    assert set(names) == {
        *("order", "machine", "queue-map", "ladder", "strategies", "over-time", "gantt", "waits", "core-hours"),
        *("wait-by-size", "utilization-by-size", "partition-path", "surrogate", "recorded"),
    }
    links = browser.run("[...document.querySelectorAll('nav a')].map((each) => each.getAttribute('href'))")
    assert all(browser.run(f"document.querySelector({link!r}) !== null") for link in links)


def column(browser, table, number):
    code = f"[...document.querySelectorAll('#{table} tbody tr:first-child')].map((r) => r.cells[{number}].innerText)"
    return browser.run(code)


def test_tables_sort_both_ways_and_keep_what_belongs_together(browser, change):
    browser.open(change)
    before = column(browser, "strategies", 1)
    why = (
        "[...document.querySelectorAll('#strategies tbody')].map((b) => [b.rows[0].cells[0].innerText, b.rows.length])"
    )
    together = dict(browser.run(why))
    for times, reverse in ((1, True), (2, False)):
        browser.run("document.querySelectorAll('#strategies thead button')[1].click()")
        numbers = [float(each) for each in column(browser, "strategies", 1) if each != "-"]
        assert numbers == sorted(numbers, reverse=reverse), times
        assert column(browser, "strategies", 1)[-1] == "-", "what has no number comes last"
        assert dict(browser.run(why)) == together
    assert sorted(column(browser, "strategies", 1)) == sorted(before)
    assert browser.run("document.querySelectorAll('#strategies th')[1].getAttribute('aria-sort')") == "ascending"
    browser.run("document.querySelectorAll('#strategies thead button')[0].click()")
    names = [each.split()[0] for each in column(browser, "strategies", 0)]
    assert names == sorted(names, reverse=True)


def test_a_group_sorts_by_its_difference(browser, change):
    browser.open(change)
    cells = "[...document.querySelector('#winners tbody').rows].map((row) => row.cells[3])"
    rows = f"{cells}.map((cell) => [Number(cell.dataset.v), cell.innerText])"
    browser.run("document.querySelectorAll('#winners thead button')[3].click()")
    found = browser.run(rows)
    assert [each[0] for each in found] == sorted((each[0] for each in found), reverse=True)
    for value, text in found:
        assert float(text.split()[-1]) == pytest.approx(value / 3600, abs=0.006)


def place(browser, code):
    """Scroll an element into view and return its middle."""
    box = f"(() => {{ const e = {code}; e.scrollIntoView({{block: 'center', behavior: 'instant'}});"
    return browser.run(
        box + " const r = e.getBoundingClientRect(); return [r.left + r.width / 2, r.top + r.height / 2, r.width]; })()"
    )


def tip(browser):
    return browser.run("document.querySelector('.tip').hidden ? '' : document.querySelector('.tip').textContent")


#: The largest job that lies in one piece and well inside the first chart.
LARGEST = """[...document.querySelector('.plot').querySelectorAll('path')]
  .map((path) => [path, path.getBoundingClientRect()])
  .filter(([path, box]) => path.getAttribute('d').indexOf('M', 1) < 0 && box.left > 0 && box.right < innerWidth - 80)
  .sort(([, a], [, b]) => b.width * b.height - a.width * a.height)[0][0]"""


def test_a_job_of_the_gantt_chart_gives_its_numbers(browser, change):
    browser.open(change)
    jobs = json.loads(browser.run("document.getElementById('gantt-data').textContent"))["jobs"]
    place(browser, "document.getElementById('figure-gantt')")
    number = int(browser.run(f"{LARGEST}.dataset.j"))
    x, y, _ = place(browser, LARGEST)
    browser.mouse("mouseMoved", x, y)
    text = tip(browser)
    name, user, _, cores, *_, before, after = jobs[number]
    assert f"job {name}, user {user}" in text
    assert f", {cores} cores" in text
    assert f"waited {before / 3600:.2f} h before" in text
    assert f"waited {after / 3600:.2f} h after" in text
    assert browser.run("document.querySelectorAll('.plot path.at').length") == 2, "marked in both charts"
    browser.mouse("mouseMoved", 2, 2)
    assert tip(browser) == ""
    assert browser.run("document.querySelectorAll('.plot path.at').length") == 0


def test_the_gantt_chart_zooms_and_moves(browser, change):
    browser.open(change)
    view = "document.querySelectorAll('.plot')[{}].getAttribute('viewBox').split(' ').map(Number)"

    def shown():
        one, other = (browser.run(view.format(i)) for i in (0, 1))
        assert one == other
        return one[0], one[2]

    def press(name):
        browser.run(f"document.querySelector('[data-do={name}]').click()")
        return shown()

    start, long = shown()
    assert long == 2 * 86400
    assert press("in")[1] == long / 2
    assert press("out") == (start, long)
    assert press("right") == (start + long / 2, long)
    assert press("first") == (start, long)
    whole = press("all")
    assert whole[0] == 0
    assert whole[1] > 8 * 86400
    labels = browser.run("[...document.querySelectorAll('.times text')].map((each) => each.textContent)")
    assert 3 <= len(labels) <= 12
    assert "Feb" in labels[0]
    press("first")
    x, y, width = place(browser, "document.querySelector('.idle')")
    browser.mouse("mousePressed", x, y, button="left", clickCount=1)
    browser.mouse("mouseMoved", x + width / 4, y, button="left")
    browser.mouse("mouseReleased", x + width / 4, y, button="left", clickCount=1)
    assert shown()[0] == pytest.approx(start - long / 4, abs=0.02 * long)


def test_lines_say_their_values_at_the_pointer(browser, change):
    browser.open(change)
    x, y, _ = place(browser, "document.querySelector('#figure-over-time .panel rect')")
    browser.mouse("mouseMoved", x, y)
    moment, before, after = tip(browser).splitlines()
    assert re.fullmatch(r"\d+ Feb,? \d\d:\d\d", moment)
    assert 0 <= float(re.fullmatch(r"before: ([\d.]+) %", before)[1]) <= 100
    assert 0 <= float(re.fullmatch(r"after: ([\d.]+) %", after)[1]) <= 100
    x, y, _ = place(browser, "document.querySelector('#figure-waits .panel rect')")
    browser.mouse("mouseMoved", x, y)
    assert re.match(r"after [\d.]+ h", tip(browser))


def test_without_scripts_all_is_still_there(browser, change):
    browser.open(change, script=False)
    found = browser.run(SEEN)
    assert len(found["figures"]) == 14
    assert (found["small"], found["outside"]) == ([], [])
    assert browser.run("document.querySelector('h1').innerText").startswith("CHANGE")
    assert not browser.run("document.querySelector('.controls').checkVisibility()"), "no button that does nothing"
    assert browser.run("document.querySelectorAll('.times text').length") >= 3
    assert browser.run("document.querySelectorAll('thead button').length") == 0


def test_on_paper(browser, page):
    browser.open(page, width=794, paper=True)
    assert not browser.run("document.querySelector('nav').checkVisibility()")
    assert browser.run("document.documentElement.scrollWidth") <= 794
    sheets = browser.call("Page.printToPDF", printBackground=False)["data"]
    assert len(sheets) > 20_000


def test_hostile_names_stay_text(browser, tmp_path):
    path = write(tmp_path, hostile(tmp_path))
    browser.open(path)
    assert (browser.errors, browser.requests) == ([], [path.as_uri()])
    assert browser.run("typeof hacked") == "undefined"
    assert browser.run("document.querySelectorAll('main img, main script').length") == 0
    shown = HOSTILE.replace("\u202e", "\\u202e")
    assert shown in browser.run("document.querySelector('#warnings').textContent")
    place(browser, "document.getElementById('figure-gantt')")
    browser.run("document.querySelector('[data-do=all]').click()")
    x, y, _ = place(browser, LARGEST)
    browser.mouse("mouseMoved", x, y)
    assert f"user =cmd()|{shown}" in tip(browser)
    assert browser.run("document.querySelector('.tip').children.length") == 0
    assert browser.run("typeof hacked") == "undefined"
    script = "const script = document.createElement('script'); script.textContent = 'hacked = 3';"
    assert browser.run(f"{script} document.body.append(script); typeof hacked") == "undefined", (
        "the page's policy runs its own script alone"
    )
