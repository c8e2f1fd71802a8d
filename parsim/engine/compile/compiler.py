"""What numba makes of the functions of `parsim.engine.compile.compiled`; imported where one is called first."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from functools import cache
from typing import Any

from numba import njit
from numba.core.caching import FunctionCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.runtime import rtsys
from numba.core.types import Integer, int64, unliteral

from parsim.engine.compile import lowering  # noqa: F401 - what numba knows of before it compiles one


class _Library(JITCodeLibrary):
    """Code that is optimized once, as C is with -O2: kernels are as fast as with numba's -O3, and made sooner.

    numba takes in what is called cheaply before, to leave out reference counts, of which few kernels have any.
    """

    def _optimize_functions(self, module: Any) -> None:
        module.data_layout = self._codegen._data_layout
        manager, builder = self._codegen._function_pass_manager(opt=2)
        for function in module.functions:
            manager.run(function, builder)

    def _optimize_final_module(self) -> None:
        manager, builder = self._codegen._module_pass_manager(opt=2)
        manager.run(self._final_module, builder)


class _Unfinished(_Library):
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


class _Apart(_Unfinished):
    """The code of a function that its callers call."""

    attributes: tuple[str, ...] = ("noinline",)

    def add_ir_module(self, ir_module: Any) -> None:
        """Have the function stay one."""
        for function in ir_module.functions:
            if not function.is_declaration:
                for attribute in self.attributes:
                    function.attributes.add(attribute)
        super().add_ir_module(ir_module)


class _Seldom(_Apart):
    """The code of a function from which its callers keep their registers and their way clear."""

    attributes = ("noinline", "cold")


@cache
def _compiler(library: type[JITCodeLibrary]) -> type[Compiler]:
    """Return numba's compiler, which makes code of this kind."""

    class Into(Compiler):
        def define_pipelines(self) -> list[Any]:
            state = self.state
            state.library = library(state.targetctx.codegen(), state.func_id.func_qualname)
            state.library.enable_object_caching()
            return super().define_pipelines()  # type: ignore[no-any-return]

    return Into


class OnDisk(FunctionCache):
    """Kernels on disk, which load without what numba needs to compile one: a fifth of a second of imports.

    Those of other sources are not looked into: they may name types that are no more.
    """

    def __init__(self, function: Callable[..., Any], sources: str) -> None:
        super().__init__(function)
        self._cache_file._version = self._cache_file._version, sources

    def holds(self, target_context: Any, parts: tuple[bool, ...] = ()) -> bool:
        """Return whether a version for this processor is on disk, whose last arguments are there or None."""
        processor = target_context.codegen().magic_tuple()
        with self._guard_against_spurious_io_errors():
            known = [key[0] for key in self._cache_file._load_index() if key[1] == processor]
        first = -len(parts)
        return any(parts == tuple(str(kind) != "none" for kind in kinds[first:] if parts) for kinds in known)

    def _save_overload(self, sig: Any, data: Any) -> None:
        """Keep a version, alone: two processes that do so at once could give each other's code to a signature."""
        self._impl.locator.ensure_cache_path()
        folder = os.open(self.cache_path, os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            super()._save_overload(sig, data)
        finally:
            os.close(folder)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load a version of a kernel, or return None; what has to be compiled then imports the rest itself."""
        rtsys.initialize(target_context)  # what takes the arrays of a call apart
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)


_LIBRARIES = {"kernel": _Library, "taken in": _Unfinished, "apart": _Apart, "seldom": _Seldom}


def dispatcher(function: Callable[..., Any], code: str, sources: str = "", **options: Any) -> Any:
    """Return numba's dispatcher of a function.

    Parameters
    ----------
    function : callable
    code : {"kernel", "taken in", "apart", "seldom"}
        A kernel, which Python calls and which is kept on disk, or what becomes of a function that only kernels call.
    sources : str
        What a kernel on disk is of, as `parsim.engine.compile.compiled.sources` has it.
    **options
        Those of `numba.njit`.

    Returns
    -------
    numba.core.dispatcher.Dispatcher
    """
    options |= {"nogil": True, "no_cfunc_wrapper": True, "pipeline_class": _compiler(_LIBRARIES[code])}
    if code == "kernel":
        made = njit(**options)(function)
        made._cache = OnDisk(function, sources)
    else:
        made = njit(_nrt=False, no_cpython_wrapper=True, **options)(function)
        find = made.get_call_template
        made.get_call_template = lambda args, kws: find(tuple(map(_widened, args)), kws)
    return made


def _widened(kind: Any) -> Any:
    """Return the type as which an argument is taken: of whole numbers one, or there would be a version for each.

    Those that are written in a call have a type of their own otherwise, and those of 32 bits another.
    """
    kind = unliteral(kind)
    return int64 if isinstance(kind, Integer) and kind.signed else kind
