"""Names that others chose do nothing where they are shown: unit by unit, and through whole commands."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import re
import shutil
import subprocess
import sys
import unicodedata
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from qconf.config import load
from qconf.history import read
from qconf.history.history import history_lines
from qconf.inert import FORMULA, NUMBER, csv_text, guarded, inert, unguarded
from tests.qconf.backtest import walking
from tests.qconf.report.page import Page

ROOT = Path(__file__).resolve().parents[2]
OWNED = "document.title='owned'"
NAMES = (
    f"<script>{OWNED}</script>",
    f"<img src=x onerror={OWNED}>",
    f"\"' onmouseover={OWNED} x='",
    "</style></title></svg>-->",
    "=cmd|'/c calc'!A1",
    "+cmd()",
    "-2+3",
    "@SUM(A1)",
    "\uff1dcmd()",
    "\x1b[31mred\x1b]0;owned\x07",
    "\x9b31m",
    "\u202egnp.exe\u2066",
    "two\nlines",
    "qconf\r\n: all is well",
    "'\"`touch owned`$(touch owned);touch owned|touch owned",
    "]]--[[",
    "%s%n%d%%",
    "{{7*7}}{% raw %}",
    "[red]x[/red]",
    "&lt;b&gt;",
    "x" * 5000,
)
texts = st.text(max_size=12) | st.sampled_from(NAMES) | st.text("'=+-@\t\r1.e", max_size=5)


def hidden(text: str) -> list[str]:
    return [
        c for c in text if unicodedata.category(c) in {"Cc", "Cs", "Zl", "Zp"} - {"\n"} or c in "\u202e\u2066\u200b"
    ]


@given(texts)
def test_what_is_invisible_becomes_an_escape_that_json_reads(text: str) -> None:
    assert not hidden(inert(text))
    assert not set(hidden(inert(text, lines=True))) - set("\n\t")
    assert inert(inert(text)) == inert(text)
    quoted = inert(json.dumps(text, ensure_ascii=False))
    assert json.loads(quoted) == text
    assert [line.count("\n") for line in [inert(text, lines=True)]] == [text.count("\n")]


def test_all_that_turns_or_hides_a_text_is_known() -> None:
    every = map(chr, range(0x110000))
    left = {c for c in every if unicodedata.category(c) in {"Cc", "Cf", "Cs", "Zl", "Zp"} and inert(c) == c}
    assert {unicodedata.name(c) for c in left} == {  # these are seen
        *(f"ARABIC {name}" for name in ("NUMBER SIGN", "SIGN SANAH", "FOOTNOTE MARKER", "SIGN SAFHA", "SIGN SAMVAT")),
        *("ARABIC NUMBER MARK ABOVE", "ARABIC END OF AYAH", "ARABIC DISPUTED END OF AYAH", "SYRIAC ABBREVIATION MARK"),
        *("ARABIC POUND MARK ABOVE", "ARABIC PIASTRE MARK ABOVE", "KAITHI NUMBER SIGN", "KAITHI NUMBER SIGN ABOVE"),
        *(unicodedata.name(c) for c in left if unicodedata.name(c).startswith("EGYPTIAN HIEROGLYPH")),
    }


@given(st.lists(texts, min_size=1, max_size=4))
@example(["'=x", "''=x", "'", "-1", "-1e5", "1", "-", "", "'-5"])
def test_no_cell_is_a_formula_and_every_text_comes_back(cells: list[str]) -> None:
    table = pd.DataFrame({"name": pd.Series(cells, dtype="str"), "value": -1.5})
    rows = [*csv.reader(io.StringIO(csv_text(table)))][1:]
    assert [row[1] for row in rows] == ["-1.5"] * len(cells)
    for row in rows:
        assert not re.match(r"[=+\-@\t\r\uff1d\uff0b\uff0d\uff20]", row[0]) or re.fullmatch(NUMBER, row[0])
        assert not hidden(row[0])
    assert unguarded(guarded(table)["name"]).tolist() == cells
    assert [cell for cell in cells if re.match(FORMULA, cell) and not re.fullmatch(NUMBER, cell)] == [
        cell for cell, kept in zip(cells, guarded(table)["name"], strict=True) if cell != kept
    ]


def hostile_jobs() -> pd.DataFrame:
    jobs = walking.table()
    for name in ("user", "group"):
        jobs[name] = [NAMES[i % len(NAMES)] for i in range(len(jobs))]
    jobs.loc[: len(NAMES) - 1, "job_id"] = NAMES
    jobs.loc[::7, "queue"] = [NAMES[i % len(NAMES)] for i in range(len(jobs[::7]))]
    jobs.loc[: len(NAMES) - 1, "runtime"] = -1  # dropped, each under its name
    return jobs


def test_a_history_is_what_it_was_after_a_spreadsheet_could_open_it(tmp_path: Path) -> None:
    hostile_jobs().to_csv(tmp_path / "log.csv", index=False)
    first = read([tmp_path / "log.csv"])
    (tmp_path / "again.csv").write_text("".join(history_lines(first.table, first.epoch)), newline="")
    second = read([tmp_path / "again.csv"])
    for name in ("job_id", "user", "group", "queue", "submit"):
        assert second.table[name].tolist() == first.table[name].tolist()
    cells = {cell for row in csv.reader((tmp_path / "again.csv").open(newline="")) for cell in row}
    assert "'=cmd|'/c calc'!A1" in cells
    assert not [cell for cell in cells if re.match("[=+@-]", cell) and not re.fullmatch(NUMBER, cell)]


SITE = f"""
machine: {{name: "<script>{OWNED}</script>$(touch owned)]]%s", cores: 48}}
queues:
  - {{name: "<script>{OWNED}</script>", cores: [1, 8], walltime: [0, 2h], priority: 40}}
  - {{name: "=cmd()", cores: [1, 8], walltime: [2h, 24h], priority: 60}}
  - {{name: "$(touch_owned)`x`]]%s", cores: [9, 16], walltime: [0, 24h], priority: 80}}
