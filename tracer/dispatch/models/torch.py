"""PyTorch's C++ interface: tensors without contents, options, devices, checks, random state.

A tensor here is what host code can see of one: sizes, strides, type, device, and whether it has memory.
"""

from __future__ import annotations

import math
from collections.abc import Sequence as Listed
from typing import TYPE_CHECKING

from tracer.dispatch.answers import Operator, Unsupported
from tracer.dispatch.answers import Tensor as TensorArgument
from tracer.dispatch.models.registry import CONSTANTS, Site, constructor, function, method, numbers_of
from tracer.dispatch.numbers import boolean, convert, integer
from tracer.dispatch.run import Refused
from tracer.dispatch.values import NULL, Optional, Pointer, Sequence, Symbol, Unknown, Value

if TYPE_CHECKING:
    from tracer.dispatch.engine import Engine

ELEMENT_BYTES = {
    "Byte": 1, "Char": 1, "Short": 2, "Int": 4, "Long": 8, "Half": 2, "Float": 4, "Double": 8, "Bool": 1,
    "BFloat16": 2, "Float8_e5m2": 1, "Float8_e4m3fn": 1,
}  # fmt: skip
_OTHER_NAMES = {
    "kUInt8": "Byte", "kInt8": "Char", "kInt16": "Short", "kInt32": "Int", "kInt64": "Long", "kFloat16": "Half",
    "kFloat32": "Float", "kFloat64": "Double",
}  # fmt: skip
for _namespace in ("c10", "at", "torch"):
    for _name in ELEMENT_BYTES:
        CONSTANTS[f"{_namespace}::k{_name}"] = CONSTANTS[f"{_namespace}::ScalarType::{_name}"] = Symbol(_name)
    for _alias, _name in _OTHER_NAMES.items():
        CONSTANTS[f"{_namespace}::{_alias}"] = Symbol(_name)


