"""What torch does around tensors: checks, devices, streams, and the state of its random generators."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracer.dispatch.answers import Unsupported
from tracer.dispatch.models.cuda import Properties
from tracer.dispatch.models.registry import Site, constructor, function, method
from tracer.dispatch.models.std import Opaque
from tracer.dispatch.models.torch import TorchDevice
from tracer.dispatch.numbers import Number, boolean, integer
from tracer.dispatch.run import Refused
from tracer.dispatch.values import Cell, Pointer, Symbol, Tuple, Unknown, Value

if TYPE_CHECKING:
    from tracer.dispatch.engine import Engine


class Generator:
    """A random generator of a device."""

    __slots__ = ()


class PhiloxState:
    """The state that a kernel draws its random numbers from."""

    __slots__ = ()


# -- checks -----------------------------------------------------------------------------------------------------------
@function("flashtracer_torch_check")
def _torch_check(engine: Engine, values: list[Value], site: Site) -> Value:
    condition, *message = values
    text = "".join(part if isinstance(part, str) else _shown(part) for part in message)
    if not message:
        text = (
            f"Expected {condition} to be true, but got false.  (Could this error message be improved?  If so, please "
            "report an enhancement request to PyTorch.)"
        )
    raise Refused(text, engine.location(site.node))


def _shown(value: Value) -> str:
    if isinstance(value, Number):
        return str(value.value) if value.type != "bool" else str(int(value.value))
    if isinstance(value, Symbol):
        return value.name
    raise Unsupported("a part of a check's message that has no text here")


@function("flashtracer_torch_warn")
def _torch_warn(engine: Engine, values: list[Value], site: Site) -> Value:
    return None


# -- devices, streams, random state -----------------------------------------------------------------------------------
@method(TorchDevice, "index")
def _index_of_device(engine: Engine, device: TorchDevice, values: list[Value], site: Site) -> Value:
    return integer(int(device.name.partition(":")[2] or -1), "signed char")


@method(TorchDevice, "is_cuda")
def _device_is_cuda(engine: Engine, device: TorchDevice, values: list[Value], site: Site) -> Value:
    return boolean(device.name.startswith("cuda"))


@constructor("at::cuda::CUDAGuard", "at::cuda::OptionalCUDAGuard", "at::PhiloxCudaState", "c10::Device")
def _guard(engine: Engine, values: tuple[Value, ...], site: Site) -> Value:
    return values[0] if values and isinstance(values[0], TorchDevice) else Opaque("a guard")


class Stream:
    """A CUDA stream."""

    __slots__ = ()


@function("at::cuda::getCurrentCUDAStream", "at::cuda::getDefaultCUDAStream")
def _stream(engine: Engine, values: list[Value], site: Site) -> Value:
    return Stream()


@method(Stream, "stream")
def _raw_stream(engine: Engine, stream: Stream, values: list[Value], site: Site) -> Value:
    return Symbol("the current stream")


@function("at::cuda::getCurrentDeviceProperties", "at::cuda::getDeviceProperties")
def _properties(engine: Engine, values: list[Value], site: Site) -> Value:
    return Pointer(Cell(Properties(engine.run.device)))


@function("at::cuda::detail::getDefaultCUDAGenerator")
def _generator(engine: Engine, values: list[Value], site: Site) -> Value:
    return Generator()


@function("at::get_generator_or_default", "at::check_generator")
def _generator_or_default(engine: Engine, values: list[Value], site: Site) -> Value:
    return Pointer(Cell(Generator()))


@method(Generator, "philox_cuda_state")
def _philox(engine: Engine, generator: Generator, values: list[Value], site: Site) -> Value:
    return PhiloxState()


@function("at::cuda::philox::unpack")
def _unpack(engine: Engine, values: list[Value], site: Site) -> Value:
    return Tuple([Unknown("the seed of the random generator"), Unknown("the offset of the random generator")])


@method(Generator, "get", "unsafeGetGeneratorImpl")
def _generator_impl(engine: Engine, generator: Generator, values: list[Value], site: Site) -> Value:
    return Pointer(Cell(generator))


@method(Generator, "mutex")
def _mutex(engine: Engine, generator: Generator, values: list[Value], site: Site) -> Value:
    return Opaque("a mutex")
