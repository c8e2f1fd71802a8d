"""Many calls at a time; what comes out does not depend on how many workers there are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from typing import TypeVar

T = TypeVar("T")


def parallel_map(
    workers: int, function: Callable[..., T], arguments: Sequence[tuple[object, ...]], *, processes: bool = False
) -> list[T]:
    """Call `function` with each tuple; results in order.

    Parameters
    ----------
    workers : int
    function : callable
    arguments : sequence of tuple
    processes : bool
        For functions that are mostly Python: threads share it well only with kernels, which release the GIL.
    """
    workers = min(workers, len(arguments))
    if workers <= 1:
        return [function(*each) for each in arguments]
    if processes:
        pool: ProcessPoolExecutor | ThreadPoolExecutor = ProcessPoolExecutor(workers, get_context("spawn"))
    else:
        pool = ThreadPoolExecutor(workers)
    with pool:
        return list(pool.map(function, *zip(*arguments, strict=True)))
