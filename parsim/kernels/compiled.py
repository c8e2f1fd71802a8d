"""How the loops are compiled: only a kernel becomes machine code, with what it calls often written out in it.

numba optimizes each function for itself, makes machine code of it and keeps that on disk, then does it all again where
a caller takes it in. What only kernels call stays what the compiler's front end made of it until the kernel takes it
in: so half as much is compiled, to the same loops. What a loop does seldom, or is long and stands at several places,
is called: written out at each it is most of a kernel, and the time of compiling grows faster than a function's length.

numba itself is imported by the first call: what only reads, checks or explains does not wait for it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache, cached_property, partial, update_wrapper
from pathlib import Path
from typing import Any


class Compiled:
    """A function that numba compiles where it is first called, by Python or by a kernel that is compiled.

    A kernel from disk holds the code of what it calls, of which no dispatcher is made then.
    """

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        self.py_func, self._options = function, options
        update_wrapper(self, function)

    def __reduce__(self) -> str:
        return self.__qualname__

    def __call__(self, *arguments: Any) -> Any:
        """Run the machine code."""
        return self.dispatcher(*arguments)

    @cached_property
    def dispatcher(self) -> Any:
        """What compiles the function, or loads it from disk, for each combination of types it is called with."""
        from parsim.kernels.compiler import dispatcher  # noqa: PLC0415 - it imports numba

        return dispatcher(self.py_func, **self._options)

    @property
    def _numba_type_(self) -> Any:
        """What numba takes the name of this function for in another one."""
        return self.dispatcher._numba_type_


@cache
def sources(folder: Path = Path(__file__).parent) -> str:
    """Return a digest of the modules in a folder, those of the kernels."""
    digest = hashlib.sha256()
    for each in sorted(folder.glob("[!.]*.py")):  # an editor's lock of a file begins with a dot
        digest.update(f"{each.name} {each.stat().st_size} ".encode() + each.read_bytes())
    return digest.hexdigest()


def on_disk(function: Callable[..., Any], **options: Any) -> Compiled:
    """Compile a function at its first call, and keep it on disk.

    Where its file or a module of this folder changes it is compiled anew: kernels take in functions and constants of
    one another. numba looks at the file alone, and when it compiles: what was imported may be older.

    Parameters
    ----------
    function : callable
    **options
        Those of `numba.njit`.

    Returns
    -------
    Compiled
    """
    own = hashlib.sha256(Path(function.__code__.co_filename).read_bytes()).hexdigest()
    return Compiled(function, code="kernel", sources=f"{own} {sources()}", **options)


#: The loop of a kernel allocates nothing, so it needs no reference counts: they took two thirds of its time.
#: What it calls keeps its linkage: with functions internal to each kernel, two kernels from disk do not go together.
kernel = partial(on_disk, _nrt=False)
#: What only kernels call.
routine = partial(Compiled, code="taken in")
#: A routine that becomes part of the loop: these are many, small, and called for every job.
step = partial(routine, forceinline=True)
#: A routine that does not, since it is called seldom: the compiler keeps it out of the way of the loop.
seldom = partial(Compiled, code="seldom", forceinline=False)  # which a routine takes from its caller otherwise
#: A routine that does not, since it is long, and called at several places, however often.
apart = partial(Compiled, code="apart", forceinline=False)
#: The same with the arithmetic of IEEE 754: what is divided by zero is infinite or NaN, and no error.
ieee_routine = partial(routine, error_model="numpy")
ieee_step = partial(step, error_model="numpy")
