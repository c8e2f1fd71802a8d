"""numba's dispatchers of the functions of `parsim.engine.compile.compiled`; imported when one is first called."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from functools import cache
from typing import Any

from numba import njit
from numba.core.caching import FunctionCache
from numba.core.codegen import JITCodeLibrary, ll
from numba.core.compiler import Compiler
from numba.core.runtime import rtsys
from numba.core.types import Integer, int64, unliteral

from parsim.engine.compile import lowering  # noqa: F401 - what numba knows of before it compiles one


class _Library(JITCodeLibrary):
    """Code that is optimized once, as C is with -O2: kernels are as fast as with numba's -O3, and compile faster.

    numba would inline small functions before, to remove reference counts, which few kernels have.
    """

    def _optimize_functions(self, module: Any) -> None:
        module.data_layout = self._codegen._data_layout
        manager, builder = self._codegen._function_pass_manager(opt=2)
        for function in module.functions:
            manager.run(function, builder)

    def _optimize_final_module(self) -> None:
        manager, builder = self._codegen._module_pass_manager(opt=2)
        manager.run(self._final_module, builder)


class _Rolled(_Library):
    """Code whose loops are not unrolled."""

    def _optimize_final_module(self) -> None:
        tuning = ll.create_pipeline_tuning_options(speed_level=2)
        tuning.loop_vectorization, tuning.loop_unrolling, tuning.loop_interleaving = True, False, False
        builder = ll.create_pass_builder(self._codegen._tm, tuning)
        builder.getModulePassManager().run(self._final_module, builder)


class _Unfinished(_Library):
    """The code of a function that callers inline or link; it has no address by itself."""

    @property
    def codegen(self) -> Any:
        """The object that sets the environment of a function where it runs."""
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


class _OutOfLine(_Unfinished):
    """The code of a function that is never inlined."""

    attributes: tuple[str, ...] = ("noinline",)

    def add_ir_module(self, ir_module: Any) -> None:
        """Add a module, whose functions get the attributes."""
        for function in ir_module.functions:
            if not function.is_declaration:
                for attribute in self.attributes:
                    function.attributes.add(attribute)
        super().add_ir_module(ir_module)


class _Seldom(_OutOfLine):
    """The code of a function that is called seldom: callers keep registers and code for the other path."""

    attributes = ("noinline", "cold")


@cache
def _compiler(library: type[JITCodeLibrary]) -> type[Compiler]:
    """Return a numba compiler whose code goes to this kind of library."""

    class Into(Compiler):
        def define_pipelines(self) -> list[Any]:
            state = self.state
            state.library = library(state.targetctx.codegen(), state.func_id.func_qualname)
            state.library.enable_object_caching()
            return super().define_pipelines()  # type: ignore[no-any-return]

    return Into


class OnDisk(FunctionCache):
    """Kernels on disk, which load without the imports that compiling needs, a fifth of a second.

    Kernels of other sources are not loaded: they may name types that no longer exist.
    """

    def __init__(self, function: Callable[..., Any], sources: str) -> None:
        super().__init__(function)
        self._cache_file._version = self._cache_file._version, sources

    def holds(self, target_context: Any, parts: tuple[bool, ...] = ()) -> bool:
        """Return whether a version for this processor is on disk; `parts`: which of its last arguments are not None."""
        processor = target_context.codegen().magic_tuple()
        with self._guard_against_spurious_io_errors():
            known = [key[0] for key in self._cache_file._load_index() if key[1] == processor]
        first = -len(parts)
        return any(parts == tuple(str(kind) != "none" for kind in kinds[first:] if parts) for kinds in known)

    def _save_overload(self, sig: Any, data: Any) -> None:
        """Save a version under a lock: two processes at once could save each other's code for a signature."""
        self._impl.locator.ensure_cache_path()
        folder = os.open(self.cache_path, os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            super()._save_overload(sig, data)
        finally:
            os.close(folder)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load a version of a kernel, or return None; compiling then imports the rest of numba."""
        rtsys.initialize(target_context)  # unpacks the arrays of a call
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)


_LIBRARIES = {
    "kernel": _Library,
    "long kernel": _Rolled,
    "inlined": _Unfinished,
    "out of line": _OutOfLine,
    "seldom": _Seldom,
}


def dispatcher(function: Callable[..., Any], code: str, sources: str = "", **options: Any) -> Any:
    """Return numba's dispatcher of a function.

    Parameters
    ----------
    function : callable
    code : {"kernel", "long kernel", "inlined", "out of line", "seldom"}
        A kernel, which Python calls and which is kept on disk; else how the code of a function is used by kernels.
    sources : str
        Digest of a kernel's sources, `parsim.engine.compile.compiled.sources`.
    **options
        Options of `numba.njit`.

    Returns
    -------
    numba.core.dispatcher.Dispatcher
    """
    options |= {"nogil": True, "no_cfunc_wrapper": True, "pipeline_class": _compiler(_LIBRARIES[code])}
    if sources:
        made = njit(**options)(function)
        made._cache = OnDisk(function, sources)
    else:
        made = njit(_nrt=False, no_cpython_wrapper=True, **options)(function)
        find = made.get_call_template
        made.get_call_template = lambda args, kws: find(tuple(map(_widened, args)), kws)
    return made


def _widened(kind: Any) -> Any:
    """Return the type for which an argument is compiled: int64 for all signed integers.

    Otherwise literals, and integers of 32 bits, would each have a version of their own.
    """
    kind = unliteral(kind)
    return int64 if isinstance(kind, Integer) and kind.signed else kind
