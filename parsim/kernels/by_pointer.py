"""A named tuple that kernels hand on as one pointer; numba makes an argument of every pointer and size of its arrays.

The state of the general loop has 350 of these. Handed from each of a hundred functions to the next they were two thirds
of what was compiled. Only kernels without reference counts take such a tuple: what calls them holds its arrays.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from numba.core import types
from numba.core.boxing import unbox_tuple
from numba.core.cgutils import alloca_once_value, gep_inbounds, ir
from numba.core.imputils import impl_ret_borrowed, lower_getattr_generic
from numba.extending import NativeValue, models, register_model, typeof_impl, unbox


class ByPointer(types.NamedTuple):  # type: ignore[misc]
    """The type of such a tuple; it is made in Python alone."""


def by_pointer(kind: type[NamedTuple]) -> Any:
    """Let kernels hand on tuples of this class by pointer."""

    @typeof_impl.register(kind)
    def _(value: tuple[Any, ...], context: Any) -> ByPointer:
        return ByPointer([typeof_impl(each, context) for each in value], kind)

    return kind


@register_model(ByPointer)
class _Model(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: ByPointer) -> None:
        fields = ir.LiteralStructType([manager.lookup(each).get_value_type() for each in kind])
        super().__init__(manager, kind, ir.PointerType(fields))

    def from_argument(self, _: Any, value: Any) -> Any:
        """Tell the optimizer that nothing else reads or writes the tuple, so that it may be read ahead of a loop."""
        value.add_attribute("noalias")
        value.attributes.dereferenceable = _size(value.type.pointee)
        value.attributes.align = 8
        return value


def _size(kind: Any) -> int:
    """Return the bytes that a value has at least."""
    if isinstance(kind, ir.LiteralStructType):
        return sum(map(_size, kind.elements))
    if isinstance(kind, ir.ArrayType):
        return int(kind.count) * _size(kind.element)
    return int(kind.width) // 8 if isinstance(kind, ir.IntType) else 8 if isinstance(kind, ir.PointerType) else 4


@unbox(ByPointer)
def _unbox(kind: ByPointer, value: Any, c: Any) -> NativeValue:
    if c.context.enable_nrt:
        raise TypeError(
            "what is handed on by pointer goes to kernels without reference counts: none would be given back"
        )
    whole = types.NamedTuple(kind.types, kind.instance_class)
    found = unbox_tuple(whole, value, c)
    return NativeValue(alloca_once_value(c.builder, found.value), cleanup=found.cleanup, is_error=found.is_error)


@lower_getattr_generic(ByPointer)
def _field(context: Any, builder: Any, kind: ByPointer, value: Any, name: str) -> Any:
    place = kind.fields.index(name)
    return impl_ret_borrowed(context, builder, kind[place], builder.load(gep_inbounds(builder, value, 0, place)))