class Tensor:
    """A tensor; ``dtype`` is empty for one that is not defined. Never changed: views are new objects of one storage."""

    __slots__ = ("contents", "device", "dtype", "shape", "storage", "stride")

    def __init__(
        self,
        shape: Listed[int],
        dtype: str,
        device: str,
        stride: Listed[int] | None = None,
        storage: object | None = None,
        contents: tuple[int, ...] | None = None,
    ) -> None:
        """Describe a tensor; without strides it is contiguous."""
        self.shape, self.dtype, self.device, self.contents = tuple(shape), dtype, device, contents
        self.stride = tuple(stride) if stride is not None else contiguous_strides(self.shape)
        self.storage = storage if storage is not None else object()

    @classmethod
    def of(cls, argument: TensorArgument) -> Tensor:
        """Make the object that an argument describes."""
        return cls(argument.shape, argument.dtype, argument.device, argument.stride, None, argument.contents)

    def view(self, shape: Listed[int], stride: Listed[int]) -> Tensor:
        """Return another view of the same memory."""
        return Tensor(shape, self.dtype, self.device, stride, self.storage)

    def fresh(self, shape: Listed[int], dtype: str = "") -> Tensor:
        """Return a new contiguous tensor on the same device."""
        return Tensor(shape, dtype or self.dtype, self.device)

    @property
    def numel(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def is_contiguous(self) -> bool:
        """Tell whether the elements lie in row-major order without gaps."""
        expected = 1
        if self.numel == 0:
            return True
        for size, stride in zip(reversed(self.shape), reversed(self.stride), strict=True):
            if size != 1:
                if stride != expected:
                    return False
                expected *= size
        return True


class Options:
    """``TensorOptions``."""

    __slots__ = ("device", "dtype")

    def __init__(self, dtype: str = "Float", device: str = "cpu") -> None:
        """Keep type and device."""
        self.dtype, self.device = dtype, device


class TorchDevice:
    """A ``Device``."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        """Keep the name, such as ``cuda:0``."""
        self.name = name


class Slice:
    """An index of ``Tensor::index``: from, to; None for an open end."""

    __slots__ = ("start", "stop")

    def __init__(self, start: int | None, stop: int | None) -> None:
        """Keep the ends."""
        self.start, self.stop = start, stop


for _namespace in ("c10", "at", "torch"):
    CONSTANTS[f"{_namespace}::kCUDA"] = TorchDevice("cuda:0")
    CONSTANTS[f"{_namespace}::kCPU"] = TorchDevice("cpu")
CONSTANTS["at::indexing::None"] = Optional(None)
CONSTANTS["std::nullopt"] = CONSTANTS["c10::nullopt"] = Optional(None)


def contiguous_strides(shape: Listed[int]) -> tuple[int, ...]:
    """Return row-major strides in elements."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


# -- what a tensor is -------------------------------------------------------------------------------------------------
@method(Tensor, "dtype", "scalar_type", result="")
def _dtype(engine: Engine, tensor: Tensor, values: list[Value], site: Site) -> Value:
    return Symbol(_defined(tensor).dtype)


@method(Tensor, "device")
def _device(engine: Engine, tensor: Tensor, values: list[Value], site: Site) -> Value:
    return TorchDevice(_defined(tensor).device)


@method(Tensor, "options")
def _options(engine: Engine, tensor: Tensor, values: list[Value], site: Site) -> Value:
    return Options(_defined(tensor).dtype, tensor.device)


@method(Tensor, "is_cuda", result="bool")
def _is_cuda(engine: Engine, tensor: Tensor, values: list[Value], site: Site) -> Value:
    return boolean(tensor.device.startswith("cuda"))


@method(Tensor, "defined", result="bool")
def _is_defined(engine: Engine, tensor: Tensor, values: list[Value], site: Site) -> Value:
    return boolean(tensor.dtype)


@method(Tensor, "get_device", result="signed char")
def _get_device(engine: Engine, tensor: Tensor, values: list[Value], site: Site) -> Value:
    return integer(int(_defined(tensor).device.partition(":")[2] or -1), "signed char")


@method(Tensor, "sizes")
def _sizes(engine: Engine, tensor: Tensor, values: list[Value], site: Site) -> Value:
    return Sequence(integer(size, "long") for size in _defined(tensor).shape)


@method(Tensor, "strides")
def _strides(engine: Engine, tensor: Tensor, values: list[Value], site: Site) -> Value:
    return Sequence(integer(stride, "long") for stride in _defined(tensor).stride)


@method(Tensor, "size", result="long")
def _size(engine: Engine, tensor: Tensor, values: list[Value], site: Site) -> Value:
    return integer(_defined(tensor).shape[_dimension(engine, tensor, values[0], site)], "long")


@method(Tensor, "stride", result="long")
def _stride(engine: Engine, tensor: Tensor, values: list[Value], site: Site) -> Value:
    return integer(_defined(tensor).stride[_dimension(engine, tensor, values[0], site)], "long")


@method(Tensor, "dim", "ndimension", result="long")
def _dim(engine: Engine, tensor: Tensor, values: list[Value], site: Site) -> Value:
    return integer(len(_defined(tensor).shape), "long")


@method(Tensor, "numel", result="long")
def _numel(engine: Engine, tensor: Tensor, values: list[Value], site: Site) -> Value:
    return integer(_defined(tensor).numel, "long")


@method(Tensor, "element_size", "itemsize", result="long")
def _element_size(engine: Engine, tensor: Tensor, values: list[Value], site: Site) -> Value:
    return integer(ELEMENT_BYTES[_defined(tensor).dtype], "long")


@method(Tensor, "is_contiguous", result="bool")
def _is_contiguous(engine: Engine, tensor: Tensor, values: list[Value], site: Site) -> Value:
    return boolean(_defined(tensor).is_contiguous)


@method(Tensor, "data_ptr", "mutable_data_ptr", "const_data_ptr", result="")
def _data_ptr(engine: Engine, tensor: Tensor, values: list[Value], site: Site) -> Value:
    return Pointer(tensor.storage) if _defined(tensor).numel else NULL  # an empty tensor has no memory


def _defined(tensor: Tensor) -> Tensor:
    if not tensor.dtype:
        raise Unsupported("a use of a tensor that was never assigned")
    return tensor


def _dimension(engine: Engine, tensor: Tensor, value: Value, site: Site) -> int:
    """Return a dimension that may count from the end.

    Raises:
        Refused: there is no such dimension; torch says so.
    """
    (given,) = numbers_of([value])
    rank = len(tensor.shape)
    if not -rank <= given < rank:
        message = (
            f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {given})"
            if rank
            else "Dimension specified as {given} but tensor has no dimensions"
        )
        raise Refused(message, engine.location(site.node))
    return given % rank


# -- contents ---------------------------------------------------------------------------------------------------------
@method(Tensor, "max", "min")
def _extreme(engine: Engine, tensor: Tensor, values: list[Value], site: Site) -> Value:
    contents: tuple[int, ...] | None = None
    if tensor.contents:
        name = site.node.children[0].text
        contents = (max(tensor.contents) if name == "max" else min(tensor.contents),)
    return Tensor((), tensor.dtype, tensor.device, contents=contents)


@method(Tensor, "item")
def _item(engine: Engine, tensor: Tensor, values: list[Value], site: Site) -> Value:
    if tensor.contents is None or len(tensor.contents) != 1:
        return Unknown("the contents of a tensor on the GPU")
    type_ = site.arguments[0].name if site.arguments else "long"
    return convert(integer(tensor.contents[0], "long"), type_)


