"""The kernels of the simulator are compiled once for a processor: while the log is read, and said at the terminal."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from parsim import System


#: What compiles what strategies compute, along with what is missing of the simulator, and its seconds.
STRATEGIES = {"qconf.strategies.compiling": 5}


def compile_kernels(system: System | None, *, quiet: bool = False) -> Callable[[], None]:
    """Begin to compile what a search under such a system needs and is not on disk; return what waits for it."""
    from joblib import cpu_count

    from parsim.compiling import Compiling, missing, needed, seconds

    names = missing(needed(system))
    if not names:
        return lambda: None
    if not quiet:
        text = "compiling the simulator for this processor, once: about a minute of computing, in parallel"
        click.echo(text, err=True)
    running = Compiling(seconds(names) | STRATEGIES, cpu_count())
    click.get_current_context().call_on_close(running.stop)
    return running.wait
