"""Decorators of functions for numba: only kernels become machine code, with most functions that they call inlined.

numba is imported by the first call: commands that only read, check or explain do not wait for it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from functools import cached_property, partial, update_wrapper
from pathlib import Path
from typing import Any


class Compiled:
    """A function that numba compiles at its first call, by Python or by a kernel that is compiled.

    A kernel from disk has the code of the functions that it calls, which then need no dispatcher.
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
        """Numba's dispatcher, which compiles or loads the function for each combination of argument types."""
        from parsim.engine.compile.compiler import dispatcher  # noqa: PLC0415 - it imports numba

        return dispatcher(self.py_func, **self._options)

    @property
    def _numba_type_(self) -> Any:
        """The numba type of this function where another one names it."""
        return self.dispatcher._numba_type_


_IMPORTS = re.compile(r"^ *from (parsim[\w.]*) import (\([^)]*\)|.*)", re.MULTILINE)


def sources(module: Path, package: Path = Path(__file__).parents[2]) -> str:
    """Return a digest of a module and of all modules of the package that it imports: kernels inline their functions."""
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

    It is compiled anew when its module changes, or one that it imports, since kernels inline functions and constants of
    these. numba alone would compare only the time stamp of the function's own file.

    Parameters
    ----------
    function : callable
    **options
        Options of `numba.njit`.

    Returns
    -------
    Compiled
    """
    return Compiled(function, sources=sources(Path(function.__code__.co_filename)), **options)


#: The loop of a kernel allocates nothing, so it needs no reference counts: they took two thirds of its time.
#: Its functions keep external linkage: two kernels from disk with internal ones cannot be loaded together.
kernel = partial(on_disk, _nrt=False)
#: A function that only kernels call; the compiler decides where it is inlined.
routine = partial(Compiled, _nrt=False, forceinline=False)  # else it would inherit the option of its caller
#: A routine that is always inlined in the loop: these are many, small, and called for every job.
step = partial(Compiled, _nrt=False, forceinline=True)
#: The same with the arithmetic of IEEE 754: a division by zero is infinite or NaN, and no error.
ieee_routine = partial(routine, error_model="numpy")
ieee_step = partial(step, error_model="numpy")
