"""torch's stable interface, ``torch::stable``: the operations of :mod:`tracer.dispatch.models.torch` as free functions.

An extension that is built once for several versions of torch uses these, and asks for the stream through a C function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tracer.dispatch.answers import Unsupported
from tracer.dispatch.models.registry import METHODS, Site, constructor, function, method, numbers_of
from tracer.dispatch.models.std import Opaque
from tracer.dispatch.models.torch import Tensor, launching
from tracer.dispatch.numbers import Number, boolean, integer
from tracer.dispatch.run import Refused
from tracer.dispatch.values import Cell, Pointer, Sequence, Symbol, Value

if TYPE_CHECKING:
    from tracer.dispatch.engine import Engine


def _as_method(name: str) -> Callable[[Engine, list[Value], Site], Value]:
    """Return a free function that does what the member function of its first argument does."""

    def run(engine: Engine, values: list[Value], site: Site) -> Value:
        tensor, *rest = values
        return METHODS[Tensor, name](engine, tensor, rest, site)

    return run


for _name in ("transpose", "reshape", "view", "unsqueeze", "contiguous", "zero_", "fill_", "copy_"):
    function(f"torch::stable::{_name}")(_as_method(_name))


@function("torch::stable::new_empty", "torch::stable::new_zeros")
def _new(engine: Engine, values: list[Value], site: Site) -> Value:
    tensor, sizes, *more = values
    dtype = more[0].name if more and isinstance(more[0], Symbol) else ""
    name = site.node.children[0].text.rpartition("::")[2]
    if name == "new_zeros":
        launching(engine, "zeros", site)
    made: Value = tensor.fresh(numbers_of(sizes), dtype)
    return made


@function("torch::stable::narrow")
def _narrow(engine: Engine, values: list[Value], site: Site) -> Value:
    tensor = values[0]
    dimension, _, length = numbers_of(values[1:])
    shape = list(tensor.shape)
    shape[dimension] = length
    return tensor.view(shape, tensor.stride)


@method(Tensor, "get_device_index", result="int")
def _device_index(engine: Engine, tensor: Tensor, values: list[Value], site: Site) -> Value:
    return integer(int(tensor.device.partition(":")[2] or -1))


@method(Sequence, "equals", result="bool")
def _equals(engine: Engine, sequence: Sequence, values: list[Value], site: Site) -> Value:
    return boolean(numbers_of(sequence) == numbers_of(values[0]))


@constructor("torch::stable::accelerator::DeviceGuard")
def _guard(engine: Engine, values: tuple[Value, ...], site: Site) -> Value:
    return Opaque("a guard")


@constructor("torch::stable::Tensor")
def _undefined(engine: Engine, values: tuple[Value, ...], site: Site) -> Value:
    return values[0] if values else Tensor((0,), "", "cpu")


@function("aoti_torch_get_current_cuda_stream")
def _stream(engine: Engine, values: list[Value], site: Site) -> Value:
    if not isinstance(values[1], Pointer) or not isinstance(values[1].target, Cell):
        raise Unsupported("a query for the stream whose answer goes to no variable")
    values[1].target.value = Pointer(Opaque("the current stream"))
    return integer(0)


@function("flashtracer_torch_error_code_check")
def _error_code(engine: Engine, values: list[Value], site: Site) -> Value:
    if not isinstance(values[0], Number):
        raise Unsupported("a check of an error code that is not known")
    if values[0].value != 0:
        raise Refused(f"{values[1]} API call failed", engine.location(site.node))
    return None
