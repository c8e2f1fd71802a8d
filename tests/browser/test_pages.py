"""The pages in a real browser: what is seen, what is asked for, what a reader can do with them.

The accessibility rules are axe-core's (axe-core/, with its licence); only serious ones fail.
"""

import base64
import json
import re
from pathlib import Path

import pytest

from tests.browser import pages
from tests.browser.chromium import Browser, available

pytestmark = pytest.mark.skipif(available() is None, reason="no chromium here")

HERE = Path(__file__).parent
AXE = HERE / "axe-core" / "axe.min.js"
LOOKS = [(360, False), (360, True), (1440, False), (1440, True), (1920, False)]
PAGES = {
    "change": pages.change,
    "keep": pages.keep,
    "backtest": pages.many_periods,
    "compare": pages.one_period,
    "predict": pages.ahead,
    "fidelity": pages.near,
    "calibrate": pages.calibrated,
}
OF_CHANGE = ["glance", "order", "machine", "queue-map", "ladder", "strategies", "over-time", "gantt", "waits"]
OF_CHANGE += ["core-hours", "recorded", "wait-by-size", "utilization-by-size", "partition-path", "surrogate"]
FIGURES = {"change": {*OF_CHANGE}, "predict": {"starts", "gantt", "use"}}
FIGURES |= {"fidelity": {"agreement"}, "calibrate": {"agreement"}}


@pytest.fixture(scope="module")
def browser():
    with Browser() as found:
        yield found


def write(folder, text, name="report"):
    path = folder / f"{name}.html"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture(scope="module", params=PAGES)
def page(request, tmp_path_factory):
    return write(tmp_path_factory.mktemp("page"), PAGES[request.param](), request.param)


@pytest.fixture(scope="module")
def change(tmp_path_factory):
    return write(tmp_path_factory.mktemp("change"), pages.change())


SEEN = (HERE / "seen.js").read_text(encoding="utf-8")


def show(browser, path, **look):
    """Open a page and all its layers, with their charts drawn as wide as they are then."""
    browser.open(path, **look)
    opened = "document.querySelectorAll('details.layer').forEach((each) => { each.open = true; })"
    browser.run(f"ready.then(() => {{ {opened}; return new Promise((done) => setTimeout(done, 100)); }})")
    browser.run("Promise.all([...document.querySelectorAll('.chart')].map((each) => each.drawing)).then(() => 0)")


@pytest.mark.parametrize(("width", "dark"), LOOKS)
def test_everything_is_seen_and_nothing_lies_on_another(browser, page, width, dark):
    show(browser, page, width=width, dark=dark)
    assert browser.errors == []
    assert browser.requests == [page.as_uri()]
    found = browser.run(SEEN)
    assert found["wide"] <= width
    names = {each.removeprefix("figure-") for each in found["figures"]}
    assert names == FIGURES[page.stem] if page.stem in FIGURES else len(names) > 3
    assert (found["small"], found["crossing"], found["clipped"]) == ([], [], [])
    assert (found["outside"], found["texts"]) == ([], [])
    left, top, right, bottom = found["verdict"]
    assert 0 <= left < right <= width
    assert 0 <= top < bottom < 700, "the verdict is on the first screen"
    background = browser.run("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", background))) < 200) == dark


@pytest.mark.parametrize(("width", "dark"), [(360, False), (1440, True)])
def test_no_serious_finding_of_axe(browser, page, width, dark):
    show(browser, page, width=width, dark=dark)
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


def test_the_contents_lead_to_every_section(browser, page):
    browser.open(page)
    links = browser.run("[...document.querySelectorAll('nav a')].map((each) => each.getAttribute('href').slice(1))")
    assert links == browser.run("[...document.querySelectorAll('section')].map((each) => each.id)")


CELLS = """[...document.querySelectorAll("table.sortable")].map((table) => {
  const many = table.tBodies.length > 1;
  const rows = () => [...(many ? table.tBodies : table.tBodies[0].rows)].map((each) => each.rows?.[0] ?? each);
  const text = (cell) => cell.dataset.v ?? (cell.querySelector("ins") ?? cell).textContent;
  return [...table.tHead.rows[0].cells].map((head, i) => {
    const cells = () => rows().map((row) => text(row.cells[i]));
    const sorted = () => {
      head.querySelector("button").click();
      return cells();
    };
    return [head.textContent, cells(), sorted(), sorted()];
  });
})"""
UNITS = {"d": 86400, "h": 3600, "m": 60, "s": 1}


