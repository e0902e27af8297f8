"""Calls a compiled kernel: raw memory in, byte counts out. Knows ctypes, not torch."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from refkernel.build import PACKAGE, Configuration, build
from refkernel.errors import KernelFault, RefkernelError

#: A window without a limit. Large enough for any sequence, small enough that sums of it stay inside 32 bits.
UNLIMITED = 1 << 29


@dataclass(frozen=True)
class Buffer:
    """Memory of one tensor.

    Attributes:
        address: of the first element.
        elements: how many there are.
    """

    address: int
    elements: int


@dataclass(frozen=True)
class AttentionShape:
    """Sizes and options of one attention call, as the kernels take them (``kernels/attention_shape.cuh``).

    Attributes:
        batch: number of sequences.
        seqlen_q: query rows of every sequence; with cu_seqlens, of the longest.
        seqlen_k: key rows, likewise.
        heads_q: query heads.
        heads_k: key and value heads; divides ``heads_q``.
        head_dim: elements per head.
        softmax_scale: factor of the scores.
        total_q: query rows over all sequences.
        is_varlen: rows of a sequence are given by cu_seqlens.
        window_left: how many columns a row sees left of its diagonal.
        window_right: how many it sees right of it; 0 for a causal mask.
        softcap: limit of the scores' magnitude; unused by a kernel compiled without it.
    """

    batch: int
    seqlen_q: int
    seqlen_k: int
    heads_q: int
    heads_k: int
    head_dim: int
    softmax_scale: float
    total_q: int
    is_varlen: bool = False
    window_left: int = UNLIMITED
    window_right: int = UNLIMITED
    softcap: float = 0.0


@dataclass(frozen=True)
class TensorBytes:
    """Bytes that a kernel asked for of one tensor.

    Attributes:
        loaded: bytes read.
        stored: bytes written. An atomic add counts in both.
    """

    loaded: int
    stored: int


@dataclass(frozen=True)
class Execution:
    """How to run a kernel; none of it changes the result.

    Attributes:
        os_threads: CPU: operating system threads, 0 for one per processor.
        reversed: CPU: let the threads of a block take turns from the last to the first.
        stream: GPU: address of the CUDA stream.
    """

    os_threads: int = 0
    reversed: bool = False
    stream: int = 0


#: One OS thread per processor, first thread first; on a GPU the default stream.
DEFAULT_EXECUTION = Execution()


class _Shape(ctypes.Structure):
    _fields_ = [
        *(
            (name, ctypes.c_int)
            for name in (
                "batch", "seqlen_q", "seqlen_k", "total_q", "heads_q", "heads_k", "head_dim", "is_varlen",
                "window_left", "window_right",
            )
        ),
        ("softmax_scale", ctypes.c_float),
        ("softcap", ctypes.c_float),
    ]  # fmt: skip


class Library:
    """A loaded library: one kernel with one set of template arguments."""

    def __init__(self, path: Path) -> None:
        """Load a library that ``build`` returned.

        Args:
            path: the shared library.

        Raises:
            RefkernelError: it does not have this version's interface.
        """
        self._library = ctypes.CDLL(str(path))
        self._library.tensor_names.restype = ctypes.c_char_p
        for size in (self._library.attention_call_bytes, self._library.shared_bytes):
            size.restype = ctypes.c_size_t
        self.tensor_names: tuple[str, ...] = tuple(self._library.tensor_names().decode().strip(",").split(","))
        count = len(self.tensor_names)
        fields: list[tuple[str, Any]] = [
            ("data", ctypes.c_void_p * count),
            ("elements", ctypes.c_longlong * count),
            ("shape", _Shape),
            ("stream", ctypes.c_void_p),
            ("os_threads", ctypes.c_int),
            ("reversed", ctypes.c_int),
            ("loaded", ctypes.c_longlong * count),
            ("stored", ctypes.c_longlong * count),
            ("report", ctypes.c_char * 4096),
        ]
        self._call_type: Any = type("AttentionCall", (ctypes.Structure,), {"_fields_": fields})
        if ctypes.sizeof(self._call_type) != self._library.attention_call_bytes():
            raise RefkernelError(f"{path} has another AttentionCall than refkernel/library.py; delete it and try again")
        #: Bytes of shared memory that one block needs.
        self.shared_bytes: int = self._library.shared_bytes()

    def run(
        self, tensors: Mapping[str, Buffer], shape: AttentionShape, execution: Execution = DEFAULT_EXECUTION
    ) -> dict[str, TensorBytes]:
        """Run the kernel.

        Args:
            tensors: by the paper's name, as listed in ``tensor_names``; those the kernel does not use may be left out.
            shape: sizes and options.
            execution: how to run it.

        Returns:
            Bytes asked for, by tensor; on a GPU, where nothing is counted, zeros.

        Raises:
            KernelFault: the kernel misused memory or barriers, or the GPU refused the launch.
        """
        call = self._call_type()
        for name, buffer in tensors.items():
            index = self.tensor_names.index(name)
            call.data[index] = buffer.address
            call.elements[index] = buffer.elements
        for name, _ in _Shape._fields_:  # type: ignore[misc]
            setattr(call.shape, name, getattr(shape, name))
        call.stream = execution.stream
        call.os_threads = execution.os_threads
        call.reversed = execution.reversed
        if self._library.run(ctypes.byref(call)) != 0:
            raise KernelFault(call.report.decode())
        return {
            name: TensorBytes(call.loaded[index], call.stored[index])
            for index, name in enumerate(self.tensor_names)
            if name in tensors
        }


@functools.cache
def load(configuration: Configuration, source_root: Path = PACKAGE) -> Library:
    """Return the loaded library of a configuration, built first if need be. Raises as ``build`` does."""
    return Library(build(configuration, source_root))
