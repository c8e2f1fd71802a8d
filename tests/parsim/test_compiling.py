"""Kernels are compiled before they are needed, into the cache on disk, each function for few types."""

from __future__ import annotations

import importlib
import json
import os
import pickle
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numba
import pytest

import parsim
from parsim import Queue, System, simulate
from parsim.compiling import GROUPS, WORKLOAD, Compiling, is_compiled, needed, seconds
from parsim.engine.compile import compiled
from parsim.engine.compile.compiled import sources
from parsim.engine.compile.compiler import OnDisk
from parsim.engine.fast.easy import easy
from tests import fuzz
from tests.benchmarks.compiling import measured
from tests.interpreted import is_seldom
from tests.warm import VERSIONS

#: Run in a process, with a group of one small kernel: which of two groups are missing, what loading one of them
#: imports, and which are missing then.
LOADING = """
import sys
import numpy as np
from parsim.compiling import GROUPS, WORKLOAD, Group, load, missing
from parsim.engine.lists.homes import find_homes
from parsim.prepare.columns import prepare
given = prepare(WORKLOAD).queued_jobs(), np.array([5]), True, np.zeros(2, dtype=np.int64)
GROUPS["homes"] = Group(1, find_homes, lambda: find_homes(*given))
print(*missing(["lists", "homes"]))
load(["homes"])
print(*{"numba.np.linalg", "numba.np.npyimpl", "scipy.linalg"} & set(sys.modules))
print(*missing(["lists", "homes"]))
"""


def test_a_group_is_missing_until_it_is_compiled_and_loads_without_what_compiles_it(tmp_path):
    def run() -> list[str]:
        environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
        done = subprocess.run(
            [sys.executable, "-c", LOADING], env=environment, check=True, capture_output=True, text=True
        )
        return done.stdout.splitlines()

    before, compiling, after = run()
    assert (before, after) == ("lists homes", "lists")
    assert "numba.np.npyimpl" in compiling
    assert run() == ["lists", "", "lists"]


def test_a_kernel_is_compiled_anew_where_a_file_changed_from_which_it_takes_functions(tmp_path, monkeypatch):
    simulate(WORKLOAD, System(5))
    assert is_compiled(easy)

    def holds_with(package: Path) -> bool:
        own = sources(package / "engine" / "fast" / "easy.py", package)
        monkeypatch.setattr(compiled, "sources", lambda _: own)
        return is_compiled(compiled.on_disk(easy.py_func))

    copied = Path(shutil.copytree(Path(parsim.__file__).parent, tmp_path / "parsim", copy_function=shutil.copyfile))
    assert holds_with(copied)  # written later, and the same
    for other in ("planning/conservative.py", "engine/visit.py"):  # it takes nothing from these
        (copied / other).write_text((copied / other).read_text() + "\n# more\n")
    assert holds_with(copied)
    changed = copied / "engine" / "resources" / "running.py"
    changed.write_text(changed.read_text() + "\n# more\n")
    assert not holds_with(copied)


def test_a_kernel_is_of_the_sources_that_were_imported(tmp_path):
    """A file may change, to one of the same size, between the import and the first call."""
    text = "from parsim.engine.compile.compiled import on_disk\n@on_disk\ndef more(x):\n    return x + 1\n"
    module = tmp_path / "module.py"
    module.write_text(text)
    edit = f"open({str(module)!r}, 'w').write({text.replace('1', '2')!r})"

    def run(change: str) -> str:
        environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "kept"), "PYTHONPATH": str(tmp_path)}
        line = [sys.executable, "-B", "-c", f"import module; {change}; print(module.more(1))"]
        return subprocess.run(line, env=environment, check=True, capture_output=True, text=True).stdout

    assert run(edit) == "2\n"
    killed = (
        "import os; from numba.core.caching import IndexDataCacheFile as kept; kept._save_data = lambda *_: os._exit(0)"
    )
    assert run(killed) == ""  # between the index and the code
    assert run("pass") == "3\n"


