"""What names from outside of the checkout mean for the value flow: one table, with the source of each row.

Nothing here belongs to a release of flash-attention. The names are those of CUDA, the C++ standard library, CUTLASS and
CuTe, PyTorch; a kernel that uses another name leaves a ``call`` in the flow, which is reported.
"""

from __future__ import annotations

import re

from tracer.records import dataclass

CUDA_MATH = "CUDA C++ Programming Guide, Mathematical Functions"
CUDA_WARP = "CUDA C++ Programming Guide, Warp Shuffle Functions"
CUDA_ATOMIC = "CUDA C++ Programming Guide, Atomic Functions"
CUDA_SYNC = "CUDA C++ Programming Guide, Synchronization Functions"
CUDA_GROUPS = "CUDA C++ Programming Guide, Cooperative Groups"
CUDA_CONVERT = "CUDA Math API, type casting intrinsics and half precision conversion"
CXX = "ISO C++17, library clauses"
CUTE_TENSOR = "CUTLASS documentation, CuTe: Tensors"
CUTE_ALGORITHM = "CUTLASS documentation, CuTe: Tensor algorithms"
CUTE_LAYOUT = "CUTLASS documentation, CuTe: Layouts and layout algebra"
CUTE_MMA = "CUTLASS documentation, CuTe: MMA atoms and tiled copies"
CUTLASS = "CUTLASS documentation, fundamental types and fast math"
CUTLASS_BARRIER = "CUTLASS, include/cutlass/arch/barrier.h: NamedBarrier"
PTX = "PTX ISA, asynchronous copies, barriers and mma"


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a call of a library's name does.

    Attributes:
        names: regular expression for the last component of the name.
        does: ``view``: the result names the storage of the first argument; ``fresh``: a new storage; ``copy``: the last
            argument gets what the one before holds; ``clear`` and ``fill``; ``product``: the last argument gains the
            matrix product of the two before; ``value``: the operation ``op`` on the arguments; ``atomic add``;
            ``axpby``: the last argument becomes a x + b y; ``transform``: each element becomes what the last argument,
            a function, makes of it; ``barrier``, ``fence`` and ``wait``: order of memory accesses; ``nothing``;
            ``shape``: a number or a layout that no data enters; ``convert``: the argument in another type.
        op: of a ``value``: the operation.
        source: where that is documented.
    """

    names: str
    does: str
    op: str
    source: str


TABLE: tuple[Meaning, ...] = (
    # -- arithmetic
    Meaning(r"exp2f?|ex2_approx\w*", "value", "exp2", CUDA_MATH),
    Meaning(r"expf?|__expf", "value", "exp", CUDA_MATH),
    Meaning(r"logf?|__logf|fast_log", "value", "log", CUDA_MATH),
    Meaning(r"log2f?|__log2f", "value", "log2", CUDA_MATH),
    Meaning(r"fmaxf?|max", "value", "max", CXX),
    Meaning(r"fminf?|min", "value", "min", CXX),
    Meaning(r"tanhf?|fast_tanh", "value", "tanh", CUTLASS),
    Meaning(r"abs|fabsf?", "value", "abs", CXX),
    Meaning(r"__fmul_rn", "value", "mul", CUDA_MATH),
    Meaning(r"__fadd_rn", "value", "add", CUDA_MATH),
    Meaning(r"__fsub_rn", "value", "sub", CUDA_MATH),
    Meaning(r"fmaf?|__fmaf?_r[nzud]|__hfma2?", "value", "fma", CUDA_MATH),
    Meaning(r"__fdividef|__fdiv_rn", "value", "div", CUDA_MATH),
    Meaning(r"__frcp_rn", "value", "reciprocal", CUDA_MATH),
    Meaning(r"sqrtf?", "value", "sqrt", CUDA_MATH),
    Meaning(r"isnan", "value", "isnan", CXX),
    Meaning(r"ceil_div|round_up", "value", "ceil_div", CUTE_LAYOUT),
    Meaning(r"__builtin_(?:huge_val|inf)f?|infinity", "value", "infinity", CXX),
    # -- lanes
    Meaning(r"__shfl_(?:xor|down|up)_sync", "value", "lane", CUDA_WARP),
    Meaning(r"__shfl_sync", "value", "broadcast", CUDA_WARP),
    # -- conversions
    Meaning(r"(?:__)?(?:half|bfloat16|float|int|size_t|uint\w*)(?:2|_t)*", "convert", "", CUDA_CONVERT),
    Meaning(r"__\w*(?:2float|2half|2bfloat16)\w*|__float2\w+|static_cast|move|forward", "convert", "", CUDA_CONVERT),
    # -- moving data
    Meaning(r"copy|copy_aligned|cooperative_copy", "copy", "", CUTE_ALGORITHM),
    Meaning(r"copy_if", "copy", "", CUTE_ALGORITHM),
    Meaning(r"clear", "clear", "", CUTE_ALGORITHM),
    Meaning(r"fill", "fill", "", CUTE_ALGORITHM),
    Meaning(r"gemm", "product", "", CUTE_ALGORITHM),
    Meaning(r"axpby", "axpby", "", CUTE_ALGORITHM),
    Meaning(r"transform", "transform", "transform", CUTE_ALGORITHM),
    Meaning(r"for_each", "transform", "for each", CUTE_ALGORITHM),
    Meaning(r"atomicAdd(?:_system|_block)?|gpuAtomicAdd(?:NoReturn)?|red_async\w*", "atomic add", "", CUDA_ATOMIC),
    # -- memory order
    Meaning(r"__syncthreads(?:_or|_and|_count)?|syncthreads", "barrier", "block", CUDA_SYNC),
    Meaning(r"sync", "barrier", "block", CUDA_GROUPS),
    Meaning(r"arrive_and_wait|named_barrier_sync", "barrier", "block", CUTLASS_BARRIER),
    Meaning(r"__syncwarp", "barrier", "warp", CUDA_SYNC),
    Meaning(r"cp_async_wait\w*", "wait", "", PTX),
    Meaning(r"cp_async_fence", "fence", "", PTX),
    # -- naming the same storage anew
    Meaning(
        r"make_tensor|make_\w*ptr|local_tile|local_partition|partition_[SDABC]|retile_\w+|logical_divide|zipped_divide|"
        r"tiled_divide|recast(?:_ptr)?|data|get|flatten|group_modes|coalesce|domain_offset|begin|__cvta_generic_to_shared|"
        r"as_position_independent_swizzle_tensor|conditional_return|filter\w*|data_ptr|"
        r"__ld(?:g|ca|cg|cs|lu|cv)",
        "view", "", CUTE_TENSOR,
    ),  # fmt: skip
    Meaning(
        r"make_fragment_like|make_tensor_like|partition_fragment_[ABC]|make_fragment_[ABC]|make_identity_tensor|"
        r"make_rmem_tensor|make_counting_tensor",
        "fresh", "", CUTE_TENSOR,
    ),  # fmt: skip
    # -- shapes and layouts
    Meaning(
        r"make_(?:coord|shape|stride|layout|tile|tuple)\w*|size|shape|layout|stride|rank|cosize|depth|tile_to_shape|"
        r"composition|select|append|prepend|product|transpose|get_slice|get_thread_slice|get_thread_layout|"
        r"make_tiled_copy\w*|make_tiled_mma|get_tiled_\w+|tile_size|thr_layout\w*|is_static|bit_width",
        "shape", "", CUTE_LAYOUT,
    ),  # fmt: skip
    Meaning(r"printf|print\w*|assert|__builtin_unreachable|static_assert|CUTE_\w+|__trap", "nothing", "", CXX),
    Meaning(r"this_thread_block|tiled_partition|coalesced_threads", "shape", "", CUDA_GROUPS),
    Meaning(r"thread0?|is_same_v|sizeof|unpack|tie|forward_as_tuple", "shape", "", CXX),
)  # fmt: skip

#: Library classes whose call operator converts the element type of what it is given.
CONVERTERS = re.compile(r"NumericArrayConverter|NumericConverter")

#: Macros of CUDA and of the C library for numbers, where they are not replaced by what they stand for.
CONSTANTS = {
    "CUDART_INF_F": float("inf"),
    "CUDART_INF": float("inf"),
    "INFINITY": float("inf"),
    "HUGE_VALF": float("inf"),
}

#: Conversions to whole numbers.
WHOLE = re.compile(r"(?:int|size_t|u?int\d+)(?:_t)?|__(?:float|half|double)2u?(?:int|ll)\w*")

#: PTX instructions in ``asm`` statements, by the beginning of their text: what they do, as in :class:`Meaning`. The
#: operands are those of the statement in order; a fragment's registers stand for the array that they are elements of.
INSTRUCTIONS: tuple[tuple[str, str], ...] = (
    ("mma.sync", "product"),
    ("ldmatrix", "copy"),
    ("cp.async.c", "copy"),
    ("cp.async.ca", "copy"),
    ("cp.async.commit_group", "fence"),
    ("cp.async.wait", "wait"),
    ("bar.sync", "block"),
    ("barrier.sync", "block"),
    ("barrier.cta.sync", "block"),
    ("bar.warp.sync", "warp"),
    ("ex2.approx", "exp2"),
)


def instruction(text: str) -> str:
    """Return what the first PTX instruction of an ``asm`` statement does; empty for one that is not in the table."""
    found = instructions(text)
    return found[0][0] if found else ""


def instructions(text: str) -> list[tuple[str, str, str]]:
    """Return what each PTX instruction of an ``asm`` statement does, its name, and its first operand as written."""
    template = re.search(r'\(\s*((?:"(?:[^"\\]|\\.)*"\s*)+)', text)
    code = re.sub(r'"\s*"', "", template.group(1)).strip().strip('"') if template is not None else ""
    found = []
    for written in re.finditer(r"(?:^|[;{}]|\\[nt])\s*(?:@!?\S+\s+)?([a-z][\w.]*)\s*([^\s;,\\]*)", code):
        fitting = [row for row in INSTRUCTIONS if written.group(1).startswith(row[0])]
        does = max(fitting, key=lambda row: len(row[0]))[1] if fitting else ""
        found.append((does, written.group(1), written.group(2)))
    return found


_COMPILED = tuple((re.compile(meaning.names), meaning) for meaning in TABLE)
_KNOWN: dict[str, Meaning | None] = {}


def meaning(name: str) -> Meaning | None:
    """Return what the table says about the last component of a library's name."""
    if name not in _KNOWN:
        _KNOWN[name] = next((found for pattern, found in _COMPILED if pattern.fullmatch(name)), None)
    return _KNOWN[name]