def counts_as(text):
    """What a reader takes a cell for: nothing, a duration, a number with a unit or an interval behind it, or a text."""
    text = re.sub(r"\s", "", text).replace("\N{MINUS SIGN}", "-")
    if text in ("", "-"):
        return None
    if re.fullmatch(r"(\d+[dhms])+(to.*)?", text):
        return sum(int(n) * UNITS[unit] for n, unit in re.findall(r"(\d+)([dhms])", text.partition("to")[0]))
    if re.match(r"\d+[-:]\d", text):  # an instant, a day, or a clock; of a period its change
        change = re.search(r"[-+][\d.]+(?=%$)", text)
        return float(change[0]) if change else text
    number = re.match(r"[-+]?\.?\d[\d.]*", text)
    return float(number[0]) if number else text


def test_every_column_of_every_table_sorts_both_ways(browser, page):
    browser.open(page)
    tables = browser.run(CELLS)
    assert tables
    for head, before, down, up in (column for table in tables for column in table):
        assert sorted(before) == sorted(down) == sorted(up)
        keys = [[each for each in map(counts_as, cells) if each is not None] for cells in (down, up)]
        last = len(keys[0])
        assert all(counts_as(each) is None for cells in (down, up) for each in cells[last:]), f"{head}: what is missing"
        if len({type(each) for each in keys[0]}) == 1 and not (type(keys[0][0]) is str and keys[0][0][0].isalpha()):
            assert keys[1] == sorted(keys[1]), head
            assert keys[0] == sorted(keys[0], reverse=True), head
        else:
            assert len(set(before)) == 1 or down != up, head


def column(browser, table, number):
    code = f"[...document.querySelectorAll('#{table} tbody tr:first-child')].map((r) => r.cells[{number}].innerText)"
    return browser.run(code)


def test_tables_sort_both_ways_and_keep_what_belongs_together(browser, change):
    show(browser, change)
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
    show(browser, change)
    cells = "[...document.querySelector('#winners tbody').rows].map((row) => row.cells[3])"
    rows = f"{cells}.map((cell) => [Number(cell.dataset.v), cell.innerText])"
    browser.run("document.querySelectorAll('#winners thead button')[3].click()")
    found = browser.run(rows)
    assert [each[0] for each in found] == sorted((each[0] for each in found), reverse=True)
    for value, text in found:
        assert float(text.split()[-1]) == pytest.approx(value / 3600, abs=0.006)


def test_the_first_screen_says_what_to_do_and_shows_the_waits(browser, change):
    browser.open(change, width=1440)
    browser.run("ready")
    titles = browser.run("[...document.querySelectorAll('.tiles h2')].map((each) => each.textContent)")
    assert titles == ["Do", "How sure", "Who loses", "Undo"]
    assert browser.run("document.querySelector('#figure-glance svg').getBoundingClientRect().top") < 800
    assert browser.run("[...document.querySelectorAll('details.layer')].map((each) => each.open)") == [False] * 3
    words = browser.run("document.querySelector('#boss').textContent.split(/\\s+/).length")
    assert words < 300


def place(browser, code):
    """Scroll an element into view and return its middle."""
    box = f"(() => {{ const e = {code}; e.scrollIntoView({{block: 'center', behavior: 'instant'}});"
    return browser.run(
        box + " const r = e.getBoundingClientRect(); return [r.left + r.width / 2, r.top + r.height / 2, r.width]; })()"
    )


def tip(browser):
    return browser.run("document.querySelector('.tip').hidden ? '' : document.querySelector('.tip').textContent")


def middle_of(browser, figure):
    """Return the middle of a mark of a figure that says something, and what that is."""
    every = f"marksOf(document.querySelector('#figure-{figure} .chart'))"
    mark = f"{every}[{every}.length >> 1]"
    x, y, _ = place(browser, mark)
    return x, y, browser.run(f"{mark}.__data__.tooltip")


