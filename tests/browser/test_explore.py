"""The page of qconf explore in a real browser: by mouse, by keyboard, in two tabs, with a server that ends."""

import json
import re
import signal
import time
from pathlib import Path

import pytest

from tests.browser.chromium import Browser, available
from tests.qconf.explore.served import SITE, Served, write_log

pytestmark = pytest.mark.skipif(available() is None, reason="no chromium here")

AXE = Path(__file__).parent / "axe-core" / "axe.min.js"
HOSTILE = ("<img/src=x/onerror=hacked=1>", "</script><script>hacked=2</script>", "a.b'\"]")
CTRL = 2


class Page(Browser):
    """A tab that looks at a server."""

    def look(self, server, **about):
        self.open(server.address, **about)
        self.until("state && numbers && !document.body.classList.contains('old')")

    def until(self, condition, seconds=90):  # a kernel may be compiled meanwhile
        end = time.monotonic() + seconds
        while not (found := self.run(f"((found) => (found instanceof Node ? true : found))({condition})")):
            assert time.monotonic() < end, (condition, self.run("document.body.innerText")[:1500])
            time.sleep(0.03)
        return found

    def middle(self, selector):
        """Bring an element into view, and return where it is."""
        return self.run(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            " for (let d = e.closest('details'); d; d = d.parentElement.closest('details')) d.open = true;"
            " e.scrollIntoView({block: 'center', behavior: 'instant'}); const b = e.getBoundingClientRect();"
            " return [b.left + b.width / 2, b.top + b.height / 2, b.width]; })()"
        )

    def press_on(self, selector, *keys):
        self.middle(selector)
        self.run(f"document.querySelector({json.dumps(selector)}).focus()")
        for key in keys:
            self.press(key)

    def click_on(self, selector):
        x, y, _ = self.middle(selector)
        self.click(x, y)

    def enter(self, selector, text):
        self.click_on(selector)
        self.run(f"document.querySelector({json.dumps(selector)}).select?.()")
        self.type(text)

    def choose(self, selector, value):
        self.middle(selector)
        self.run(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)}); e.focus();"
            f" e.value = {json.dumps(value)};"
            " e.dispatchEvent(new Event('change', {bubbles: true})); })()"
        )

    @property
    def changes(self):
        return {each["path"]: each["after"] for each in self.run("state.document.changes")}

    def changed(self, path):
        """Return the value of a path once it is another one than that in force."""
        self.until(f"state?.document.changes.some((each) => each.path === {json.dumps(path)})")
        return self.changes[path]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("explore")
    write_log(folder)
    (folder / "site.yaml").write_text(SITE)
    with Served("log.csv", "--config", "site.yaml", "-o", "run", folder=folder) as found:
        yield found


@pytest.fixture(scope="module")
def tab():
    with Page() as found:
        yield found


@pytest.fixture
def page(server, tab):
    server.post("change", named="")
    server.post("change", load=100, stretch="all")
    tab.look(server)
    tab.until("!state.document.changes.length")
    return tab


LOOKS = [(390, False), (390, True), (1440, False), (1440, True), (1920, False)]


