"""How the loops are compiled: only a kernel becomes machine code, with all that it calls written out in it.

numba optimizes each function for itself, makes machine code of it and keeps that on disk, then does it all again where
a caller takes it in. What only kernels call stays what the compiler's front end made of it until the kernel takes it
in: so half as much is compiled, to the same loops.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.types import unliteral


class _Unfinished(JITCodeLibrary):
    """The code of a function as its callers take it in; it has no address by itself."""

    @property
    def codegen(self) -> Any:
        """What sets the environment of a function where it runs."""
        return self

    def set_env(self, *_: object) -> None:
        """No environment is needed where nothing runs."""

    def get_pointer_to_function(self, name: str) -> int:
        """Return no address."""
        del name
        self._ensure_finalized()
        return 0

    def _optimize_final_module(self) -> None:
        """Leave that to the caller."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


class _Unfinishing(Compiler):
    """Compiles a function up to where a caller can take it in."""

    def define_pipelines(self) -> list[Any]:
        """Return numba's own steps."""
        state = self.state
        state.library = _Unfinished(state.targetctx.codegen(), state.func_id.func_qualname)
        return super().define_pipelines()  # type: ignore[no-any-return]


def _inner(**more: Any) -> Callable[[Callable[..., Any]], Any]:
    """Make the decorator of what only kernels call."""
    finish = njit(
        nogil=True, _nrt=False, no_cpython_wrapper=True, no_cfunc_wrapper=True, pipeline_class=_Unfinishing, **more
    )

    def decorate(function: Callable[..., Any]) -> Any:
        dispatcher = finish(function)
        find = dispatcher.get_call_template
        # A whole number that is written in a call is one like any other, or there would be a version for each.
        dispatcher.get_call_template = lambda args, kws: find(tuple(map(unliteral, args)), kws)
        return dispatcher

    return decorate


#: The loop of a kernel allocates nothing, so it needs no reference counts: they took two thirds of its time.
kernel = njit(cache=True, nogil=True, _nrt=False, no_cfunc_wrapper=True)
#: What only kernels call.
routine = _inner()
#: A routine that becomes part of the loop: these are many, small, and called for every job.
step = _inner(forceinline=True)
#: Both with the arithmetic of IEEE 754: what is divided by zero is infinite or NaN, and no error.
ieee_routine = _inner(error_model="numpy")
ieee_step = _inner(error_model="numpy", forceinline=True)