def test_kernels_of_other_sources_are_not_looked_into(tmp_path, monkeypatch):
    """They may name what is no more."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "gone.py").write_text("class Type:\n    pass\n")
    gone, target = importlib.import_module("gone"), easy.dispatcher.targetctx
    key = "signature", target.codegen().magic_tuple()
    OnDisk(easy.py_func, "older")._cache_file._save_index({(*key, gone.Type()): "file"})
    assert OnDisk(easy.py_func, "older").holds(target)
    monkeypatch.delitem(sys.modules, "gone")
    (tmp_path / "gone.py").unlink()
    with pytest.raises(ModuleNotFoundError):
        OnDisk(easy.py_func, "older").holds(target)
    assert not OnDisk(easy.py_func, "newer").holds(target)


def test_a_kernel_is_sent_by_its_name():
    assert pickle.loads(pickle.dumps(easy)) is easy


@pytest.mark.slow  # it compiles what loops share
def test_no_function_is_compiled_for_the_numbers_that_are_written_in_its_calls():
    found = {name: len(taken) for name, taken in measured("lists").items() if name.startswith("parsim.")}
    assert "parsim.engine.fast.easy.begin_job" in found
    assert max(found.values()) <= 2  # of running jobs, whose cores are int32 or int64


def test_each_group_has_one_version_of_its_kernel():
    """What calls it in another way, with other types of arrays, would compile it once more."""
    called = "from parsim.compiling import GROUPS; [each.call() for each in GROUPS.values()]"
    line = f"{called}; print([len(each.longest.dispatcher.signatures) for each in GROUPS.values()])"
    done = subprocess.run([sys.executable, "-c", line], check=True, capture_output=True, text=True)
    kernels = [each.longest for each in GROUPS.values()]
    assert json.loads(done.stdout) == [kernels.count(each) for each in kernels]


def test_what_reserves_nodes_or_plans_limits_needs_the_kernels_of_top_jobs():
    assert needed() == needed(System(4)) == ["general", "formulas", "lists"]
    planned = System(4, [Queue(max_run=1)], held_jobs="reserve")
    assert set(needed(planned)) - set(needed()) == {"top jobs"}
    assert set(needed(planned)) <= set(GROUPS)


@pytest.mark.parametrize("reserving", [{"reserve": "queues"}, {"reservation_depth": 3}])
def test_what_has_several_head_jobs_needs_their_kernel(reserving):
    assert set(needed(System(4, [Queue()], **reserving))) - set(needed()) == {"head jobs of queues"}


def test_kernels_that_are_interpreted_stay_so():
    """Else rules broken on purpose are simulated by kernels of the disk, in which nothing is broken."""
    line = (
        "from tests import interpreted; from parsim.engine.compile.compiled import Compiled; "
        "interpreted.interpret(); print(Compiled.__call__ is interpreted._call)"
    )
    assert subprocess.run([sys.executable, "-c", line], check=True, capture_output=True, text=True).stdout == "True\n"


def test_a_process_that_fails_is_named():
    running = Compiling({"no such group": 1}, 2)
    running.wait()
    assert running.failed == ["no such group"]


def test_what_is_stopped_ends(monkeypatch):
    def interrupted():
        raise KeyboardInterrupt

    running = Compiling(seconds(["general", "lists"]), 1)
    ((_, process),) = running._running
    assert os.getsid(process.pid) == process.pid != os.getsid(0)  # Ctrl-C at the terminal does not reach it
    monkeypatch.setattr(process, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        running.wait()
    monkeypatch.undo()
    running.stop()
    assert process.poll() is not None
    assert running.failed == ["general", "lists"]


class CalledError(Exception):
    """A kernel has been called, and does not run."""


def test_no_discipline_takes_a_version_that_is_not_compiled_before_the_tests(monkeypatch):
    """A version takes half a minute, in each worker that comes to it at the same time; others are interpreted."""
    module, found = importlib.import_module("parsim.simulate"), set()

    def recording(name):
        def called(*arguments):
            if name != "events" or not is_seldom(arguments[0], arguments[2]):
                found.add((name, tuple(map(numba.typeof, arguments))))
            raise CalledError

        return called

    for name in ("events", "time_dependent"):
        monkeypatch.setattr(module, name, recording(name))
    groups = [GROUPS[name].call for name in ("general", "top jobs", "head jobs of queues", "formulas")]
    for run in (*groups, *(fuzz.case(name, 0).simulate for name in VERSIONS)):
        with pytest.raises(CalledError):
            run()
    ahead = set(found)
    for name in (name for name in fuzz.TESTED if "planned" not in name):
        with suppress(CalledError):
            fuzz.case(name, 0).simulate()
        assert found == ahead, name


@pytest.mark.slow
@pytest.mark.parametrize("discipline", ["placed-alike", "preempt-throttled", "needs:queues", "closed", "queue-nodes"])
def test_what_is_interpreted_in_tests_compiles_to_the_same(discipline):
    line = [sys.executable, "-m", "tests.fuzz", "--count", "25", discipline]
    done = subprocess.run(line, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", GROUPS)
def test_every_group_can_be_called(name):
    GROUPS[name].call()


def test_kernels_from_disk_go_together():
    """The values of a formula, and a loop that reads one: a process loads them one way, another the other way."""
    line = (
        "import sys, dataclasses, numpy as np; from parsim import System, Workload, simulate; "
        "from parsim.model.formula import parse; order = 'min(eligible_time, 100)'; "
        "system = dataclasses.replace(System.single(2, order), priority_calc_period=60); "
        "work = Workload([0, 1, 2], [2, 1, 1], [5, 5, 5], [5, 5, 5]); "
        "steps = [lambda: parse(order).values(np.ones((5, 3)), np.ones(3)).tolist(), "
        "lambda: simulate(work, system).start.tolist()]; print([step() for step in steps[:: int(sys.argv[1])]])"
    )
    found = [
        subprocess.run([sys.executable, "-c", line, way], check=True, capture_output=True, text=True)
        for way in ("1", "-1")
    ]
    assert [json.loads(each.stdout) for each in found] == [[[1, 1, 1], [0, 5, 5]], [[0, 5, 5], [1, 1, 1]]]
