"""Kill and resume runs: ``python -m tests.benchmarks.kills``.

The commands tune, compare and backtest run on a small log and are killed (SIGKILL): a third at a random time, a third
at a random file access (a write leaves half of the file), a third at one of the last accesses, when the result moves to
its place. Then ``--resume`` finishes the run; every third run is killed twice. The checks are

* after each kill: every file under its final name is complete, from this run or the run before;
* at the end: the directory has exactly the files and bytes of an undisturbed run;
* in between: a piece of work (a training, or five resamples of a part) is repeated only if it was not stored: at most
  one for each worker.

Every second run replaces an earlier one, whose configuration was edited. The exit code is 1 if a check fails.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from qconf.text import markdown_table
from tests.qconf.backtest import walking

BEGUN, DONE, IDLE = "begun: ", "done: ", "no work: "
LAST = 40  # the last file accesses, which move the result to its place
FOLDER = ".unfinished"
TRACE = "QCONF_KILLS_TRACE"  #: environment variable with the file in which workers log their work
#: sitecustomize of workers, which inherit nothing from this process; Python imports it from PYTHONPATH.
SITE = """
import os, sys
if "joblib.externals.loky.backend.popen_loky_posix" in sys.orig_argv:
    from tests.benchmarks import kills
    kills.note_work(os.environ[kills.TRACE])
"""
EDITED = b"# edited by hand\n"
TIMED = ("timings.json",)  #: its bytes differ from run to run
SEARCHES = {"full": "pp,dp-nlp,hybrid,exact,mqb,auto-guarded", "quick": "pp,dp-nlp"}

Contents = dict[str, bytes]


@dataclass
class Tally:
    """The counts of one command."""

    kills: int = 0
    writing: int = 0  #: kills while files of the result moved to their places
    units: int = 0  #: pieces of work of an undisturbed run
    ended: int = 0  #: kills after the end of the output: the run is complete, and --resume begins another
    begun_again: list[int] = field(default_factory=list)  #: pieces of work repeated because of each kill
    done_again: int = 0  #: repeated pieces that were finished, but not stored yet
    wrong: list[str] = field(default_factory=list)


def commands(folder: Path) -> dict[str, list[str]]:
    """Write the logs, and return the arguments of each command."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "site.yaml").write_text(walking.CONFIG)
    whole = walking.write(folder / "log.csv", walking.table())
    parts = [walking.write(folder / f"{i}.csv", walking.table(periods=1, first=i)) for i in range(2)]
    site = ["--config", str(folder / "site.yaml"), "--quiet"]
    return {
        "tune": ["tune", str(whole), *site],
        "compare": ["compare", *map(str, parts), *site],
        "backtest": ["backtest", str(whole), "--period", "10d", *site],
    }


