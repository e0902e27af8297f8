"""What torch and Python's builtins do on the way to the binding: one table of functions, one of methods.

Tensors are the same ones that the C++ models use, so that a view made in Python arrives there with its strides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tracer.dispatch.models.torch import Tensor as PythonTensor
from tracer.dispatch.models.torch import contiguous_strides

DTYPES = {
    "torch.float16": "Half", "torch.half": "Half", "torch.bfloat16": "BFloat16", "torch.float32": "Float",
    "torch.float": "Float", "torch.float64": "Double", "torch.int32": "Int", "torch.int": "Int", "torch.int64": "Long",
    "torch.float8_e4m3fn": "Float8_e4m3fn", "torch.float8_e5m2": "Float8_e5m2",
}  # fmt: skip
_TORCH_NAMES = {name: torch_name for torch_name, name in reversed(DTYPES.items())}


def _pad(tensor: PythonTensor, amounts: Sequence[int], mode: str = "constant", value: float = 0) -> PythonTensor:
    shape = list(tensor.shape)
    for number in range(len(amounts) // 2):
        shape[-1 - number] += amounts[2 * number] + amounts[2 * number + 1]
    return tensor.fresh(shape)


def _full(shape: Sequence[int], fill: object = None, *, dtype: str = "torch.float32", device: str = "cuda:0",
          **_: object) -> PythonTensor:  # fmt: skip
    return PythonTensor(tuple(shape), DTYPES[dtype], device)


def _like(tensor: PythonTensor, **_: object) -> PythonTensor:
    return tensor.fresh(tensor.shape)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "any": any,
    "all": all,
    "len": len,
    "min": min,
    "max": max,
    "abs": abs,
    "int": int,
    "float": float,
    "isinstance": isinstance,
    "print": lambda *_, **__: None,
    "torch.is_grad_enabled": lambda: True,
    "torch.nn.functional.pad": _pad,
    "torch.full": _full,
    "torch.empty": _full,
    "torch.zeros": _full,
    "torch.empty_like": _like,
    "torch.zeros_like": _like,
    "torch.cuda.device": lambda device: None,
    "torch.cuda.get_rng_state": lambda: None,
    "torch.cuda.get_device_capability": lambda device=None: None,  # answered from the question's device
}
BUILTINS: dict[str, type] = {"int": int, "float": float, "bool": bool, "str": str, "tuple": tuple, "list": list}


def _contiguous(tensor: PythonTensor) -> PythonTensor:
    return tensor if tensor.is_contiguous else tensor.fresh(tensor.shape)


def _stride(tensor: PythonTensor, dimension: int | None = None) -> Any:
    return tensor.stride if dimension is None else tensor.stride[dimension]


def _size(tensor: PythonTensor, dimension: int | None = None) -> Any:
    return tensor.shape if dimension is None else tensor.shape[dimension]


def _transpose(tensor: PythonTensor, a: int, b: int) -> PythonTensor:
    shape, stride = list(tensor.shape), list(tensor.stride)
    shape[a], shape[b] = shape[b], shape[a]
    stride[a], stride[b] = stride[b], stride[a]
    return tensor.view(shape, stride)


def _reshape(tensor: PythonTensor, *shape: Any) -> PythonTensor:
    if not tensor.is_contiguous:
        raise ValueError("a tensor that is not contiguous")
    wanted = list(shape[0] if len(shape) == 1 and isinstance(shape[0], tuple | list) else shape)
    if -1 in wanted:
        rest = 1
        for size in wanted:
            rest *= size if size != -1 else 1
        wanted[wanted.index(-1)] = tensor.numel // rest
    return tensor.view(wanted, contiguous_strides(wanted))


METHODS: dict[tuple[type, str], Callable[..., Any]] = {
    (PythonTensor, "contiguous"): _contiguous,
    (PythonTensor, "detach"): lambda tensor: tensor,
    (PythonTensor, "stride"): _stride,
    (PythonTensor, "size"): _size,
    (PythonTensor, "dim"): lambda tensor: len(tensor.shape),
    (PythonTensor, "numel"): lambda tensor: tensor.numel,
    (PythonTensor, "is_contiguous"): lambda tensor: tensor.is_contiguous,
    (PythonTensor, "transpose"): _transpose,
    (PythonTensor, "reshape"): _reshape,
    (PythonTensor, "view"): _reshape,
}


def attribute(base: object, name: str) -> tuple[Any] | None:
    """Return an attribute in a tuple of one; None for one that is not known."""
    if not isinstance(base, PythonTensor):
        return None
    if name == "shape":
        return (base.shape,)
    if name == "dtype":
        return (_TORCH_NAMES.get(base.dtype, f"torch.{base.dtype.lower()}"),)
    if name == "device":
        return (base.device,)
    if name == "is_cuda":
        return (base.device.startswith("cuda"),)
    if name == "ndim":
        return (len(base.shape),)
    if name == "requires_grad":
        return (False,)
    return None


def subscript(base: object, index: Any) -> tuple[Any] | None:
    """Return an element or a view in a tuple of one; None for an index that is not known."""
    if isinstance(base, tuple | list | str):
        return (base[index],) if isinstance(index, int | slice) else None
    if not isinstance(base, PythonTensor):
        return None
    parts = list(index) if isinstance(index, tuple) else [index]
    if Ellipsis in parts:
        at = parts.index(Ellipsis)
        parts[at : at + 1] = [slice(None)] * (len(base.shape) - len(parts) + 1)
    parts += [slice(None)] * (len(base.shape) - len(parts))
    shape, stride = [], []
    for part, size, step in zip(parts, base.shape, base.stride, strict=True):
        if isinstance(part, slice):
            start, stop, stride_of_slice = part.indices(size)
            shape.append(len(range(start, stop, stride_of_slice)))
            stride.append(step * stride_of_slice)
        elif not isinstance(part, int):
            return None
    return (base.view(shape, stride),)
