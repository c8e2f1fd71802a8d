"""The documentation agrees with the code: its commands, options, keys, names, paths and links exist."""

from __future__ import annotations

import ast
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import parsim
from parsim.metrics import METRICS
from qconf.backtest import backtest
from qconf.cli import qconf
from qconf.export import exporter
from qconf.history import clean, read
from qconf.report.exported import Exported
from qconf.report.run_directory import write_run
from qconf.strategies import names, option_fields
from tests import reference
from tests.qconf.backtest import walking
from tests.qconf.report import small
from tests.test_vocabulary import tracked
from tests.wrapping import WIDTH, wrapped

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
TOP = [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "data/README.md", "reports/README.md")]
PAGES = [*TOP, *sorted(DOCS.rglob("*.md"))]
HISTORY = "job_id,submit,runtime,walltime,cores,queue\n1,1454284800,600,7000,1,short\n2,1454284900,-1,7000,1,short\n"


def prose(text: str) -> Iterator[tuple[int, str]]:
    """Yield number and text of the lines of prose: no code, table or image."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            fenced = not fenced
        elif not fenced and not line.startswith(("    ", "|", "![")):
            yield number, line


def code(text: str) -> Iterator[str]:
    """Return the lines of code, with continued lines joined."""
    lines = re.findall(r"^(?:    | {6})(\S.*)$", text, re.MULTILINE)
    for block in re.findall(r"^```\w*\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        lines += block.splitlines()
    return iter("\n".join(lines).replace("\\\n", " ").splitlines())


def named_in_code(page: str) -> set[str]:
    return set(re.findall(r"`([^`\s]+)`", (DOCS / page).read_text()))


def test_lines_are_short() -> None:
    long = [
        f"{page.relative_to(ROOT)}:{number}"
        for page in PAGES
        for number, line in prose(page.read_text())
        if len(line) > WIDTH and "http" not in line
    ]
    assert long == [], "python -m tests.wrapping FILE"


def test_links_lead_to_files() -> None:
    missing = [
        f"{page.relative_to(ROOT)}: {each}"
        for page in PAGES
        for each in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text())
        if "://" not in each and not (page.parent / each).exists()
    ]
    assert missing == []


def headings(page: Path) -> list[str]:
    return [each.casefold() for each in re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)]


def test_links_lead_to_headings() -> None:
    def anchors(page: Path) -> list[str]:
        return [re.sub(r"[^\w -]", "", each).replace(" ", "-") for each in headings(page)]

    missing = [
        f"{page.relative_to(ROOT)}: {name}#{anchor}"
        for page in PAGES
        for name, anchor in re.findall(r"\]\(([^)#:\s]*)#([^)]+)\)", page.read_text())
        if anchor not in anchors(page.parent / name if name else page)
    ]
    assert missing == []


def test_rules_of_the_simulator_are_cited_by_their_names() -> None:
    page = DOCS / "reference" / "simulator.md"
    names = headings(page)
    assert len(names) == len(set(names))
    for path in [ROOT / each for each in tracked() if each.endswith((".py", ".md"))]:
        text = re.sub(r"\s+(?:#:? )?", " ", path.read_text().casefold())
        listed = re.findall(r'\brules? (?:of )?("[^"]+"(?:(?:,| and| and of) "[^"]+")*)', text)
        assert {each for some in listed for each in re.findall(r'"([^"]+)"', some)} <= set(names), path
        assert re.findall(r"\brules? \d+", text) == [], path
    within = re.findall(r"\*([^*]+)\*", re.sub(r"`[^`]*`", "", page.read_text()))
    assert {" ".join(each.casefold().split()) for each in within} <= set(names)


def test_the_readme_counts_the_configurations() -> None:
    words = ("none", "one", "two", "three", "four", "five", "six", "seven", "eight")
    count = len(list((ROOT / "configs").glob("*.yaml")))
    assert f"`configs/` has {words[count]}:" in (ROOT / "README.md").read_text()


def test_every_page_is_in_the_index() -> None:
    linked = {(DOCS / target).resolve() for target in re.findall(r"\]\(([^)]+)\)", (DOCS / "index.md").read_text())}
    assert set(DOCS.rglob("*.md")) - linked == {DOCS / "index.md"}


def test_every_page_of_the_docs_that_the_project_names_exists() -> None:
    tracked = subprocess.run(["git", "ls-files", "-z"], capture_output=True, text=True, check=True, cwd=ROOT).stdout
    for name in tracked.split("\0"):
        path = ROOT / name
        if path.suffix in {".py", ".md", ".toml", ".j2", ""} and path.is_file():
            found = set(re.findall(r"\bdocs/[\w/-]+\.(?:md|svg)", path.read_text(errors="ignore")))
            assert {each for each in found if not (ROOT / each).exists()} == set(), name


def files_named_in(page: Path) -> list[str]:
    text = page.read_text()
    files = re.findall(r"`((?:parsim|qconf|studies|tests|configs|data)/[\w./-]+)`", text)
    files += [f"{module.replace('.', '/')}*" for module in re.findall(r"python -m ((?:studies|tests)[\w.]*\w)", text)]
    return [each for each in files if not re.match(r"qconf/share\b", each)]  # exists only in the wheel


def test_modules_and_files_that_a_page_names_exist() -> None:
    missing = [
        f"{page.relative_to(ROOT)}: {each}"
        for page in PAGES
        for each in files_named_in(page)
        if not list(ROOT.glob(each.rstrip("/")))
    ]
    assert missing == []


@pytest.mark.parametrize("page", reference.pages())
def test_generated_reference_is_current(page: str) -> None:
    assert (reference.FOLDER / page).read_text() == reference.pages()[page], "make reference"


def test_commands_have_the_options_that_examples_use() -> None:
    context = click.Context(qconf)
    for where, line in [(page, line) for page in PAGES for line in code(page.read_text())]:
        found = re.match(r"(?:\$ |\S*/)*qconf (\w+)( .*)?$", line.split("  #")[0])
        command = None if found is None else qconf.get_command(context, found.group(1))
        if found is None or command is None:
            continue
        known = {name for option in command.params for name in (*option.opts, *option.secondary_opts)}
        used = set(re.findall(r"(?<=\s)--?[a-z][a-z-]*", found.group(2) or ""))
        assert used - known - {"--help", "-h"} == set(), f"{where}: {line}"


def test_options_of_strategies_are_explained() -> None:
    shared = {"seed", "workers", "objective"}
    options = {"--" + name.replace("_", "-") for name in option_fields().keys() - shared}
    page = (DOCS / "reference" / "commands.md").read_text()
    assert options - set(re.findall(r"^  (--[a-z-]+)", page, re.MULTILINE)) == set()


def test_strategies_are_explained() -> None:
    assert set(names()) - named_in_code("manual/strategies.md") == set()


def test_names_of_parsim_are_explained() -> None:
    assert {f"parsim.{name}" for name in parsim.__all__} - named_in_code("reference/python.md") == set()


def test_the_python_example_gives_what_it_shows() -> None:
    (block,) = re.findall(r"```python\n(.*?)```", (DOCS / "reference" / "python.md").read_text(), re.DOTALL)
    scope: dict[str, object] = {}
    exec(block, scope)
    shown = re.findall(r"^(\S.*?)  # ([^:\n]+)", block, re.MULTILINE)
    assert len(shown) == 3
    for expression, value in shown:
        assert eval(expression, scope) == ast.literal_eval(value)


def test_metrics_are_explained() -> None:
    assert set(METRICS) - named_in_code("reference/metrics.md") == set()


def test_keys_of_run_json_are_explained(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text(HISTORY)
    found = small.recommendation()
    history = clean(read([log]), small.site())
    write_run(tmp_path / "run", found, history, exported=Exported.of(found, exporter("pbs")()))
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    keys = {*record, *record["history"], *record["export"], *(key for row in record["strategies"] for key in row)}
    keys |= {key for row in record["strategies"] for key in row["bootstrap"] or ()}
    assert keys - named_in_code("reference/run.md") == set()


def test_keys_of_a_backtests_run_json_are_explained(tmp_path: Path) -> None:
    history = walking.history(tmp_path)
    write_run(tmp_path / "run", backtest(history, walking.site(), strategies=("fcfs-easy",), period="10d"), history)
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    rows = [*record["periods"], *record["results"], *record["averages"], *record["skipped"]]
    rows += [against for average in record["averages"] for against in average["against"].values()]
    assert {*record, *(key for row in rows for key in row)} - named_in_code("reference/run.md") == set()


def test_wrapping_fills_paragraphs_and_list_items() -> None:
    assert wrapped("one\ntwo `a  b`\n* item\n  goes on\n* next\n") == "one two `a  b`\n* item goes on\n* next\n"
    assert wrapped("* one two\n", width=5) == "* one\n  two\n"
    assert wrapped("a b - c\n", width=3) == "a\nb -\nc\n"  # a dash at the start of a line would be a list item


@pytest.mark.parametrize(
    "text", ["# A title\n", "| a | b |\n|---|---|\n", "    code  stays\n", "```\nso\ndoes\n```\n", "<p>\n"]
)
def test_wrapping_leaves_what_is_no_prose(text: str) -> None:
    assert wrapped(text, width=4) == text


def test_every_file_that_cites_a_paper_is_in_the_list_of_citations() -> None:
    cited = re.compile(r"\b(Kondameedi|Streit|Lawson|Karbach|Halstead|Mu'alem|Srinivasan|Rudolph|Tang, Lan|Birgin)\b")
    sources = [
        *DOCS.rglob("*.md"),
        *(each for top in ("parsim", "qconf", "studies") for each in (ROOT / top).rglob("*.py")),
    ]
    citing = {str(each.relative_to(ROOT)) for each in sources if cited.search(each.read_text())}
    listed = set(re.findall(r"`([^`\s]+)`", (DOCS / "reference" / "citations.md").read_text()))
    assert citing - listed - {"docs/reference/citations.md"} == set()
