"""Calls side by side: in order, on threads or in processes of their own."""

import os
import threading

import pytest

from qconf.parallel import parallel_map


def where(_):
    return os.getpid(), threading.get_ident()


@pytest.mark.parametrize("processes", [False, True])
@pytest.mark.parametrize("workers", [1, 2])
def test_results_are_in_order(workers, processes):
    found = parallel_map(workers, pow, [(2, k) for k in range(20)], processes=processes)
    assert found == [2**k for k in range(20)]


def test_nothing_to_do():
    assert parallel_map(4, pow, []) == []


def test_one_worker_is_the_caller_and_processes_are_others():
    here = where(None)
    assert parallel_map(1, where, [(0,), (1,)]) == [here, here]
    assert here[0] not in {pid for pid, _ in parallel_map(2, where, [(0,), (1,)], processes=True)}
    assert {pid for pid, _ in parallel_map(2, where, [(0,), (1,)])} == {here[0]}


def test_what_goes_wrong_is_raised():
    with pytest.raises(ZeroDivisionError):
        parallel_map(2, divmod, [(1, 1), (1, 0)])
