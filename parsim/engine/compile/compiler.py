"""What the engine takes of numba's private parts; tried with numba 0.62 to 0.68.

numba makes machine code of each function, and again of each caller that inlines it: so the general loop would take
three times as long to compile, those of formulas twice. It is imported by the first call of a kernel.
"""

from __future__ import annotations

import fcntl
from pathlib import Path
from typing import Any

from numba import njit
from numba.core.caching import FunctionCache
from numba.core.codegen import JITCodeLibrary, ll
from numba.core.compiler import Compiler
from numba.core.runtime import rtsys
from numba.core.types import int64, signed_domain, unliteral

from parsim.engine.compile import lowering  # noqa: F401 - what numba knows of before it compiles one


class _Kernel(JITCodeLibrary):
    """The code of a kernel and of all functions that it calls, optimized once, as C is with -O2."""

    _optimize_functions = lambda *_: None  # noqa: E731 - of each function by itself

    def add_linking_library(self, library: Any) -> None:
        """Add the code of a function, and of those that it calls."""
        super().add_linking_library(library)
        for called in library._linking_libraries if isinstance(library, _Part) else ():
            if called not in self._linking_libraries:
                self.add_linking_library(called)

    def _optimize_final_module(self) -> None:
        tuning = ll.create_pipeline_tuning_options(speed_level=2)
        tuning.loop_unrolling = tuning.loop_interleaving = False  # as fast, in a tenth less time
        tuning.loop_vectorization = True
        builder = ll.create_pass_builder(self._codegen._tm, tuning)
        passes = builder.getModulePassManager()
        passes.add_refprune_pass()
        passes.run(self._final_module, builder)


class _Part(_Kernel):
    """The output of numba's front end for a function that only kernels call; it has no address by itself."""

    _ensure_finalized = get_pointer_to_function = set_env = lambda *_: 0
    codegen = property(lambda self: self)  # asked for `set_env`


class _Compiler(Compiler):
    def define_pipelines(self) -> list[Any]:
        kind = _Part if self.state.flags.no_cpython_wrapper else _Kernel
        self.state.library = kind(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
        self.state.library.enable_object_caching()
        return super().define_pipelines()  # type: ignore[no-any-return]


class OnDisk(FunctionCache):
    """Kernels on disk, which load without the imports of compiling; none of other sources: types may have gone."""

    def __init__(self, function: Any, sources: str) -> None:
        super().__init__(function)
        self._cache_file._version = self._cache_file._version, sources

    def holds(self, target_context: Any, parts: tuple[bool, ...] = ()) -> bool:
        """Return whether a version for this processor is on disk; `parts`: which of its last arguments are not None."""
        own, index = target_context.codegen().magic_tuple(), self._cache_file._load_index()
        known = [kinds[len(kinds) - len(parts) :] for kinds, processor, *_ in index if processor == own]
        return any(parts == tuple(str(kind) != "none" for kind in kinds) for kinds in known)

    def _save_overload(self, sig: Any, data: Any) -> None:
        """Save a version under a lock: two processes at once could save each other's code for a signature."""
        with Path(self._py_func.__code__.co_filename).open() as source:
            fcntl.flock(source, fcntl.LOCK_EX)
            index = Path(self._cache_file._index_path)
            for other in () if self._cache_file._load_index() else index.parent.glob(f"{index.stem}.*.nbc"):
                other.unlink()  # code of other sources, which the new index could name
            super()._save_overload(sig, data)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load a version of a kernel, or return None; compiling then imports the rest of numba."""
        rtsys.initialize(target_context)  # unpacks the arrays of a call
        return self._load_overload(sig, target_context)


def dispatcher(function: Any, sources: str = "", **options: Any) -> Any:
    """Return numba's dispatcher of a function: of a kernel with the digest of its sources, else of a part."""
    options |= {"nogil": True, "no_cfunc_wrapper": True, "no_cpython_wrapper": not sources}
    made = njit(pipeline_class=_Compiler, **options)(function)
    if sources:
        made._cache = OnDisk(function, sources)
    else:  # one version for all signed integers and literals
        find, wide = made.get_call_template, dict.fromkeys(signed_domain, int64)
        made.get_call_template = lambda args, kws: find(tuple(wide.get(k, k) for k in map(unliteral, args)), kws)
    return made
