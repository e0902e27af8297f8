"""The CUDA runtime: what host code asks of the device, and the checks of what it answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracer.dispatch.answers import Device, Unsupported
from tracer.dispatch.models.registry import CONSTANTS, Site, constructor, function
from tracer.dispatch.numbers import Number, convert, integer
from tracer.dispatch.run import Refused
from tracer.dispatch.values import Cell, Pointer, Symbol, Unknown, Value

if TYPE_CHECKING:
    from tracer.dispatch.engine import Engine

SUCCESS = Symbol("cudaSuccess")
INVALID_VALUE = Symbol("cudaErrorInvalidValue")
for _status in (SUCCESS, INVALID_VALUE):
    CONSTANTS[_status.name] = CONSTANTS[f"cudaError::{_status.name}"] = _status
_STATUS_TEXT = {"cudaErrorInvalidValue": "invalid argument"}

# cudaDeviceGetAttribute and cudaDeviceProp name the same facts differently.
_ATTRIBUTES = {
    "cudaDevAttrComputeCapabilityMajor": "major",
    "cudaDevAttrComputeCapabilityMinor": "minor",
    "cudaDevAttrMultiProcessorCount": "sm_count",
    "cudaDevAttrMaxSharedMemoryPerMultiprocessor": "shared_memory_per_sm",
    "cudaDevAttrMaxSharedMemoryPerBlockOptin": "shared_memory_per_block_optin",
}
_PROPERTIES = {
    "major": ("major", "int"),
    "minor": ("minor", "int"),
    "multiProcessorCount": ("sm_count", "int"),
    "sharedMemPerMultiprocessor": ("shared_memory_per_sm", "unsigned long"),
    "sharedMemPerBlockOptin": ("shared_memory_per_block_optin", "unsigned long"),
}


class Extent:
    """A ``dim3``."""

    __slots__ = ("x", "y", "z")

    def __init__(self, x: Value, y: Value, z: Value) -> None:
        """Keep the three counts as cells, because host code assigns to them."""
        self.x, self.y, self.z = (Cell(v, "unsigned int") for v in (x, y, z))


class Properties:
    """A ``cudaDeviceProp``."""

    __slots__ = ("device",)

    def __init__(self, device: Device) -> None:
        """Describe a device."""
        self.device = device

    def field(self, name: str) -> Value | None:
        """Return a field; None for one that is not known."""
        known = _PROPERTIES.get(name)
        return integer(getattr(self.device, known[0]), known[1]) if known else None


def extent_of(value: Value) -> tuple[int, int, int] | None:
    """Return a grid or a block as three numbers; None where one is not known."""
    if isinstance(value, Number):
        return int(value.value), 1, 1
    if not isinstance(value, Extent):
        return None
    parts = [cell.value for cell in (value.x, value.y, value.z)]
    if not all(isinstance(part, Number) for part in parts):
        return None
    x, y, z = (int(part.value) for part in parts)
    return x, y, z


@constructor("dim3")
def _dim3(engine: Engine, values: tuple[Value, ...], site: Site) -> Value:
    if len(values) == 1 and isinstance(values[0], Extent):
        old = values[0]
        return Extent(old.x.value, old.y.value, old.z.value)
    parts = [convert(v, "unsigned int") if isinstance(v, Number) else v for v in values]
    parts += [integer(1, "unsigned int")] * (3 - len(parts))
    return Extent(*parts)


def _store(pointer: Value, value: int) -> None:
    if not isinstance(pointer, Pointer) or not isinstance(pointer.target, Cell):
        raise Unsupported("a CUDA query whose answer goes to no variable")
    pointer.target.value = integer(value)


@function("cudaGetDevice")
def _get_device(engine: Engine, values: list[Value], site: Site) -> Value:
    _store(values[0], 0)
    return SUCCESS


@function("cudaDeviceGetAttribute")
def _get_attribute(engine: Engine, values: list[Value], site: Site) -> Value:
    attribute = values[1].name.rpartition("::")[2] if isinstance(values[1], Symbol) else "a number"
    if attribute not in _ATTRIBUTES:
        raise Unsupported(f"device attribute {attribute}")
    _store(values[0], getattr(engine.run.device, _ATTRIBUTES[attribute]))
    return SUCCESS


@function("cudaGetDeviceProperties")
def _get_properties(engine: Engine, values: list[Value], site: Site) -> Value:
    pointer = values[0]
    if not isinstance(pointer, Pointer) or not isinstance(pointer.target, Cell):
        raise Unsupported("a CUDA query whose answer goes to no variable")
    pointer.target.value = Properties(engine.run.device)
    return SUCCESS


@constructor("cudaDeviceProp")
def _properties(engine: Engine, values: tuple[Value, ...], site: Site) -> Value:
    return Unknown("the properties of a device that was not asked for")


@function("cudaGetLastError", "cudaPeekAtLastError", "cudaDeviceSynchronize", "cudaStreamSynchronize", "cudaSetDevice")
def _succeeds(engine: Engine, values: list[Value], site: Site) -> Value:
    return SUCCESS


@function("cudaGetErrorString")
def _error_string(engine: Engine, values: list[Value], site: Site) -> Value:
    return _STATUS_TEXT.get(values[0].name, values[0].name)


@function("cudaFuncSetAttribute")
def _set_attribute(engine: Engine, values: list[Value], site: Site) -> Value:
    attribute, amount = values[1], values[2]
    if not isinstance(attribute, Symbol) or not isinstance(amount, Number):
        raise Unsupported("cudaFuncSetAttribute with an unknown attribute or amount")
    name = attribute.name.rpartition("::")[2]
    if name == "cudaFuncAttributeMaxDynamicSharedMemorySize":
        return SUCCESS if amount.value <= engine.run.device.shared_memory_per_block_optin else INVALID_VALUE
    if name in ("cudaFuncAttributePreferredSharedMemoryCarveout", "cudaFuncAttributeNonPortableClusterSizeAllowed"):
        return SUCCESS
    raise Unsupported(f"function attribute {name}")


@function("cudaOccupancyMaxActiveBlocksPerMultiprocessor")
def _occupancy(engine: Engine, values: list[Value], site: Site) -> Value:
    pointer = values[0]
    if not isinstance(pointer, Pointer) or not isinstance(pointer.target, Cell):
        raise Unsupported("a CUDA query whose answer goes to no variable")
    # It depends on the registers that the compiler gave the kernel, which no source tells.
    pointer.target.value = Unknown("the occupancy of a compiled kernel")
    return SUCCESS


@function("flashtracer_cuda_check")
def _check(engine: Engine, values: list[Value], site: Site) -> Value:
    if not isinstance(values[0], Symbol):
        raise Unsupported("a check of a CUDA status that is not known")
    if values[0] != SUCCESS:
        text = _STATUS_TEXT.get(values[0].name, values[0].name)
        raise Refused(f"CUDA error: {text}", engine.location(site.node))
    return None
