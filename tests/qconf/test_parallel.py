"""`parallel_map`: results in order, on threads, in processes, or on whatever back end joblib is configured for."""

from __future__ import annotations

import gc
import multiprocessing
import os
import pickle
import signal
import threading
import time
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from joblib import parallel_config, register_parallel_backend
from joblib.parallel import ThreadingBackend

from qconf.errors import InputError, QconfError
from qconf.parallel import Shared, forks, parallel_map

copies = pytest.mark.skipif(not forks(), reason="no copies of a process on this system")


def where(_):
    return os.getpid(), threading.get_ident()


def refuse(number):
    raise InputError("is refused", field="number", value=number, fix="choose another")


def doubled_in_place(values):
    values *= 2
    return values


@pytest.mark.parametrize("processes", [False, True])
@pytest.mark.parametrize("workers", [1, 2, 5])
def test_results_are_in_the_order_of_the_arguments(workers, processes):
    found = parallel_map(workers, pow, [(2, k) for k in range(20)], processes=processes)
    assert found == [2**k for k in range(20)]


def test_no_arguments_give_no_results():
    assert parallel_map(4, pow, []) == []


def test_one_worker_is_the_caller():
    here = where(None)
    assert parallel_map(1, where, [(0,), (1,)]) == [here, here]
    assert parallel_map(4, where, [(0,)]) == [here]


def test_threads_share_the_process_and_processes_do_not():
    assert {pid for pid, _ in parallel_map(2, where, [(0,), (1,)])} == {os.getpid()}
    assert os.getpid() not in {pid for pid, _ in parallel_map(2, where, [(0,), (1,)], processes=True)}


@pytest.mark.parametrize("processes", [False, True])
@pytest.mark.parametrize("workers", [1, 2])
def test_the_exception_of_a_call_is_raised(workers, processes):
    with pytest.raises(InputError, match="is refused") as caught:
        parallel_map(workers, refuse, [(1,), (2,)], processes=processes)
    assert caught.value.field == "number"


def test_processes_may_write_to_large_arrays_of_their_own():
    values = np.ones(1_000_000)
    found = parallel_map(2, doubled_in_place, [(values,), (values,)], processes=True)
    assert [each.sum() for each in found] == [2 * values.size] * 2
    assert values.sum() == values.size


@pytest.mark.parametrize("processes", [False, True])
def test_a_configured_back_end_is_used(processes):
    tasks = []

    class Recording(ThreadingBackend):
        def submit(self, func, callback=None):
            tasks.append(func)
            return super().submit(func, callback)

    register_parallel_backend("recording", Recording)
    with parallel_config(backend="recording"):
        assert parallel_map(2, pow, [(2, k) for k in range(5)], processes=processes) == [1, 2, 4, 8, 16]
    assert tasks


def test_a_call_may_itself_be_parallel():
    inner = [(2, k) for k in range(4)]
    for processes in (False, True):
        assert parallel_map(2, parallel_map, [(2, pow, inner)] * 3, processes=processes) == [[1, 2, 4, 8]] * 3


def added(shared, number):
    return sum(shared.value) + number, os.getpid(), id(shared.value)


def test_what_is_shared_goes_to_each_worker_once():
    shared = Shared([1, 2])
    with parallel_config(backend="loky"):
        found = parallel_map(2, added, [(shared, k) for k in range(40)], processes=True)
    assert [each[0] for each in found] == [3 + k for k in range(40)]
    assert len({each[1:] for each in found}) == len({each[1] for each in found}) <= 2
    (path,) = {Path(shared.__reduce__()[1][0])}
    assert path.exists()
    del shared
    deadline = time.monotonic() + 10  # joblib's thread may hold the last call for a moment
    while path.exists() and time.monotonic() < deadline:
        gc.collect()
        time.sleep(0.01)
    assert not path.exists()


@copies
def test_copies_have_what_the_caller_has():
    shared, place = Shared([1, 2]), threading.Lock()  # which cannot be sent
    found = parallel_map(2, lambda k: (added(shared, k), place.locked()), [(k,) for k in range(40)], processes=True)
    assert [each[0][0] for each in found] == [3 + k for k in range(40)]
    assert {each[0][2] for each in found} == {id(shared.value)}
    assert os.getpid() not in {each[0][1] for each in found}


LOADED: list[bool] = []  # of the caller, before a worker begins


def waited_for(path):
    deadline = time.monotonic() + 20
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.005)
    return path.exists()


def handed_on(folder, number):
    (folder / str(number)).touch()
    if LOADED:
        (folder / "last worker").touch()
    return number < 3 or waited_for(folder / "last worker"), bool(LOADED)


