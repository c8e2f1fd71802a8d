"""What `parsim.engine.compile.native` means to numba, by `numba.extending`: a tuple by pointer, a move in an array."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from numba import types
from numba.core.cgutils import alloca_once_value, gep_inbounds, ir, raw_memmove
from numba.extending import (
    NativeValue,
    lower_builtin,
    lower_getattr_generic,
    models,
    register_model,
    type_callable,
    typeof_impl,
    unbox,
)

from parsim.engine.compile.native import ByPointer, memmove


class Pointer(types.NamedTuple):  # type: ignore[misc]
    """The numba type of a tuple that is passed by pointer; only Python makes such tuples.

    Its name is short: every function that takes one has it in its own, and it would be seven thousand letters. A tuple
    in such a tuple is handed on by pointer, too.
    """

    def __init__(self, fields: Any, made: Any) -> None:
        super().__init__(fields, made)
        self.name = f"{made.__name__}_{sha256(self.name.encode()).hexdigest()[:12]}"

    def __getitem__(self, place: int) -> Any:
        """Return the type of a field where it is read."""
        kind = super().__getitem__(place)
        return Pointer(kind.types, kind.instance_class) if isinstance(kind, types.NamedTuple) else kind


@typeof_impl.register(ByPointer)
def _(value: tuple[Any, ...], context: Any) -> Pointer:
    return Pointer([typeof_impl(each, context) for each in value], type(value))


@register_model(Pointer)
class _Model(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Pointer) -> None:
        fields = ir.LiteralStructType([manager.lookup(each).get_value_type() for each in kind.types])
        super().__init__(manager, kind, ir.PointerType(fields))

    def from_argument(self, _: Any, value: Any) -> Any:
        """Tell the optimizer that nothing else reads or writes the tuple, so that it may be read ahead of a loop."""
        value.add_attribute("noalias")
        value.attributes.dereferenceable = _size(value.type.pointee)
        value.attributes.align = 8
        return value


def _size(kind: Any) -> int:
    """Return the least number of bytes of a value."""
    if isinstance(kind, ir.LiteralStructType):
        return sum(map(_size, kind.elements))
    if isinstance(kind, ir.ArrayType):
        return int(kind.count) * _size(kind.element)
    return int(kind.width) // 8 if isinstance(kind, ir.IntType) else 8 if isinstance(kind, ir.PointerType) else 4


@unbox(Pointer)
def _unbox(kind: Pointer, value: Any, c: Any) -> NativeValue:
    if c.context.enable_nrt:
        raise TypeError(
            "what is handed on by pointer goes to kernels without reference counts: none would be given back"
        )
    whole = types.NamedTuple(kind.types, kind.instance_class)
    found = c.unbox(whole, value)
    return NativeValue(alloca_once_value(c.builder, found.value), cleanup=found.cleanup, is_error=found.is_error)


@lower_getattr_generic(Pointer)
def _field(_: Any, builder: Any, kind: Pointer, value: Any, name: str) -> Any:
    place = kind.fields.index(name)
    field = gep_inbounds(builder, value, 0, place)
    return field if isinstance(kind[place], Pointer) else builder.load(field)


@type_callable(memmove)
def _(_: Any) -> Any:
    def typed(array: Any, to: Any, first: Any, count: Any) -> Any:
        return types.void(array, *[types.intp] * 3) if array.is_c_contig and array.ndim == 1 else None

    return typed


@lower_builtin(memmove, types.Array, types.Integer, types.Integer, types.Integer)
def _memmove(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    array, (value, to, first, count) = signature.args[0], args
    data = context.make_array(array)(context, builder, value).data
    size = context.get_abi_sizeof(context.get_data_type(array.dtype))
    raw_memmove(builder, builder.gep(data, [to]), builder.gep(data, [first]), count, size)
    return context.get_dummy_value()