targets:
  - {{group: "<img/src=x/onerror={OWNED}>", users: ["=cmd|'/c calc'!A1", "\\e[31mred\\e]0;owned\\a"], p95_wait: 1h}}
"""


#: Each in a process of its own, all of them from one that has imported what they import.
FORKS = """
import json, os, sys
from tests.benchmarks.kills import import_all
import_all()
for number, words in enumerate(json.load(sys.stdin)):
    if not (child := os.fork()):
        for stream, name in ((1, "out"), (2, "err")):
            os.dup2(os.open(f"{number}.{name}", os.O_WRONLY | os.O_CREAT), stream)
        from qconf.cli import main
        try:
            main(words)
            code = 0
        except SystemExit as end:
            code = end.code or 0
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
RUN = "run=\x1b[31m"
COMMANDS = (
    ("tune", "LOG", "--config", "site.yaml", "--strategies", "pp,lxf-easy", "-o", RUN),
    ("inspect", "LOG", "--config", "site.yaml"),
    ("inspect", "LOG", "--cores", "48"),
    ("simulate", "LOG", "--config", "site.yaml", "--out", "schedule.csv", "--explain", "0.50"),
    ("simulate", "LOG", "--config", "site.yaml", "--explain", "two\nlines"),
    ("import", "LOG", "-o", "imported.csv"),
    ("init", "--history", "LOG", "--cores", "48", "--name", "a\x1b[31m", "-o", "made.yaml"),
    ("init", "--history", "LOG", "--cores", "48", "-o", "made.yaml"),
    ("policies", "LOG", "--cores", "48"),
    ("export", "site.yaml", "-o", "exported\u202e"),
    ("export", "--run", RUN, "--strategy", "lxf-easy", "-o", "exported\n"),
    ("tune", "missing\x1b[31m\nqconf: all is well.csv", "--cores", "48"),
    ("tune", "LOG", "--cores", "48", "--strategies", "\x1b[31m"),
    ("tune", "LOG", "--cores", "48", "-o", "site.yaml/\x1b[31m\nx"),
    ("tune", "LOG", "--\x1b[31m"),
    ("runs", "."),
    ("runs", ".", "--csv"),
    ("runs", ".", "--json"),
)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[int]]:
    """Return a folder in which the commands ran, and their exit codes: all names are hostile, that of the log too."""
    folder = tmp_path_factory.mktemp("hostile")
    log = folder / "=<b>\x1b[31m\u202e$(touch owned).csv"
    hostile_jobs().to_csv(log, index=False)
    (folder / "site.yaml").write_text(SITE)
    words = [[word.replace("LOG", f"./{log.name}") for word in command] for command in COMMANDS]
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", FORKS],
        input=json.dumps(words),
        capture_output=True,
        text=True,
        cwd=folder,
        env=env,
        check=True,
    )
    return folder, [int(code) for code in done.stdout.split()]


