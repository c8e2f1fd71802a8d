"""Calls side by side: in order, on threads or in processes of their own."""

import os
import threading

import pytest

from qconf.workers import side_by_side


def where(_):
    return os.getpid(), threading.get_ident()


@pytest.mark.parametrize("processes", [False, True])
@pytest.mark.parametrize("workers", [1, 2])
def test_results_are_in_order(workers, processes):
    found = side_by_side(workers, pow, [(2, k) for k in range(20)], processes=processes)
    assert found == [2**k for k in range(20)]


def test_nothing_to_do():
    assert side_by_side(4, pow, []) == []


def test_one_worker_is_the_caller_and_processes_are_others():
    here = where(None)
    assert side_by_side(1, where, [(0,), (1,)]) == [here, here]
    assert here[0] not in {pid for pid, _ in side_by_side(2, where, [(0,), (1,)], processes=True)}
    assert {pid for pid, _ in side_by_side(2, where, [(0,), (1,)])} == {here[0]}


def test_what_goes_wrong_is_raised():
    with pytest.raises(ZeroDivisionError):
        side_by_side(2, divmod, [(1, 1), (1, 0)])