@pytest.mark.parametrize(
    ("figure", "words"),
    [
        ("gantt", r"job \d+, user .*\n.* cores\n"),
        ("over-time", r"2016-02-\d\d \d\d:\d\d\n(before|after): \d"),
        ("waits", "start within"),
    ],
)
def test_marks_say_their_values_at_the_pointer(browser, change, figure, words):
    show(browser, change)
    x, y, said = middle_of(browser, figure)
    assert re.search(words, said)
    browser.mouse("mouseMoved", x, y)
    assert re.search(words, tip(browser))


def test_marks_say_their_values_by_the_keyboard(browser, change):
    show(browser, change)
    browser.run("document.querySelector('#figure-glance .chart').focus()")
    found = []
    for _ in range(3):
        browser.call("Input.dispatchKeyEvent", type="keyDown", key="ArrowRight")
        found.append(tip(browser))
    assert len(set(found)) == 3
    assert "all jobs, before\nmean" in found[0]
    browser.run("document.activeElement.blur()")
    assert tip(browser) == ""


def test_what_the_wheel_zooms_the_keyboard_zooms(browser, change):
    show(browser, change)
    chart = "document.querySelector('#figure-gantt .chart')"
    wide = f"(([a, b]) => b - a)({chart}.view.scale('x').domain().map(Number))"

    def press(key):
        browser.call("Input.dispatchKeyEvent", type="keyDown", key=key)
        browser.run("new Promise((done) => setTimeout(done, 300))")
        return browser.run(wide)

    browser.run(f"{chart}.focus()")
    whole = browser.run(wide)
    assert press("ArrowRight") == whole
    assert (press("+"), press("+")) == (whole / 2, whole / 4)
    said = tip(browser)
    assert re.search(r"job \d+, user", said)
    for _ in range(40):
        press("ArrowLeft")
    x = browser.run("document.querySelector('.at').getBoundingClientRect().left")
    left, right = browser.run(f"(({{left, right}}) => [left, right])({chart}.getBoundingClientRect())")
    assert left <= x <= right, "what is read is seen"
    assert tip(browser) != said
    assert press("-") == pytest.approx(whole / 2)
    assert press("0") == whole


def test_every_figure_says_its_values_by_the_keyboard(browser, page):
    show(browser, page)
    silent = browser.run(
        "[...document.querySelectorAll('.chart')].filter((each) => !marksOf(each).length)"
        ".map((each) => each.parentElement.id)"
    )
    assert silent == []


def test_no_legend_takes_the_place_of_its_chart(browser, page):
    for width in (360, 717, 1440):
        show(browser, page, width=width)
        found = browser.run(
            "[...document.querySelectorAll('.chart')].filter((each) => each.clientWidth)"
            ".map((e) => [e.parentElement.id, e.querySelector('svg').getAttribute('width') / e.clientWidth])"
        )
        assert [each for each in found if not 0.9 < each[1] < 1.02] == [], width