@copies
def test_a_worker_goes_on_while_the_caller_is_busy_and_the_last_has_what_it_loaded(tmp_path, monkeypatch):
    monkeypatch.setattr(f"{__name__}.LOADED", [])

    def meanwhile():
        LOADED.append(waited_for(tmp_path / "3"))

    found = parallel_map(2, handed_on, [(tmp_path, k) for k in range(6)], processes=True, meanwhile=meanwhile)
    assert LOADED == [True]
    assert found[:4] == [(True, False)] * 4  # made by the first worker, which had to go on for that
    assert (True, True) in found


@copies
def test_a_worker_that_is_lost_while_the_caller_is_busy_is_survived(tmp_path):
    calls, seen = [(tmp_path, k) for k in range(8)], []
    found = parallel_map(2, lost, calls, processes=True, meanwhile=lambda: seen.append(waited_for(tmp_path / "lost")))
    assert (found, seen) == (list(range(8)), [True])


@pytest.mark.parametrize("workers", [1, 2])
def test_what_is_done_meanwhile_is_done_once_and_what_it_raises_is_raised(workers):
    done = []
    assert parallel_map(workers, pow, [(2, 1), (2, 2)], processes=True, meanwhile=lambda: done.append(1)) == [2, 4]
    assert done == [1] * (workers == 1 or forks())
    before = set(multiprocessing.active_children())
    if forks():
        with pytest.raises(InputError, match="is refused"):
            parallel_map(workers, pow, [(2, 1), (2, 2)], processes=True, meanwhile=lambda: refuse(3))
        assert set(multiprocessing.active_children()) <= before


@copies
def test_an_interrupt_as_the_receiving_thread_starts_ends_it_before_its_connections(monkeypatch):
    before = set(multiprocessing.active_children())
    receivers, failures, start = [], [], threading.Thread.start

    def start_and_interrupt(thread):
        receivers.append(thread)
        start(thread)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(threading.Thread, "start", start_and_interrupt)
    monkeypatch.setattr(threading, "excepthook", failures.append)
    with pytest.raises(KeyboardInterrupt):
        parallel_map(2, time.sleep, [(0.2,)] * 4, processes=True, meanwhile=lambda: None)
    assert [each.is_alive() for each in receivers] == [False]
    assert not failures
    assert set(multiprocessing.active_children()) <= before


@copies
def test_copies_end_with_the_caller(tmp_path):
    """A caller that is killed leaves no worker, though each is in the middle of a long call."""
    caller = multiprocessing.get_context("fork").Process(target=parallel_map, args=(3, sleeps, [(tmp_path,)] * 30))
    caller._kwargs = {"processes": True}
    caller.start()
    while len(list(tmp_path.iterdir())) < 3:
        time.sleep(0.01)
    os.kill(caller.pid, signal.SIGKILL)
    caller.join()
    deadline = time.monotonic() + 20
    workers = [Path("/proc", each.name) for each in tmp_path.iterdir()]
    while any(each.exists() for each in workers) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(workers) == 3
    assert not any(each.exists() for each in workers)


def sleeps(folder):
    (folder / str(os.getpid())).touch()
    time.sleep(120)


def test_results_are_seen_as_they_come():
    seen = {}
    for workers, processes in ((1, False), (2, False), (2, True)):
        seen.clear()
        found = parallel_map(workers, pow, [(2, k) for k in range(9)], processes=processes, done=seen.__setitem__)
        assert [seen[i] for i in range(9)] == found


def lost(folder, number):
    """End the process that makes the third call, the first time."""
    if number == 3 and not (folder / "lost").exists():
        (folder / "lost").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number


@pytest.mark.parametrize("backend", ["copies", "loky"])
def test_a_lost_worker_is_survived(tmp_path, backend):
    with nullcontext() if backend == "copies" else parallel_config(backend=backend):
        assert parallel_map(2, lost, [(tmp_path, k) for k in range(8)], processes=True) == list(range(8))
    assert (tmp_path / "lost").exists()


def always_lost(_):
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("backend", ["copies", "loky"])
def test_workers_that_are_lost_again_and_again_end_it(backend):
    chosen = nullcontext() if backend == "copies" else parallel_config(backend=backend)
    with pytest.raises(QconfError, match="--workers"), chosen:
        parallel_map(2, always_lost, [(0,), (1,)], processes=True)


def test_another_version_on_a_worker_is_refused(monkeypatch):
    packed = pickle.dumps(Shared(1))
    assert pickle.loads(packed).value == 1
    monkeypatch.setattr("qconf.parallel.__version__", "0.0")
    with pytest.raises(QconfError, match="same everywhere"):
        pickle.loads(packed)
