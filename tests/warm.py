"""Compile the kernels into the cache on disk before test processes start: each of them would compile the same ones."""

from __future__ import annotations

from joblib import cpu_count

from parsim.compiling import Compiling, missing


def warm() -> None:
    """Compile what is not compiled.

    Raises
    ------
    RuntimeError
        A process failed.
    """
    running = Compiling(missing(), cpu_count())
    running.wait()
    if running.failed:
        raise RuntimeError(f"these kernels do not compile: {', '.join(running.failed)}")


if __name__ == "__main__":
    warm()
