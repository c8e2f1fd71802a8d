"""numba's code for `parsim.engine.compile.native`: a tuple that is passed by pointer, a move in an array."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from numba.core import types
from numba.core.cgutils import alloca_once_value, gep_inbounds, ir, raw_memmove
from numba.core.imputils import impl_ret_borrowed
from numba.core.typing.templates import infer_global, make_intrinsic_template
from numba.extending import NativeValue, lower_getattr_generic, models, register_model, typeof_impl, unbox

from parsim.engine.compile.native import ByPointer, memmove


class Pointer(types.NamedTuple):  # type: ignore[misc]
    """The numba type of a tuple that is passed by pointer; only Python makes such tuples.

    Its name is short: every function that takes one has it in its own, and it would be seven thousand letters.
    """

    def __init__(self, fields: Any, made: Any) -> None:
        super().__init__(fields, made)
        self.name = f"{made.__name__}_{sha256(self.name.encode()).hexdigest()[:12]}"


@typeof_impl.register(ByPointer)
def _(value: tuple[Any, ...], context: Any) -> Pointer:
    return Pointer([typeof_impl(each, context) for each in value], type(value))


@register_model(Pointer)
class _Model(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Pointer) -> None:
        fields = ir.LiteralStructType([manager.lookup(each).get_value_type() for each in kind])
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
def _field(context: Any, builder: Any, kind: Pointer, value: Any, name: str) -> Any:
    place = kind.fields.index(name)
    return impl_ret_borrowed(context, builder, kind[place], builder.load(gep_inbounds(builder, value, 0, place)))


def _memmove(_: Any, array: Any, to: Any, first: Any, count: Any) -> Any:
    if not array.is_c_contig or array.ndim > 1:
        return None

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> None:
        data = context.make_array(array)(context, builder, args[0]).data
        size = context.get_abi_sizeof(context.get_data_type(array.dtype))
        raw_memmove(builder, builder.gep(data, [args[1]]), builder.gep(data, [args[2]]), args[3], size)

    return types.void(array, to, first, count), codegen


infer_global(memmove, types.Function(make_intrinsic_template(memmove, _memmove, memmove.__name__)))
