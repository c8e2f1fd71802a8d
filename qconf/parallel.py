"""Parallel calls; the results do not depend on the number of workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from joblib import Parallel, delayed
from joblib.parallel import ThreadingBackend, get_active_backend

T = TypeVar("T")


def parallel_map(
    workers: int, function: Callable[..., T], arguments: Sequence[tuple[object, ...]], *, processes: bool = False
) -> list[T]:
    """Call `function` with each tuple, and return the results in the order of `arguments`.

    Parameters
    ----------
    workers : int
        Calls at a time; with 1 the caller itself makes them.
    function : callable
    arguments : sequence of tuple
    processes : bool
        Prefer processes, for functions that are mostly Python, to threads, for kernels, which release the GIL.
        A back end of ``joblib.parallel_config``, for instance Dask's, takes the place of either.
    """
    workers = min(workers, len(arguments))
    if workers <= 1:
        return [function(*each) for each in arguments]
    prefer = "processes" if processes else "threads"
    if type(get_active_backend(prefer)[0]) is ThreadingBackend:
        # joblib's own threads poll for results every 10 ms, longer than many a simulation takes.
        with ThreadPoolExecutor(workers) as pool:
            return list(pool.map(function, *zip(*arguments, strict=True)))
    # Arrays that joblib maps into memory are read-only, for which kernels would be compiled anew.
    calls = (delayed(function)(*each) for each in arguments)
    return list(Parallel(workers, prefer=prefer, max_nbytes=None)(calls))