@pytest.mark.parametrize(("width", "dark"), LOOKS)
def test_all_is_seen_and_axe_finds_nothing(server, tab, width, dark):
    server.post("change", set={"queues.medium.max_run": "6", "mode": "hybrid", "order": '"2 * eligible_time + ncpus"'})
    tab.look(server, width=width, dark=dark)
    tab.until("ranges?.resamples === 100")
    tab.until("document.querySelectorAll('.chart svg').length === 2")
    assert tab.errors == []
    assert {re.match(r"http://[^/]+/|data:", each)[0] for each in tab.requests} <= {server.root, "data:"}
    assert tab.run("document.documentElement.scrollWidth") <= width
    background = tab.run("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", background))) < 200) == dark
    assert "→" in tab.run("document.getElementById('headline').textContent")
    tab.run("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    tab.run(AXE.read_text(encoding="utf-8") + "; 0")
    for dialog in ("", "states", "link", "tune", "export"):
        tab.run(f"document.getElementById('open-{dialog}').click()" if dialog else "0")
        where = f"'#{dialog}'" if dialog else "document"
        found = json.loads(tab.run(f"axe.run({where}).then((found) => JSON.stringify(found))"))
        wrong = [
            (each["id"], each["nodes"][0]["html"][:200], each["nodes"][0].get("failureSummary", "")[:300])
            for each in found["violations"]
        ]
        assert wrong == [], dialog
        tab.run(f"document.getElementById('{dialog}').close()" if dialog else "0")


SIZES = "state.document.bars[0].parts.map((each) => each.size)"
EDGE, LIMIT = ".edge", "[data-path='queues.medium.max_run'] input"
MOST = "[data-path='queues.short.cores'] [data-end=most]"
DOWN, DOUBLE = "[aria-label='move short down']", "[aria-label='double of machine.cores']"


def click(page, at):
    page.click_on(at)


def choose(value):
    return lambda page, at: page.choose(at, value)


def keys(*names):
    return lambda page, at: page.press_on(at, *names)


def entered(text, by_keyboard):
    """Type a text in place of what is there, and leave the field."""

    def enter(page, at):
        if by_keyboard:
            page.press_on(at)
            page.press("a", CTRL)
            page.type(text)
        else:
            page.enter(at, text)
        page.press("Tab")

    return enter


#: The path that changes, where, and what a mouse and what a keyboard does there.
CONTROLS = {
    "number": ("queues.medium.max_run", LIMIT, entered("7", False), keys("ArrowUp")),
    "range": ("queues.short.cores", MOST, entered("20", False), entered("24", True)),
    "flag": ("backfill", "[data-path=backfill] input", click, keys(" ")),
    "choice": ("reserve", "[data-path=reserve] select", choose("queues"), keys("ArrowDown")),
    "mode": ("mode", "[data-path=mode] select", choose("hybrid"), keys("ArrowDown")),
    "move": ("queues", DOWN, click, keys("Enter")),
    "quick": ("machine.cores", DOUBLE, click, keys(" ")),
    "order": ("order", "#order-named", choose("sjf"), keys("ArrowDown")),
    "formula": ("order", "#formula", entered("2 * eligible_time + ncpus", False), entered("eligible_time", True)),
}


@pytest.mark.parametrize("name", CONTROLS)
@pytest.mark.parametrize("by", ["mouse", "keyboard"])
def test_a_control(page, name, by):
    path, at, *ways = CONTROLS[name]
    before = page.run("numbers.serial")
    ways[by == "keyboard"](page, at)
    assert page.changed(path)
    page.until(f"numbers && numbers.serial > {before}")
    assert page.run("document.querySelector('#changes li').textContent").startswith(path)
    page.click_on("#undo")
    page.until(f"!state.document.changes.some((each) => each.path === {json.dumps(path)})")
    page.press("y", CTRL)
    page.changed(path)
    back = f"#changes [aria-label$='for {path}']"
    page.click_on(back) if by == "mouse" else page.press_on(back, "Enter")
    page.until("!state.document.changes.length")
    assert page.errors == []


@pytest.mark.parametrize("by", ["mouse", "keyboard"])
def test_a_border_between_two_parts(page, by):
    page.choose("[data-path=mode] select", "hybrid")
    page.changed("mode")
    before = page.run(SIZES)
    if by == "mouse":
        x, y, _ = page.middle(EDGE)
        page.mouse("mousePressed", x, y, button="left", clickCount=1)
        for step in range(1, 6):
            page.mouse("mouseMoved", x + 8 * step, y, button="left", buttons=1)
        page.mouse("mouseReleased", x + 40, y, button="left", clickCount=1)
    else:
        page.press_on(EDGE, "ArrowRight", "ArrowRight", "ArrowRight")
    page.until(f"{SIZES}[0] !== {before[0]}")
    time.sleep(0.3)
    after = page.run(SIZES)
    assert after[0] > before[0]
    assert sum(after) == sum(before)
    assert after[0] + after[1] == before[0] + before[1]
    assert page.run("document.querySelector('.edge').getAttribute('aria-valuenow')") == str(after[0])
    assert page.errors == []


def test_bars_of_nodes_of_several_types(tmp_path, tab):
    write_log(tmp_path, jobs=150)
    nodes = "cores: 64}\nnodes: [{name: thin, count: 2, cores: 16}, {name: fat, count: 1, cores: 32}]"
    (tmp_path / "site.yaml").write_text(SITE.replace("cores: 64}", nodes))
    with Served("log.csv", "--config", "site.yaml", "-o", "run", folder=tmp_path) as server:
        tab.look(server)
        tab.choose("[data-path=mode] select", "hybrid")
        tab.until("document.querySelector('[data-path=mode] .problem').textContent.includes('no common pool')")
        tab.choose("[data-path=mode] select", "partitioned")
        tab.until("document.querySelectorAll('#bars .parts').length === 2")
        before = tab.run("state.document.bars[0].parts.map((each) => each.size)")
        way = "ArrowRight" if before[1] else "ArrowLeft"
        edge = "[aria-label='border between short and medium of nodes thin']"
        tab.press_on(edge, way)
        step = 1 if before[1] else -1
        tab.until(f"state.document.bars[0].parts[0].size === {before[0] + step}")
        assert tab.run(f"document.querySelector({json.dumps(edge)}).getAttribute('aria-valuetext')").startswith(
            f"short {before[0] + step} nodes"
        )
        assert tab.run("document.getElementById('mistakes').hidden")


@pytest.mark.parametrize("by", ["mouse", "keyboard"])
def test_load_points_and_metric(page, by):
    if by == "mouse":
        x, y, wide = page.middle("#load")
        page.click(x + 0.4 * wide, y)
    else:
        page.press_on("#load", "ArrowRight", "ArrowRight")
    page.until("state.load > 100 && numbers")
    page.run("other({ terms: [[2, 'eligible_time'], [1, 'ncpus']] })")
    page.changed("order")
    slider = "[aria-label='more or fewer points of eligible_time']"
    page.until(f"document.querySelector({json.dumps(slider)})")
    if by == "mouse":
        x, y, wide = page.middle(slider)
        page.click(x + 0.25 * wide, y)
    else:
        page.press_on(slider, *["ArrowRight"] * 6)
    page.until("state.document.order.terms[0].points > 2.5")
    page.until("numbers")
    if by == "mouse":
        page.click_on("#metrics label:nth-child(4)")
    else:
        page.press_on("#metrics input", "ArrowRight", "ArrowRight", "ArrowRight")
    assert page.run("metric") == "max_wait"
    assert page.run("document.querySelectorAll('#groups tbody tr').length") > 5
    page.until("ranges?.resamples === 100")
    assert " to " in page.run("document.querySelector('#groups tbody + tbody td:last-child').textContent")


@pytest.mark.parametrize(
    ("chart", "words"), [("time", r"2016-02-\d\d \d\d:\d\d\nin use, %\n(in force|this state): [\d.]+"), ("map", "jobs")]
)
def test_charts_say_their_values_by_the_keyboard(page, chart, words):
    page.until(f"document.querySelector('#{chart} svg')")
    page.press_on(f"#{chart}", "ArrowRight", "ArrowRight")
    tip = "document.querySelector('.tip')"
    page.until(f"!{tip}.hidden")
    assert re.search(words, page.run(f"{tip}.textContent"))


def test_a_mistake_stands_at_its_field_and_nothing_is_lost(page):
    page.enter(LIMIT, "-3")
    page.press("Tab")
    page.until("document.querySelector(\"[data-path='queues.medium.max_run']\").classList.contains('wrong')")
    assert "a whole number from 1 up" in page.run(
        "document.querySelector(\"[data-path='queues.medium.max_run'] .problem\").textContent"
    )
    assert page.run(f"document.querySelector({json.dumps(LIMIT)}).value") == "-3"
    other = "[data-path='queues.short.max_run'] input"
    page.enter(other, "9")
    page.press("Tab")
    time.sleep(0.6)
    assert (page.run(f"document.querySelector({json.dumps(other)}).value"), page.changes) == ("9", {})
    page.enter(LIMIT, "4")
    page.press("Tab")
    page.changed("queues.short.max_run")
    assert page.changes == {"queues.medium.max_run": "4", "queues.short.max_run": "9"}
    page.until("document.getElementById('mistakes').hidden")
    assert page.run("document.querySelectorAll('.wrong').length") == 0


def test_the_yaml_beside_the_fields(page):
    page.click_on("#yaml-part summary")
    page.enter("#yaml", SITE.replace("max_run: 2", "max_run: two"))
    page.press("Enter", CTRL)
    page.until("document.querySelector('#yaml-problems li')")
    assert re.match(r"line 5: .*max_run", page.run("document.querySelector('#yaml-problems li').textContent"))
    assert "max_run: two" in page.run("document.getElementById('yaml').value")
    page.enter("#yaml", SITE.replace("max_run: 2", "max_run: 8"))
    page.click_on("#yaml-apply")
    assert page.changed("queues.medium.max_run") == "8"
    assert page.run(f"document.querySelector({json.dumps(LIMIT)}).value") == "8"
    page.enter(LIMIT, "9")
    page.press("Tab")
    page.until("document.getElementById('yaml').value.includes('max_run: 9')")


def test_states_links_explanation_and_export(page, server):
    page.enter(LIMIT, "6")
    page.press("Tab")
    page.changed("queues.medium.max_run")
    page.click_on("#open-states")
    page.enter("#name", "six")
    page.press("Enter")
    page.until("state.named.includes('six')")
    page.press("Escape")
    page.click_on("#open-link")
    link = page.until("document.getElementById('address').value")
    page.press("Escape")
    page.click_on("#undo")
    page.until("!state.document.changes.length")
    page.choose("#against", "six")
    page.until("state.against === 'six' && numbers")
    assert "“six”" in page.run("document.getElementById('groups').innerText")
    page.choose("#against", "")
    page.open("about:blank")
    page.open(link)
    assert page.changed("queues.medium.max_run") == "6"
    assert page.run("location.hash") == ""
    page.until("numbers?.moved.length")
    page.click_on("#moved button")
    page.until("document.querySelectorAll('#explained .two li').length >= 2")
    page.enter("#job", "no such job")
    page.press("Enter")
    page.until("document.querySelector('#explained .problem')?.textContent.includes('no simulated job')")
    page.click_on("#open-export")
    page.enter("#export-name", "six")
    page.press("Enter")
    page.until("document.querySelector('#exported pre')")
    assert "# " in page.run("document.querySelector('#exported pre').textContent")
    assert (server.folder / "run" / "explore" / "exports" / "six" / "pbs" / "PLAN.md").exists()
    page.press("Escape")
    server.post("name", name="six", forget=True)


def test_by_keyboard_alone_from_the_first_key_on(page):
    page.run("document.activeElement.blur()")
    page.press("Tab")
    assert page.run("document.activeElement.className") == "skip"
    seen = []
    for _ in range(120):
        page.press("Tab")
        seen.append(page.run("(({id, tagName, ariaLabel}) => id || ariaLabel || tagName)(document.activeElement)"))
        if seen[-1] == "job":
            break
    assert {"open-states", "load", "stretch", "against", "job"} <= {*seen}
    assert "move medium up" in seen


def test_fifty_changes_in_five_seconds(page, server):
    def resident():
        return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{server.process.pid}/status").read_text())[1]) / 1024

    before = resident()
    page.run(
        "(async () => { for (let i = 3; i < 53; i++) { await change({ 'queues.medium.max_run': String(i) });"
        " await new Promise((go) => setTimeout(go, 60)); } })()"
    )
    page.until("numbers?.serial === state.serial && ranges?.resamples === 100")
    assert page.changes == {"queues.medium.max_run": "52"}
    assert page.run("document.querySelectorAll('.chart svg').length") == 2
    assert resident() - before < 100
    children = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children").read_text().split()
    assert len(children) <= 1


def test_two_tabs(page, server):
    with Page() as second:
        second.look(server)
        page.enter(LIMIT, "5")
        page.press("Tab")
        page.changed("queues.medium.max_run")
        assert second.changed("queues.medium.max_run") == "5"
        second.until(
            "document.getElementById('toast').textContent.includes('Another tab changed queues.medium.max_run')"
        )
        second.enter(LIMIT, "8")
        second.press("Tab")
        page.until("state.document.changes[0]?.after === '8'")
        page.until("document.getElementById('toast').textContent.includes('Another tab')")
        page.until(f"document.querySelector({json.dumps(LIMIT)}).value === '8'")


def test_a_server_that_ends_and_begins_again(tmp_path, tab):
    write_log(tmp_path, jobs=150)
    (tmp_path / "site.yaml").write_text(SITE)
    server = Served("log.csv", "--config", "site.yaml", "-o", "run", folder=tmp_path)
    tab.look(server)
    server.process.send_signal(signal.SIGKILL)
    server.process.wait()
    tab.until("document.getElementById('banner').textContent.includes('does not answer')")
    tab.enter(LIMIT, "7")
    tab.press("Tab")
    server.begin()
    with server:
        tab.until("document.getElementById('banner').hidden", 60)
        assert tab.run(f"document.querySelector({json.dumps(LIMIT)}).value") == "7", "what was typed is kept"
        tab.enter("[data-path='queues.short.max_run'] input", "9")
        tab.press("Tab")
        tab.changed("queues.short.max_run")
        assert tab.changes == {"queues.medium.max_run": "7", "queues.short.max_run": "9"}


def test_a_configuration_that_cannot_run_all_jobs(page):
    page.enter("[data-path='queues.wide.cores'] [data-end=most]", "32")
    page.press("Tab")
    page.until("document.getElementById('headline').textContent.includes('cannot all run')")
    assert "fit no queue" in page.run("document.getElementById('notes').textContent")
    page.click_on("#undo")
    page.until("numbers && !state.document.changes.length")


def test_hostile_names_stay_text(tmp_path, tab):
    write_log(tmp_path, users=HOSTILE)
    text, log = SITE, (tmp_path / "log.csv").read_text()
    for name, wrong in zip(("short", "medium", "wide"), HOSTILE, strict=True):
        text = text.replace(f"name: {name}", f"name: {json.dumps(wrong)}")
        quoted = wrong.replace('"', '""')
        log = re.sub(rf",{name},", lambda _, quoted=quoted: f',"{quoted}",', log)
    log = re.sub(r"^j(\d+),", lambda found: f'"{HOSTILE[0]}{found[1]}",', log, flags=re.MULTILINE)
    (tmp_path / "log.csv").write_text(log)
    (tmp_path / "site.yaml").write_text(text)
    with Served("log.csv", "--config", "site.yaml", "-o", "run", folder=tmp_path) as server:
        tab.look(server)
        for i in (1, 2):
            tab.run(f"change({{ [`queues.${{state.document.queues[{i}].name}}.max_run`]: '{3 + i}' }})")
            tab.until(f"state.document.changes.some((each) => each.after === '{3 + i}') && ranges?.resamples === 100")
        tab.click_on("#moved button")
        tab.until("document.querySelector('#explained .two li')")
        assert tab.run("typeof hacked") == "undefined"
        assert tab.run("document.querySelectorAll('main img, main script, header img').length") == 0
        assert HOSTILE[1] in tab.run("document.getElementById('groups').textContent")
        assert [each for each in tab.errors if "hacked" in each or "onerror" in each] == []
        assert {re.match(r"http://[^/]+/|data:", each)[0] for each in tab.requests} <= {server.root, "data:"}


def test_on_paper(server, tab):
    server.post("change", set={"queues.medium.max_run": "6"})
    tab.look(server, width=717)
    tab.call("Emulation.setEmulatedMedia", media="print")
    assert not tab.run("document.getElementById('controls').checkVisibility()")
    assert tab.run("document.getElementById('tiles').checkVisibility()")
    assert "queues.medium.max_run" in tab.run("document.getElementById('changes').innerText")
    assert tab.run("document.documentElement.scrollWidth") <= 717


def test_without_the_token_the_page_says_where_it_is(server):
    with Page() as stranger:
        stranger.open(server.root)
        assert "open the address that qconf explore printed" in stranger.run("document.body.innerText")


def test_readonly_offers_nothing_that_writes(server, tab):
    with Served("log.csv", "--config", "site.yaml", "-o", "other", "--readonly", folder=server.folder) as readonly:
        tab.look(readonly)
        assert tab.run(
            "document.getElementById('open-tune').disabled && document.getElementById('open-export').disabled"
        )
        tab.enter(LIMIT, "7")
        tab.press("Tab")
        assert tab.changed("queues.medium.max_run") == "7"
