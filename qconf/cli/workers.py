"""Where the workers of a command run: processes of this machine, a Dask cluster, or a joblib backend."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import click

from qconf.errors import InputError

if TYPE_CHECKING:
    from distributed import Client

TIMEOUT = 10  # seconds to wait for the scheduler of a cluster
DASK = "dask"

ADDRESS = re.compile(r"\w+://")

backend_option = click.option(
    "--backend",
    metavar="NAME",
    help="Where workers run: dask, or a back end of joblib.",
)
scheduler_option = click.option("--scheduler", metavar="ADDRESS", help="Of the Dask cluster: tcp://HEAD:8786.")


@contextmanager
def working(settings: Mapping[str, Any], backend: str | None, scheduler: str | None) -> Iterator[dict[str, Any]]:
    """Run parallel calls on a backend; yield the settings, with the number of workers of a Dask cluster.

    Raises InputError if there is no such backend, or no cluster.
    """
    if (backend == DASK) != (scheduler is not None):
        raise click.UsageError("--backend dask and --scheduler ADDRESS are given together.")
    with ExitStack() as stack:
        if backend is None:
            yield dict(settings)
            return
        from joblib import effective_n_jobs, parallel_config

        fix = "choose loky, threading, dask, or one that is registered"
        if backend == "multiprocessing":
            raise InputError("waits for ever for a worker that is lost", field="--backend", value=backend, fix=fix)

        if scheduler is not None:
            stack.enter_context(_cluster(scheduler))
        try:
            stack.enter_context(parallel_config(backend=backend))
        except ValueError as error:
            raise InputError("no such back end of joblib", field="--backend", value=backend, fix=fix) from error
        found = {"workers": max(2, effective_n_jobs(-1))} if backend == DASK else {}
        yield {**settings, **found}


def _cluster(scheduler: str) -> Client:
    try:
        from distributed import Client
    except ImportError as error:
        fix = "install it, here and on all workers: pip install 'qconf-hpc[cluster]'"
        raise InputError("Dask is not installed", field="--backend", value=DASK, fix=fix) from error
    try:
        return Client(scheduler, timeout=TIMEOUT)  # type: ignore[no-untyped-call]
    except (OSError, ValueError, TimeoutError) as error:
        fix = "start one: dask scheduler, then dask worker ADDRESS on each machine"
        raise InputError("no scheduler answers there", field="--scheduler", value=scheduler, fix=fix) from error