# -- views and copies -------------------------------------------------------------------------------------------------
def launching(engine: Engine, name: str, site: Site) -> None:
    """Record a library operator that launches a kernel of its own."""
    run = engine.run
    run.operators.append(Operator(f"aten::{name}", engine.location(site.node), len(run.launches)))


@method(Tensor, "contiguous", result="")
def _contiguous(engine: Engine, tensor: Tensor, values: list[Value], site: Site) -> Value:
    if _defined(tensor).is_contiguous:
        return tensor
    launching(engine, "contiguous", site)
    return tensor.fresh(tensor.shape)


@method(Tensor, "transpose", result="")
def _transpose(engine: Engine, tensor: Tensor, values: list[Value], site: Site) -> Value:
    a, b = (_dimension(engine, _defined(tensor), value, site) for value in values)
    shape, stride = list(tensor.shape), list(tensor.stride)
    shape[a], shape[b] = shape[b], shape[a]
    stride[a], stride[b] = stride[b], stride[a]
    return tensor.view(shape, stride)


@method(Tensor, "unsqueeze")
def _unsqueeze(engine: Engine, tensor: Tensor, values: list[Value], site: Site) -> Value:
    (at,) = numbers_of(values)
    rank = len(_defined(tensor).shape)
    at += rank + 1 if at < 0 else 0
    step = tensor.shape[at] * tensor.stride[at] if at < rank else 1
    return tensor.view((*tensor.shape[:at], 1, *tensor.shape[at:]), (*tensor.stride[:at], step, *tensor.stride[at:]))


@method(Tensor, "view", "reshape", result="")
def _reshape(engine: Engine, tensor: Tensor, values: list[Value], site: Site) -> Value:
    return _reshaped(engine, _defined(tensor), numbers_of(values[0]), site)


@function("at::reshape")
def _free_reshape(engine: Engine, values: list[Value], site: Site) -> Value:
    return _reshaped(engine, _defined(values[0]), numbers_of(values[1]), site)


def _reshaped(engine: Engine, tensor: Tensor, shape: list[int], site: Site) -> Tensor:
    written = list(shape)
    if -1 in shape:
        rest = -math.prod(shape)
        shape[shape.index(-1)] = tensor.numel // rest if rest else 0
    if math.prod(shape) != tensor.numel:
        message = f"shape '{written}' is invalid for input of size {tensor.numel}"
        raise Refused(message, engine.location(site.node))
    stride = _viewed_strides(tensor, shape)
    if stride is None:
        if site.node.children[0].text.endswith("view"):
            message = "view size is not compatible with input tensor's size and stride"
            raise Refused(message, engine.location(site.node))
        launching(engine, "reshape", site)
        return tensor.fresh(shape)
    return tensor.view(shape, stride)


def _viewed_strides(tensor: Tensor, shape: list[int]) -> list[int] | None:
    """Return the strides under which the same memory has another shape; None where it has to be copied.

    Dimensions that lie in memory as one run can be cut anew; each run of the old shape must hold whole dimensions of
    the new one.
    """
    if tensor.numel == 0:
        return list(contiguous_strides(shape))
    strides = [0] * len(shape)
    new = len(shape) - 1
    old = len(tensor.shape) - 1
    while old >= 0:
        run, base = tensor.shape[old], tensor.stride[old]
        while old > 0 and (tensor.shape[old - 1] == 1 or tensor.stride[old - 1] == run * base):
            old -= 1
            run *= tensor.shape[old]
        covered = 1
        while new >= 0 and (covered < run or shape[new] == 1):
            strides[new] = covered * base
            covered *= shape[new]
            new -= 1
        if covered != run:
            return None
        old -= 1
    while new >= 0:
        strides[new] = 1
        new -= 1
    return strides


@method(Tensor, "index")
def _index(engine: Engine, tensor: Tensor, values: list[Value], site: Site) -> Value:
    parts = values[0]
    if len(parts) == 2 and parts[0] == "..." and isinstance(parts[1], Slice):
        size = tensor.shape[-1]
        start, stop = min(parts[1].start or 0, size), min(size if parts[1].stop is None else parts[1].stop, size)
        return tensor.view((*tensor.shape[:-1], max(stop - start, 0)), tensor.stride)
    raise Unsupported("Tensor::index of anything but the last dimension")