class Accesses:
    """Counts a process's accesses to files in a folder, and kills it at number `last`; forked copies count on."""

    def __init__(self, folder: Path, last: int) -> None:
        self.folder, self.last, self.count, self.process = str(folder), last, 0, os.getpid()

    def begin(self) -> None:
        """Start counting."""
        sys.addaudithook(self._hook)
        for name in ("write_text", "write_bytes"):
            setattr(Path, name, self._half(getattr(Path, name)))

    def _half(self, write: Callable[..., int]) -> Callable[..., int]:
        def half(path: Path, data: str | bytes, *given: object, **named: object) -> int:
            if self.count + 1 == self.last and str(path).startswith(self.folder):
                write(path, data[: len(data) // 2], *given, **named)
            return write(path, data, *given, **named)

        return half

    def _hook(self, event: str, given: tuple[object, ...]) -> None:
        if event not in ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir"):
            return
        if not str(given[0]).startswith(self.folder) or (event == "open" and given[1] == "r"):
            return
        self.count += 1
        if self.count == self.last:
            os.kill(self.process, signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGKILL)  # in a worker, which would else end a moment later


def note_work(trace: str) -> None:
    """Log the begin and end of each piece of work of this process to the file `trace`."""
    from qconf.recommend.checkpoint import Checkpoint, Finished

    notes = os.open(trace, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    original = Checkpoint.kept

    def kept(checkpoint: Checkpoint, key: str, work: Callable[[], Finished]) -> Finished:
        def noted() -> Finished:
            os.write(notes, f"{BEGUN}{key}\n".encode())
            found = work()
            os.write(notes, f"{DONE}{key}\n".encode())
            return found

        found = original(checkpoint, key, noted)
        if isinstance(found, dict) and checkpoint._is_here() and not checkpoint._path(key).exists():
            os.write(notes, f"{IDLE}{key}\n".encode())  # repeated each time, at no cost
        return found

    Checkpoint.kept = kept  # type: ignore[method-assign,assignment]


def _child(arguments: list[str], folder: Path, at: int, trace: Path) -> None:
    """Run a command in this process; log its pieces of work, and at the end its number of file accesses."""
    from qconf.cli import main

    note_work(str(trace))
    os.environ[TRACE] = str(trace)
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(os.open(trace.with_suffix(".err"), os.O_WRONLY | os.O_APPEND | os.O_CREAT), 2)
    accesses = Accesses(folder, at)
    accesses.begin()
    code = 1
    try:
        main(arguments)
    except SystemExit as end:
        code = int(end.code or 0)
    trace.with_suffix(".count").write_text(str(accesses.count))
    os._exit(code)


def run(arguments: list[str], folder: Path, trace: Path, *, after: float | None = None, at: int = 0) -> int | None:
    """Run a command in a forked process; kill it `after` seconds or `at` an access. Return its exit code, else None."""
    process = os.fork()
    if not process:
        try:
            _child([*arguments, "--out", str(folder)], folder, at, trace)
        finally:
            os._exit(99)
    if after is not None:
        time.sleep(after)
        os.kill(process, signal.SIGKILL)
    _, status = os.waitpid(process, 0)
    return None if os.WIFSIGNALED(status) else os.waitstatus_to_exitcode(status)


def contents(folder: Path) -> Contents:
    """Return the files below a folder; a worker may outlive a kill and move one meanwhile."""
    found = {}
    for path in sorted(folder.rglob("*")):
        with suppress(FileNotFoundError, IsADirectoryError, NotADirectoryError):
            found[str(path.relative_to(folder))] = path.read_bytes()
    return found


def whole(found: Contents, *expected: Contents) -> list[str]:
    """Return messages for files that equal none of the expected ones, and for unreadable files of a checkpoint."""
    wrong = []
    for name, data in found.items():
        if name.startswith(".qconf.") or "/.qconf." in name or name == f"{FOLDER}/lock":
            continue
        if name.startswith(FOLDER) or name in TIMED:
            try:
                json.loads(data)
            except ValueError:
                wrong.append(f"{name} is half-written")
        elif all(each.get(name) != data for each in expected):
            wrong.append(f"{name} is of no run")
    return wrong


def noted(trace: Path, what: str) -> set[str]:
    """Return the pieces of work logged with the prefix `what`: `BEGUN`, `DONE` or `IDLE`."""
    lines = trace.read_text().splitlines() if trace.exists() else []
    return {line.removeprefix(what) for line in lines if line.startswith(what)}


def trials(given: list[str], searches: str, work: Path, kills: int, rng: random.Random) -> Tally:
    """Run a command until it has been killed `kills` times; return the counts."""
    found, arguments = Tally(), [*given, "--samples", "20", "--strategies", searches]
    began = time.perf_counter()
    for name, strategies in (("before", "pp"), ("calm", searches)):
        began = time.perf_counter()
        if run([*arguments, "--strategies", strategies], work / name, work / f"{name}.txt") != 0:
            raise RuntimeError((work / f"{name}.err").read_text())
    took = time.perf_counter() - began
    accesses = int((work / "calm.count").read_text())
    before, calm = contents(work / "before"), contents(work / "calm")
    idle = noted(work / "calm.txt", IDLE)
    found.units = len(noted(work / "calm.txt", DONE) - idle)
    edited = next(name for name in ("config.yaml", "comparison.csv", "backtest.csv") if name in before)
    number = 0
    while found.kills < kills:
        folder, expected = work / f"{number}", {name: data for name, data in calm.items() if name not in TIMED}
        if number % 2:
            for path, data in (before | {edited: EDITED}).items():
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / path).write_bytes(data)
            expected[f"{edited}~"] = EDITED
        begun: dict[str, int] = {}  # piece of work -> turn in which it last began
        done: set[str] = set()
        costs: Counter[int] = Counter()
        code, turn, complete = None, 0, False
        while code is None:
            moment: dict[str, Any] = {}
            if turn < 1 + (number % 3 == 2):
                share = (found.kills + rng.random()) / kills if not turn else rng.random()
                kinds = [{"after": share * took}, {"at": 1 + int(share * accesses)}]
                kinds.append({"at": accesses - rng.randrange(min(LAST, accesses))})
                moment = rng.choice(kinds)
            trace = work / f"{number}-{turn}.txt"
            code = run([*arguments, *["--resume"] * (turn > 0)], folder, trace, **moment)
            now = contents(folder)
            units = noted(trace, BEGUN) - idle
            if complete:
                begun.clear()
                done.clear()
            costs.update(begun[unit] for unit in units & begun.keys())
            found.done_again += len(units & done)
            begun |= dict.fromkeys(units, turn)
            done |= noted(trace, DONE)
            complete = code is None and not (folder / FOLDER).exists() and whole(calm, now) == []
            found.ended += complete
            if code is None:
                costs[turn] += 0
                found.kills += 1
                found.writing += f"{FOLDER}/files" in now
                found.wrong += whole(now, calm, before, {edited: EDITED, f"{edited}~": EDITED})
            elif code:
                found.wrong.append(f"exit code {code}: {trace.with_suffix('.err').read_text()}")
            turn += 1
        end = {name: data for name, data in contents(folder).items() if name not in TIMED}
        if end != expected:
            differ = sorted(name for name in {*end, *expected} if end.get(name) != expected.get(name))
            found.wrong.append(f"trial {number}: not as undisturbed: {', '.join(differ)}")
        found.begun_again += costs.values()
        shutil.rmtree(folder)
        number += 1
    return found


def main() -> None:
    """Kill each command, and print the counts."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=60, help="of each command")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="two searches instead of six")
    parser.add_argument("--commands", default="tune,compare,backtest")
    parser.add_argument("--workers", type=int, default=1)
    given = parser.parse_args()
    import_all()
    rows, wrong = [], []
    with tempfile.TemporaryDirectory() as scratch:
        every = commands(Path(scratch) / "in")
        (Path(scratch) / "sitecustomize.py").write_text(SITE)
        os.environ["PYTHONPATH"] = os.pathsep.join([scratch, str(Path(__file__).parents[2])])
        for name in given.commands.split(","):
            (work := Path(scratch) / name).mkdir()
            began = time.perf_counter()
            searches = SEARCHES["quick" if given.quick else "full"]
            command = [*every[name], "--workers", str(given.workers)]
            found = trials(command, searches, work, given.kills, random.Random(f"{given.seed} {name}"))
            most, times = max(found.begun_again, default=0), sum(found.begun_again)
            again = (times, found.done_again, most)
            counts = (found.kills, found.writing, found.ended, found.units, *again, len(found.wrong))
            rows.append([name, *map(str, counts), f"{time.perf_counter() - began:.0f}"])
            wrong += [f"{name}: {text}" for text in found.wrong]
            wrong += [f"{name}: {most} begun again by a kill"] * (most > given.workers)
    titles = [
        "command",
        "kills",
        "while moving",
        "at the end",
        "pieces of work",
        "begun again",
        "of these finished",
        "most by a kill",
        "wrong",
        "s",
    ]
    print(markdown_table(titles, rows))
    for text in wrong:
        print(text, file=sys.stderr)
    sys.exit(bool(wrong))


def import_all() -> None:
    """Import all modules of the commands, so that forked processes inherit them."""
    import qconf.report.run_directory
    import qconf.report.terminal
    from qconf.cli import COMMANDS, qconf

    for name in COMMANDS:
        qconf.get_command(click.Context(qconf), name)


if __name__ == "__main__":
    main()
