"""`parallel_map`: results in order, on threads, in processes, or on whatever back end joblib is configured for."""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest
from joblib import parallel_config, register_parallel_backend
from joblib.parallel import ThreadingBackend

from qconf.errors import InputError
from qconf.parallel import parallel_map


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