@constructor("at::indexing::Slice")
def _slice(engine: Engine, values: tuple[Value, ...], site: Site) -> Value:
    ends = [None if isinstance(value, Optional) else numbers_of([value])[0] for value in values]
    ends += [None] * (2 - len(ends))
    if len(ends) > 2:
        raise Unsupported("a Slice with a step")
    return Slice(ends[0], ends[1])


@constructor("at::TensorIndex", "torch::nn::functional::PadFuncOptions")
def _wrapped(engine: Engine, values: tuple[Value, ...], site: Site) -> Value:
    return values[0]


@method(Tensor, "zero_", "fill_", "copy_", "mul_", "add_")
def _in_place(engine: Engine, tensor: Tensor, values: list[Value], site: Site) -> Value:
    launching(engine, site.node.children[0].text.rpartition("::")[2], site)
    return tensor


@method(Tensor, "index_select", "to", "clone", "repeat", "sum", "flatten", "expand", "permute")
def _not_modelled(engine: Engine, tensor: Tensor, values: list[Value], site: Site) -> Value:
    raise Unsupported(f"Tensor::{site.node.children[0].text}")


# -- new tensors ------------------------------------------------------------------------------------------------------
@constructor("at::Tensor")
def _undefined(engine: Engine, values: tuple[Value, ...], site: Site) -> Value:
    return values[0] if values else Tensor((0,), "", "cpu")


@function("at::empty", "at::zeros", "at::ones")
def _empty(engine: Engine, values: list[Value], site: Site) -> Value:
    name = site.node.children[0].text.rpartition("::")[2]
    options = values[1] if len(values) == 2 else Options()
    if isinstance(options, Symbol):
        options = Options(options.name)
    if not isinstance(options, Options):
        raise Unsupported(f"torch::{name} with such options")
    if name != "empty":
        launching(engine, name, site)
    return Tensor(numbers_of(values[0]), options.dtype, options.device)


@function("at::empty_like", "at::zeros_like", "at::ones_like", "torch::stable::empty_like")
def _empty_like(engine: Engine, values: list[Value], site: Site) -> Value:
    tensor = _defined(values[0])
    name = site.node.children[0].text.rpartition("::")[2]
    options = values[1] if len(values) > 1 else None
    dtype = options.dtype if isinstance(options, Options) else tensor.dtype
    if name != "empty_like":
        launching(engine, name, site)
    return Tensor(tensor.shape, dtype, tensor.device, _like_strides(tensor))


def _like_strides(tensor: Tensor) -> tuple[int, ...]:
    """Return what preserving the memory format means: the order of the dimensions stays, gaps go."""
    order = sorted(range(len(tensor.shape)), key=lambda d: (tensor.stride[d], tensor.shape[d]))
    strides, step = [0] * len(tensor.shape), 1
    dense = True
    for dimension in order:
        if tensor.shape[dimension] != 1:
            dense = dense and tensor.stride[dimension] == step
        strides[dimension] = step
        step *= max(tensor.shape[dimension], 1)
    return tensor.stride if dense else tuple(strides)


@function("torch::nn::functional::pad", "at::pad", "torch::stable::pad")
def _pad(engine: Engine, values: list[Value], site: Site) -> Value:
    tensor, amounts = _defined(values[0]), numbers_of(values[1])
    shape = list(tensor.shape)
    for number in range(len(amounts) // 2):
        shape[-1 - number] += amounts[2 * number] + amounts[2 * number + 1]
    launching(engine, "fill_", site)  # the padded tensor is filled first, and then copied into
    return tensor.fresh(shape)


@function("at::sum_out")
def _sum_out(engine: Engine, values: list[Value], site: Site) -> Value:
    launching(engine, "sum", site)
    return values[0]


@constructor("c10::TensorOptions")
def _new_options(engine: Engine, values: tuple[Value, ...], site: Site) -> Value:
    if not values:
        return Options()
    value = values[0]
    if isinstance(value, Options):
        return value
    if isinstance(value, Symbol):
        return Options(value.name)
    if isinstance(value, TorchDevice):
        return Options(device=value.name)
    raise Unsupported("TensorOptions of such a kind")


@function("c10::dtype")
def _free_dtype(engine: Engine, values: list[Value], site: Site) -> Value:
    return Options(values[0].name)


@method(Options, "dtype")
def _with_dtype(engine: Engine, options: Options, values: list[Value], site: Site) -> Value:
    return Options(values[0].name, options.device) if values else Symbol(options.dtype)


@method(Options, "device")
def _with_device(engine: Engine, options: Options, values: list[Value], site: Site) -> Value:
    return Options(options.dtype, values[0].name) if values else TorchDevice(options.device)


@method(Options, "requires_grad", "layout", "pinned_memory")
def _same_options(engine: Engine, options: Options, values: list[Value], site: Site) -> Value:
    return options
