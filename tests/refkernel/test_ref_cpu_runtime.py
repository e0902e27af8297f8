"""The CPU stand-in for CUDA, on kernels of a few lines: what each primitive does, and what each report says."""

from __future__ import annotations

import ctypes
import math
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from refkernel.build import FORWARD_2, PACKAGE, Configuration, build
from refkernel.errors import KernelFault
from refkernel.library import AttentionShape, Buffer, Execution, Library, load

SHAPE = AttentionShape(1, 1, 1, 1, 1, 1, 1.0, 1)
CONFIGURATION = Configuration(FORWARD_2, "fp16", 64, 64, 64)

Run = Callable[..., list[float]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Return a function that runs the body of a kernel with 64 threads in 3 blocks and returns O.

    In the body: O (float), Q (const float, the given values), shared (bytes of dynamic shared memory).
    """

    def run(
        body: str,
        inputs: list[float],
        outputs: int,
        *,
        reversed: bool = False,
        threads: int = 0,
        start: float = math.nan,
    ) -> list[float]:
        for folder in ("kernels", "cpu"):
            shutil.copytree(PACKAGE / folder, tmp_path / folder, dirs_exist_ok=True)
        (tmp_path / "kernels" / f"{FORWARD_2}.cu").write_text(
            '#include "launch.cuh"\n#include "tensor_core.cuh"\n'
            "__global__ void kernel(GlobalPtr<float> O, GlobalPtr<const float> Q) {\n"
            "  [[maybe_unused]] const int x = threadIdx.x, lane = x % 32;\n"
            "  DYNAMIC_SHARED(raw);\n"
            "  [[maybe_unused]] float* shared = reinterpret_cast<float*>(raw);\n" + body + "\n}\n"
            "EXPORT size_t shared_bytes() { return 4096; }\n"
            "EXPORT int run(AttentionCall* call) {\n"
            "  return launch(call, kernel, dim3(3), 64, 4096, TENSOR(float, O), TENSOR(const float, Q));\n}\n"
        )
        values = (ctypes.c_float * len(inputs))(*inputs)
        answer = (ctypes.c_float * outputs)(*[start] * outputs)
        library = Library(build(CONFIGURATION, tmp_path))  # not load(), which knows this folder's last library
        run.counts = library.run(  # type: ignore[attr-defined]
            {"O": Buffer(ctypes.addressof(answer), outputs), "Q": Buffer(ctypes.addressof(values), len(inputs))},
            SHAPE,
            Execution(threads, reversed),
        )
        return list(answer)

    return run


def test_indices(run: Run) -> None:
    body = "O[blockIdx.x * blockDim.x + x] = float(1000 * gridDim.x + 100 * blockIdx.x) + x;"
    assert run(body, [0.0], 192) == [3000.0 + 100 * block + x for block in range(3) for x in range(64)]


@pytest.mark.parametrize("reversed", [False, True])
def test_a_barrier_makes_stores_visible(run: Run, reversed: bool) -> None:
    body = "shared[x] = float(Q[x]);\n  __syncthreads();\n  if (blockIdx.x == 0) O[x] = shared[63 - x];"
    assert run(body, list(range(64)), 64, reversed=reversed) == list(range(63, -1, -1))


def test_shared_memory_is_nan_at_the_start_of_every_block(run: Run) -> None:
    body = "O[blockIdx.x * 64 + x] = shared[x];\n  __syncthreads();\n  shared[x] = 1.f;"
    assert all(math.isnan(value) for value in run(body, [0.0], 192, threads=1))


def test_a_shuffle_exchanges_within_a_warp(run: Run) -> None:
    body = "const float y = __shfl_xor_sync(~0u, float(Q[x]), 5);\n  if (blockIdx.x == 0) O[x] = y;"
    assert run(body, list(range(64)), 64) == [(lane ^ 5) + 32 * warp for warp in range(2) for lane in range(32)]


def test_warp_reductions(run: Run) -> None:
    body = (
        "const float sum = warp_sum(float(Q[x])), top = warp_max(float(Q[x]));\n"
        "  if (blockIdx.x == 0) { O[2 * x] = sum; O[2 * x + 1] = top; }"
    )
    values = [float((37 * x) % 64) for x in range(64)]
    halves = [values[:32], values[32:]]
    assert run(body, values, 128) == [y for half in halves for _ in range(32) for y in (sum(half), max(half))]


def test_atomic_adds_of_all_blocks_arrive_and_are_counted(run: Run) -> None:
    assert run("O.atomic_add(0, float(Q[0]));", [2.0], 1, start=1.0) == [385.0]
    counts = run.counts["O"]  # type: ignore[attr-defined]
    assert (counts.loaded, counts.stored) == (192 * 4, 192 * 4)
    assert run.counts["Q"].loaded == 192 * 4  # type: ignore[attr-defined]


def test_divergent_barrier_is_reported_with_block_thread_and_lines(run: Run) -> None:
    with pytest.raises(KernelFault) as fault:
        run("if (x < 40) {\n    __syncthreads();\n  } else {\n    __syncthreads();\n  }", [0.0], 1, threads=1)
    text = str(fault.value)
    assert "divergent barrier" in text
    assert "(block 0,0,0, thread 40)" in text
    assert f"thread 0 and 39 more wait in __syncthreads() at {FORWARD_2}.cu:8" in text
    assert f"thread 40 waits in __syncthreads() at {FORWARD_2}.cu:10" in text


def test_return_before_a_barrier_is_reported(run: Run) -> None:
    with pytest.raises(KernelFault, match="returned") as fault:
        run("if (x == 7) return;\n  __syncthreads();", [0.0], 1, threads=1)
    assert "thread 7 returned" in str(fault.value)


def test_deadlock_between_block_and_warp_is_reported(run: Run) -> None:
    with pytest.raises(KernelFault, match="deadlock: every thread of the block waits") as fault:
        run("if (x < 16) __syncwarp(); else __syncthreads();", [0.0], 1, threads=1)
    assert "thread 0 and 15 more wait in __syncwarp()" in str(fault.value)
    assert "__syncthreads()" in str(fault.value)


def test_lanes_at_different_warp_operations_are_reported(run: Run) -> None:
    body = "if (lane < 4) {\n    __syncwarp();\n  } else {\n    O[0] = __shfl_xor_sync(~0u, 1.f, 1);\n  }"
    with pytest.raises(KernelFault, match="divergent warp"):
        run(body, [0.0], 1)


def test_out_of_bounds_is_reported_with_the_tensor(run: Run) -> None:
    with pytest.raises(KernelFault, match=r"out of bounds: element 64 of Q, which has 64 \(block 0,0,0, thread 63\)"):
        run("O[0] = float(Q[x + 1]);", [0.0] * 64, 1, threads=1)
    with pytest.raises(KernelFault, match=r"element 1 of O, which has 1"):
        run("O[1] = 0.f;", [0.0], 1)


def test_a_failed_launch_does_not_harm_the_next(run: Run) -> None:
    with pytest.raises(KernelFault):
        run("if (x == 7) return;\n  __syncthreads();", [0.0], 1)
    assert run("if (x == 0) O[blockIdx.x] = 5.f;", [0.0], 3) == [5.0] * 3


COPY = """
  auto* tile = reinterpret_cast<half_t*>(raw);
  GlobalPtr<const half_t> source(reinterpret_cast<const half_t*>(Q.load_range(0, 1)), 64, 0, "Q");
  if (x < 8) copy_async(tile + 8 * x, source, 8 * x, x != 3);
"""


def test_an_asynchronous_copy_arrives_when_waited_for_and_not_before(run: Run) -> None:
    """32 floats hold 64 half elements: 1.0 is 0x3c00, so two of them are the float with those bits twice."""
    two_ones = ctypes.c_float.from_buffer(ctypes.c_uint32(0x3C003C00)).value
    show = "__syncthreads();\n  if (blockIdx.x == 0) O[x] = float(tile[x]);"
    assert all(math.isnan(y) for y in run(COPY + show, [two_ones] * 32, 64))
    expected = [0.0 if x // 8 == 3 else 1.0 for x in range(64)]
    assert run(COPY + "wait_for_copies();\n" + show, [two_ones] * 32, 64) == expected


def test_misaligned_copy_is_reported(run: Run) -> None:
    with pytest.raises(KernelFault, match="misaligned"):
        run(COPY.replace("tile + 8 * x", "tile + 8 * x + 1"), [0.0] * 32, 1)


@pytest.mark.parametrize("dtype", ["fp16", "bf16"])
def test_a_tile_product_in_both_ways_a_tile_is_used(dtype: str) -> None:
    """The check that a GPU must pass, on the emulation."""
    pytest.importorskip("torch")
    from refkernel.gpu import layout_errors

    assert layout_errors(dtype, "cpu") == {"S": 0.0, "O": 0.0}


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("cpu/tensor_core.h", "const int row = g + 8 * (e / 2),", "const int row = g + 8 * (e % 2),"),
        ("cpu/tensor_core.h", "c = transposed ? g : 2 * t + i;", "c = transposed ? 2 * t + i : g;"),
        ("kernels/tensor_core.cuh", "row + lane % 8 + lane / 16 * 8,", "row + lane % 16,"),
    ],
)
def test_a_wrong_layout_shows(
    file: str, old: str, new: str, broken_copy: Callable[[str, str, str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    from refkernel import gpu

    monkeypatch.setattr(gpu, "load", partial(load, source_root=broken_copy(file, old, new)))
    assert max(gpu.layout_errors("fp16", "cpu").values()) > 0


def test_swizzle_moves_nothing_out_of_its_row_and_nothing_onto_another(run: Run) -> None:
    """For every row length that kernels are compiled for; and eight rows' chunks lie in eight different bank groups."""
    body = """
  if (x == 0 && blockIdx.x == 0) {
    int good = 0;
    const auto look = [&](auto width) {
      constexpr int d = decltype(width)::value;
      int seen[16 * d] = {}, fine = 1;
      for (int row = 0; row < 16; row++)
        for (int column = 0; column < d; column++) {
          const int at = swizzled<d>(row, column);
          if (at / d != row || at % 8 != column % 8 || seen[at]++) fine = 0;
        }
      for (int row = 0; row < 16; row += 8)
        for (int column = 0; column < d; column += 8) {
          int banks = 0;
          for (int r = 0; r < 8; r++) banks |= 1 << swizzled<d>(row + r, column) / 8 % 8;
          if (banks != 255) fine = 0;
        }
      good += fine;
    };
    look(std::integral_constant<int, 32>()); look(std::integral_constant<int, 64>());
    look(std::integral_constant<int, 96>()); look(std::integral_constant<int, 128>());
    look(std::integral_constant<int, 160>()); look(std::integral_constant<int, 192>());
    look(std::integral_constant<int, 224>()); look(std::integral_constant<int, 256>());
    O[0] = good;
  }
"""
    assert run(body, [0.0], 1) == [8.0]