@pytest.fixture(scope="module")
def run(hostile: tuple[Path, list[int]]) -> Path:
    return hostile[0] / RUN


def test_files_of_a_run_hold_nothing_invisible_and_no_formula(run: Path) -> None:
    files = [path for path in run.rglob("*") if path.is_file()]
    assert {path.name for path in files} >= {"report.html", "run.json", "dropped.csv", "comparison.csv", "PLAN.md"}
    for path in files:
        text = path.read_text(encoding="utf-8")
        assert not set(hidden(text)) - set("\n\t"), path
        if path.suffix == ".csv":
            cells = [cell for row in csv.reader(io.StringIO(text)) for cell in row]
            assert not [each for each in cells if re.match("[=+@-]", each) and not re.fullmatch(NUMBER, each)], path
    assert "'=cmd|" in (run / "dropped.csv").read_text()
    assert load(run / "config.yaml").machine.name == load(run.parent / "site.yaml").machine.name
    assert json.loads((run / "run.json").read_text())["base"]["queues"][1]["name"] == "=cmd()"


def test_a_page_has_no_element_of_a_name(run: Path) -> None:
    page = Page((run / "report.html").read_text())
    charts = len(list((run / "figures").iterdir()))
    assert page.wrong == []
    assert not set(page.tags) & {"img", "b"}
    assert 5 < page.tags.count("script") <= 1 + charts  # its own, and what each chart draws
    assert page.handlers == []


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("chromium") is None, reason="no chromium here")
def test_a_browser_runs_nothing_of_a_name(run: Path, tmp_path: Path) -> None:
    (tmp_path / "report.html").write_bytes((run / "report.html").read_bytes())
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
    flags += ["--disable-background-networking", "--disable-component-update", "--disable-sync", "--dump-dom"]

    def shown(page: Path) -> str:
        command = ["chromium", *flags, f"--user-data-dir={tmp_path / 'profile'}", page.as_uri()]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout

    dom = shown(tmp_path / "report.html")
    assert "<title>owned</title>" not in dom
    assert not set(Page(dom).tags) & {"img", "b"}
    assert Page(dom).tags.count("script") == Page((run / "report.html").read_text()).tags.count("script")
    (tmp_path / "bad.html").write_text(f"<title>x</title><script>{OWNED}</script>")
    assert "<title>owned</title>" in shown(tmp_path / "bad.html")  # so the check can fail


@pytest.mark.parametrize("number", range(len(COMMANDS)))
def test_commands_say_nothing_that_a_terminal_obeys(hostile: tuple[Path, list[int]], number: int) -> None:
    folder, codes = hostile
    out, err = ((folder / f"{number}.{name}").read_bytes().decode() for name in ("out", "err"))
    assert codes[number] in (0, 1, 2)
    assert out + err
    for text in (out, err):
        assert not set(hidden(text)) - set("\n\t"), text
    assert "Traceback" not in err
    assert not [line for line in err.splitlines() if line.startswith("qconf: all is well")]
    assert not (folder / "owned").exists()
    if COMMANDS[number][-1] == "--json":
        assert json.loads(out)["runs"][0]["run"] == RUN


def test_a_terminal_gets_colours_of_qconf_and_none_of_a_name(hostile: tuple[Path, list[int]]) -> None:
    leader, follower = pty.openpty()
    log = next(hostile[0].glob("=*")).name
    command = [sys.executable, "-m", "qconf", "tune", f"./{log}", "--config", "site.yaml", "--strategies", "lxf-easy"]
    env = os.environ | {"PYTHONPATH": str(ROOT), "TERM": "xterm-256color", "COLUMNS": "100"}
    with subprocess.Popen(
        [*command, "-o", "tty"], stdout=follower, stderr=follower, cwd=hostile[0], env=env
    ) as process:
        os.close(follower)
        seen = b""
        while True:
            try:
                seen += (chunk := os.read(leader, 65536))
            except OSError:
                break
            if not chunk:
                break
    os.close(leader)
    assert process.returncode == 0, seen
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen.decode())
    assert "\x1b[1m" in seen.decode()  # the table's own
    assert not set(hidden(text)) - set("\r\n\t"), text
    assert b"\x1b[31mred" not in seen
    assert b"]0;owned" not in seen.replace(b"\\u001b]0;owned", b"")
