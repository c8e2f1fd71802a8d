"""How the loops are compiled: only a kernel becomes machine code, with what it calls often written out in it.

numba optimizes each function for itself, makes machine code of it and keeps that on disk, then does it all again where
a caller takes it in. What only kernels call stays what the compiler's front end made of it until the kernel takes it
in: so half as much is compiled, to the same loops. What a loop does seldom, or is long and stands at several places,
is called: written out at each it is most of a kernel, and the time of compiling grows faster than a function's length.

numba itself is imported by the first call: what only reads, checks or explains does not wait for it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from functools import cached_property, partial, update_wrapper
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
        from parsim.engine.compile.compiler import dispatcher  # noqa: PLC0415 - it imports numba

        return dispatcher(self.py_func, **self._options)

    @property
    def _numba_type_(self) -> Any:
        """What numba takes the name of this function for in another one."""
        return self.dispatcher._numba_type_


_IMPORTS = re.compile(r"^ *from (parsim[\w.]*) import (\([^)]*\)|.*)", re.MULTILINE)


def sources(module: Path, package: Path = Path(__file__).parents[2]) -> str:
    """Return a digest of a module and of all that it imports of the package: a kernel takes in their functions."""
    digest, found, ahead = hashlib.sha256(), {module}, [module]
    while ahead:
        text = ahead.pop().read_text()
        digest.update(text.encode())
        for name, members in _IMPORTS.findall(text):
            for each in (name, *(f"{name}.{member}" for member in re.findall(r"\w+", members))):
                path = package.joinpath(*each.split(".")[1:]).with_suffix(".py")
                if path not in found and path.is_file():
                    found.add(path)
                    ahead.append(path)
    return digest.hexdigest()


def on_disk(function: Callable[..., Any], **options: Any) -> Compiled:
    """Compile a function at its first call, and keep it on disk.

    Where its module changes, or one that it imports, it is compiled anew: kernels take in functions and constants of
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
    return Compiled(function, code="kernel", sources=sources(Path(function.__code__.co_filename)), **options)


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
