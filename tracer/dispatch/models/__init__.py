"""What the libraries do that host code calls: one table each for the C++ library, CUDA, torch and CuTe.

The engine asks here by name. A name that no table has is unsupported: nothing is skipped because it looks harmless.
"""

from __future__ import annotations

from tracer.dispatch.models import cuda, cute, std, torch, torch_runtime, torch_stable
from tracer.dispatch.models.registry import (
    CONSTANTS,
    CONSTRUCTORS,
    FUNCTIONS,
    METHODS,
    RESULTS,
    ConstructorModel,
    MethodModel,
    Model,
    Site,
)
from tracer.dispatch.numbers import convert as convert_number
from tracer.dispatch.values import NamedType, Optional, Sequence, Symbol, Tuple, Value

# Sizes in bytes of library types whose layout the hardware fixes.
SIZES = {
    "half_t": 2, "bfloat16_t": 2, "tfloat32_t": 4, "float_e4m3_t": 1, "float_e5m2_t": 1, "uint128_t": 16, "__half": 2,
    "__nv_bfloat16": 2, "half": 2, "nv_bfloat16": 2,
}  # fmt: skip

_by_last_name: dict[str, list[str]] = {}
for _name in FUNCTIONS:
    _by_last_name.setdefault(_name.rpartition("::")[2], []).append(_name)


def function(name: str, *, resolved: bool = False) -> Model | None:
    """Return the model of a library function.

    Args:
        name: as the source has it.
        resolved: the name is the declaration's own qualified one, so that no other can be meant.
    """
    model = FUNCTIONS.get(name)
    if model is not None or resolved:
        return model
    models = {id(FUNCTIONS[full].run): FUNCTIONS[full] for full in _by_last_name.get(name.rpartition("::")[2], ())
              if f"::{full}".endswith(f"::{name}")}  # fmt: skip
    return next(iter(models.values())) if len(models) == 1 else None


def method(value: Value, name: str) -> MethodModel | None:
    """Return the model of a member function of an object."""
    return METHODS.get((type(value), name))


def result(value: Value, name: str) -> str | None:
    """Return the arithmetic type that a member function returns; empty for another type, None for not known."""
    return RESULTS.get((type(value), name))


def constructor(name: str) -> ConstructorModel | None:
    """Return the model of a library class's constructors."""
    plain = name.partition("<")[0]
    model = CONSTRUCTORS.get(plain)
    if model is None and "::" not in plain:
        found = [full for full in CONSTRUCTORS if full.endswith(f"::{plain}")]
        model = CONSTRUCTORS[found[0]] if len(found) == 1 else None
    return model


def constant(name: str, arguments: tuple[Value, ...] | None = None) -> Value | None:
    """Return a library constant, or a variable template such as ``std::is_same_v``."""
    if name.rpartition("::")[2] == "is_same_v" and arguments is not None and len(arguments) == 2:
        return _same_type(*arguments)
    return CONSTANTS.get(name)


def _same_type(a: Value, b: Value) -> Value:
    from tracer.dispatch.numbers import boolean

    if isinstance(a, NamedType) and isinstance(b, NamedType) and a.arguments == b.arguments:
        return boolean(f"::{a.name}".endswith(f"::{b.name}") or f"::{b.name}".endswith(f"::{a.name}"))
    return boolean(a == b)


def attribute(value: Value, name: str) -> Value | None:
    """Return a data member of a library object; None for one that is not known."""
    if isinstance(value, cuda.Extent) and name in ("x", "y", "z"):
        return getattr(value, name)
    if isinstance(value, cuda.Properties):
        return value.field(name)
    if isinstance(value, torch_runtime.Generator) and name == "mutex_":
        return std.Opaque("a mutex")
    return None


def equal(a: Value, b: Value) -> bool | None:
    """Compare two library objects; None where no rule does."""
    if isinstance(a, torch.TorchDevice) and isinstance(b, torch.TorchDevice):
        return a.name == b.name
    return None


def coerced(value: Value, type_: str) -> Value:
    """Return what initialising an object of a library type with a value yields."""
    if type_.startswith(("std::optional<", "optional<", "c10::optional<")) and not isinstance(value, Optional):
        return Optional(value)
    return value


def extent(value: Value) -> tuple[int, int, int] | None:
    """Return a grid or a block as three numbers; None where one is not known."""
    return cuda.extent_of(value)


def class_name(value: Value) -> str:
    """Name the class of an object for a message."""
    if isinstance(value, Symbol):
        return value.name
    if isinstance(value, Optional | Tuple | Sequence):
        return f"std::{type(value).__name__.lower()}"
    return type(value).__name__


__all__ = [
    "SIZES", "Site", "attribute", "class_name", "coerced", "constant", "constructor", "convert_number", "cute", "equal",
    "extent", "function", "method", "result",
    "torch_stable",
]  # fmt: skip