def luminance(colour):
    parts = [int(each) / 255 for each in re.findall(r"\d+", colour)[:3]]
    red, green, blue = (each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("dark", [False, True])
def test_before_and_after_differ_without_colour(browser, change, dark):
    browser.open(change, dark=dark)
    browser.run("ready")
    marks = "marksOf(document.querySelector('#figure-glance .chart')).filter((each) => each.tagName === 'line')"
    strokes = browser.run(f"{marks}.map((e) => [getComputedStyle(e).stroke, e.getAttribute('stroke-dasharray') ?? ''])")
    looks = dict(strokes)
    one, other = sorted(map(luminance, looks))
    assert (other + 0.05) / (one + 0.05) >= 2
    assert len(set(looks.values())) == 2, "one of both is dashed"


def contrast(one, other):
    low, high = sorted(map(luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("dark", [False, True])
def test_each_verdict_has_a_colour_of_its_own_that_is_read(browser, change, dark):
    browser.open(change, dark=dark)
    found = {}
    for verdict in ("change", "keep", "bad"):
        look = (
            f"(() => {{ document.querySelector('header').className = '{verdict}';"
            " return ['.verdict', 'header'].map((each) => getComputedStyle(document.querySelector(each))); })()"
            ".map((each, i) => (i ? each.backgroundColor : each.color))"
        )
        found[verdict], background = browser.run(look)
        assert contrast(found[verdict], background) >= 4.5, verdict
    assert len({*found.values()}) == 3


def test_without_scripts_texts_and_tables_are_there(browser, change):
    browser.open(change, script=False)
    assert browser.run("document.querySelector('h1').innerText").startswith("CHECK: queue medium never drains")
    assert "Charts are drawn by a script" in browser.run("document.querySelector('noscript').textContent")
    assert len(browser.run("[...document.querySelectorAll('figcaption')].map((each) => each.textContent)")) == 15
    assert browser.run("document.querySelectorAll('thead button, .copy').length") == 0


PAPER = """(() => {
  const all = [...document.querySelectorAll("main *")].filter((each) => each.checkVisibility() && !each.closest("svg"));
  const right = document.documentElement.clientWidth;
  return {
    cut: all.filter((each) => each.getBoundingClientRect().right > right + 1)
      .map((each) => each.outerHTML.slice(0, 90)),
    shut: [...document.querySelectorAll("details > *")].filter((each) => !each.checkVisibility())
      .map((each) => [each.tagName, Boolean(each.closest(".method"))]),
    nav: document.querySelector("nav").checkVisibility(),
    colours: [document.body, document.querySelector("header")].map((each) => getComputedStyle(each).backgroundColor),
    queues: [0, 1, 2, 3, 4, 5, 6, 7].map((i) => {
      document.body.style.color = `var(--q${i})`;
      return getComputedStyle(document.body).color;
    }),
  };
})()"""


def test_on_paper(browser, page):
    """Between the margins of A4, printed by who reads in the dark: nothing is cut off, shut or dark."""
    browser.open(page, width=717, dark=True, paper=True)
    browser.run("ready")
    found = browser.run(PAPER)
    assert found["cut"] == []
    assert all(tag == "PRE" or method for tag, method in found["shut"]), "what is not on paper is the method's"
    assert not found["nav"]
    assert found["colours"] == ["rgb(255, 255, 255)"] * 2
    assert found["queues"][0] == "rgb(0, 114, 178)"
    for i in range(7):
        assert contrast(*found["queues"][i : i + 2]) >= 2, "queues that are neighbours differ in grey"
    size = {"paperWidth": 8.27, "paperHeight": 11.69}
    sheets = base64.b64decode(browser.call("Page.printToPDF", printBackground=True, **size)["data"])
    assert 1 < len(re.findall(rb"/Type /Page\b", sheets)) <= (6 if page.stem in ("change", "keep") else 24)


def test_hostile_names_stay_text(browser, tmp_path):
    path = write(tmp_path, pages.hostile(tmp_path))
    browser.open(path)
    assert (browser.errors, browser.requests) == ([], [path.as_uri()])
    assert browser.run("typeof hacked") == "undefined"
    assert browser.run("document.querySelectorAll('main img, main script:not(.spec)').length") == 0
    shown = pages.HOSTILE.replace("\u202e", "\\u202e")
    assert shown in browser.run("document.querySelector('#warnings').textContent")
    show(browser, path)
    x, y, _ = middle_of(browser, "gantt")
    browser.mouse("mouseMoved", x, y)
    assert f"user =cmd()|{shown}" in tip(browser)
    assert browser.run("document.querySelector('.tip').children.length") == 0
    assert browser.run("typeof hacked") == "undefined"
    script = "const script = document.createElement('script'); script.textContent = 'hacked = 3';"
    assert browser.run(f"{script} document.body.append(script); typeof hacked") == "undefined", (
        "the page's policy runs its own script alone"
    )


def test_hostile_names_of_a_snapshot_stay_text(browser, tmp_path):
    path = write(tmp_path, pages.ahead(pages.HOSTILE))
    browser.open(path)
    assert (browser.errors, browser.requests) == ([], [path.as_uri()])
    assert browser.run("typeof hacked") == "undefined"
    assert browser.run("document.querySelectorAll('main img, main script:not(.spec)').length") == 0
    shown = pages.HOSTILE.replace("\u202e", "\\u202e")
    assert shown in browser.run("document.querySelector('#jobs tbody th').textContent")
    assert shown in browser.run("document.querySelector('#left_out').textContent")
