"""Bugs put into copies of the kernels, one at a time: each must be caught, and those with a report by their report.

A bug is caught either because the CPU run refuses it (a report that names block, thread and line) or because a result
breaks its bound. The unbroken kernels pass the same cases in test_ref_validate.py.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from refkernel import call, library, validate  # noqa: E402
from refkernel.build import BACKWARD_2, FORWARD_1, FORWARD_2, FORWARD_2_MMA, build, find_cxx  # noqa: E402
from refkernel.cases import Case  # noqa: E402
from refkernel.errors import KernelFault  # noqa: E402

BrokenCopy = Callable[[str, str, str], Path]

#: Three tiles each way, the last one ragged, so that a bug between steps has steps to show itself in.
CASES = {
    FORWARD_1: Case(FORWARD_1, causal=True),
    FORWARD_2: Case(FORWARD_2, causal=True),
    BACKWARD_2: Case(BACKWARD_2, causal=True),
    FORWARD_2_MMA: Case(FORWARD_2_MMA, "fp16", causal=True, block_m=64),
}


@dataclass(frozen=True)
class Bug:
    """Text to replace in the kernel, and the report to expect; None where the numbers must give it away."""

    what: str
    kernel: str
    old: str
    new: str
    report: str | None = None


BARRIER_1_KV = "overwritten.\n    __syncthreads();\n\n    // 6: load"
BARRIER_2_KV = "overwritten.\n    __syncthreads();\n\n    // Load K_j"
BARRIER_2_READ = "stored them.\n    __syncthreads();\n\n    // S_ij"

BUGS = [
    # rung 2
    Bug("l is not rescaled", FORWARD_2, "l_i[r] = alpha[r] * l_i[r] + l_ij;", "l_i[r] = l_i[r] + l_ij;"),
    Bug("O is not rescaled", FORWARD_2, "O_i[r][t] = alpha[r] * O_i[r][t];", "O_i[r][t] = O_i[r][t];"),
    Bug("no barrier before the K/V load", FORWARD_2, BARRIER_2_KV, BARRIER_2_KV.replace("__syncthreads();", "")),
    Bug("no barrier after the K/V load", FORWARD_2, BARRIER_2_READ, BARRIER_2_READ.replace("__syncthreads();", "")),
    Bug(
        "barrier in a divergent branch",
        FORWARD_2,
        BARRIER_2_READ,
        BARRIER_2_READ.replace("__syncthreads();", "if (lane < 16) __syncthreads();"),
        r"divergent|deadlock|wait",
    ),
    Bug(
        "causal bound one too small",
        FORWARD_2,
        "column <= row + shift + shape.window_right;",
        "column < row + shift + shape.window_right;",
    ),
    Bug(
        "causal bound one too large",
        FORWARD_2,
        "column <= row + shift + shape.window_right;",
        "column <= row + shift + shape.window_right + 1;",
    ),
    Bug(
        "last tile of the walk left out",
        FORWARD_2,
        "min(seqlen_k, q0 + B_r + shift + shape.window_right)",
        "min(seqlen_k, q0 + shift + shape.window_right)",
    ),
    Bug(
        "P of another warp's rows",
        FORWARD_2,
        "+= P_ij[first_row + r][c] * V_ct",
        "+= P_ij[(first_row + r + R) % B_r][c] * V_ct",
    ),
    Bug(
        "V of the tile before",
        FORWARD_2,
        "V_j[c][k] = inside ? T(V[at]) : T(0.f);",
        "V_j[c][k] = inside && k0 > 0 ? T(V[at - B_c * shape.heads_k * head_dim]) : T(0.f);",
    ),
    Bug(
        "K/V rows beyond the end are loaded",
        FORWARD_2,
        "const bool inside = k0 + c < seqlen_k && k < head_dim;",
        "const bool inside = k < head_dim;",
        r"out of bounds: element \d+ of [KV], which has 25600",
    ),
    Bug(
        "a row that has seen nothing",
        FORWARD_2,
        "m_new == -INFINITY ? 0.f : m_new",
        "m_new",
    ),
    Bug("m is not the new maximum", FORWARD_2, "m_i[r] = m_new;", "m_i[r] = m_ij;"),
    # rung 1
    Bug(
        "l is not rescaled",
        FORWARD_1,
        "l_new[r] = alpha[r] * l_i[first_row + r] + beta[r] * l_ij;",
        "l_new[r] = l_i[first_row + r] + beta[r] * l_ij;",
    ),
    Bug("P is not rescaled", FORWARD_1, "beta[r] * PV_ij[r][t]", "PV_ij[r][t]"),
    Bug("no barrier before the K/V load", FORWARD_1, BARRIER_1_KV, BARRIER_1_KV.replace("__syncthreads();", "")),
    Bug(
        "no barrier before the Q load",
        FORWARD_1,
        "must be there.\n      __syncthreads();",
        "must be there.\n",
    ),
    # rung 3
    Bug("D is left out", BACKWARD_2, "(dP_ij[r][c] - D_i[warp * R + r])", "dP_ij[r][c]"),
    Bug("dK is not scaled", BACKWARD_2, "dK[at] = T(shape.softmax_scale * dK_j[c][t]);", "dK[at] = T(dK_j[c][t]);"),
    Bug(
        "no barrier before the transposes are read",
        BACKWARD_2,
        "other warps too.\n    __syncthreads();",
        "other warps too.\n",
    ),
    Bug(
        "no barrier before the Q load",
        BACKWARD_2,
        "overwritten.\n    __syncthreads();\n\n    // Load Q_i",
        "overwritten.\n\n    // Load Q_i",
    ),
    Bug(
        "first tile of the walk left out",
        BACKWARD_2,
        "for (int i = begin_row / B_r; i < T_r; i++)",
        "for (int i = begin_row / B_r + 1; i < T_r; i++)",
    ),
    # rung 4
    Bug(
        "O is not rescaled",
        FORWARD_2_MMA,
        "O_i[a][n][e] = alpha[a][e / 2] * O_i[a][n][e];",
        "O_i[a][n][e] = O_i[a][n][e];",
    ),
    Bug(
        "V is not waited for",
        FORWARD_2_MMA,
        "must be done with K_j before it is overwritten.\n    wait_for_copies();",
        "must be done with K_j before it is overwritten.\n",
    ),
    Bug(
        "no barrier before K is overwritten",
        FORWARD_2_MMA,
        "must be done with K_j before it is overwritten.\n    wait_for_copies();\n    __syncthreads();",
        "must be done with K_j before it is overwritten.\n    wait_for_copies();",
    ),
    Bug(
        "no barrier before V is overwritten",
        FORWARD_2_MMA,
        "the last step before it is overwritten.\n    wait_for_copies();\n    __syncthreads();",
        "the last step before it is overwritten.\n    wait_for_copies();",
    ),
    Bug("rows of the two halves exchanged", FORWARD_2_MMA, "{P_ij[a][k / 8][0], P_ij[a][k / 8][1],",
        "{P_ij[a][k / 8][1], P_ij[a][k / 8][0],"),
]  # fmt: skip


def run_broken(monkeypatch: pytest.MonkeyPatch, root: Path, case: Case) -> validate.ValidationReport:
    monkeypatch.setattr(call, "load", partial(library.load, source_root=root))
    return validate.validate(cases=[case, replace(case, causal=False, window_size=(20, 30))], seed=3)


@pytest.fixture(scope="module")
def copies(broken_copy: BrokenCopy) -> dict[Bug, Path]:
    """One copy of the sources per bug, all compiled at once rather than one after the other."""
    roots = {bug: broken_copy(f"kernels/{bug.kernel}.cuh", bug.old, bug.new) for bug in BUGS}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda bug: build(validate.configuration_of(CASES[bug.kernel]), roots[bug]), BUGS))
    return roots


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: f"{bug.kernel}: {bug.what}")
def test_bug_is_caught(bug: Bug, copies: dict[Bug, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        report = run_broken(monkeypatch, copies[bug], CASES[bug.kernel])
    except KernelFault as fault:
        assert bug.report, f"a report where the numbers were expected to be wrong: {fault}"
        assert re.search(bug.report, str(fault)), str(fault)
        return
    assert bug.report is None, "no report"
    assert not report.passed


def test_a_copy_with_a_harmless_change_passes(broken_copy: BrokenCopy, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that the copies above are judged by their bug, not by being copies."""
    old, new = "l_i[r] = alpha[r] * l_i[r] + l_ij;", "l_i[r] = l_ij + alpha[r] * l_i[r];"
    root = broken_copy(f"kernels/{FORWARD_2}.cuh", old, new)
    assert run_broken(monkeypatch, root, CASES[FORWARD_2]).passed


UNDER_SANITIZER = """
import sys
from pathlib import Path
from refkernel.build import Configuration
from refkernel.counting import run_on_zeros
from refkernel.library import AttentionShape, load
kernel, root = sys.argv[1], Path(sys.argv[2])
configuration = Configuration(kernel, "fp16" if "mma" in kernel else "fp32", 64, 64, 64, sanitize=True)
run_on_zeros(load(configuration, root), configuration, AttentionShape(1, 150, 150, 1, 1, 64, 0.125, 150), 150, {})
print("finished")
"""


def run_sanitized(kernel: str, root: Path) -> subprocess.CompletedProcess[str]:
    runtime = subprocess.run(
        [find_cxx().path, "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    ).stdout.strip()
    if not os.path.isabs(runtime):
        pytest.skip("the compiler has no AddressSanitizer runtime; install libasan")
    environment = os.environ | {
        "LD_PRELOAD": os.path.realpath(runtime),
        "ASAN_OPTIONS": "detect_leaks=0",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    return subprocess.run(
        [sys.executable, "-c", UNDER_SANITIZER, kernel, str(root)], capture_output=True, text=True, env=environment
    )


@pytest.mark.parametrize("kernel", [FORWARD_1, FORWARD_2, BACKWARD_2, FORWARD_2_MMA])
def test_kernels_are_clean_under_address_sanitizer(kernel: str) -> None:
    result = run_sanitized(kernel, Path(validate.__file__).parent)
    assert result.stdout == "finished\n", result.stderr[-2000:]


@pytest.mark.parametrize(
    ("kernel", "old", "new"),
    [
        (FORWARD_2, "V_j[c][k] = inside ? T(V[at])", "V_j[c + 1][k] = inside ? T(V[at])"),
        (BACKWARD_2, "V_j[c][k] = inside ? T(V[at])", "V_j[c + 1][k] = inside ? T(V[at])"),
        (FORWARD_1, "V_j[c][t * 32 + lane]", "V_j[c + 1][t * 32 + lane]"),
    ],
)
def test_overrun_of_shared_memory_is_caught(kernel: str, old: str, new: str, broken_copy: BrokenCopy) -> None:
    """V_j is the last tile in shared memory, whose allocation ends exactly where V_j does."""
    result = run_sanitized(kernel, broken_copy(f"kernels/{kernel}.cuh", old, new))
    assert result.stdout == ""
    assert "heap-buffer-overflow" in result.stderr
    assert f"{kernel}.cuh" in result.stderr


def test_a_bug_must_stand_in_the_source_exactly_once(broken_copy: BrokenCopy) -> None:
    """Or a later change of a kernel would turn these tests into tests of nothing."""
    with pytest.raises(AssertionError, match="holds 0 times"):
        broken_copy(f"kernels/{FORWARD_2}.cuh", "no such text", "")
    with pytest.raises(AssertionError, match="holds 2 times"):
        broken_copy(f"kernels/{FORWARD_2}.cuh", "__syncthreads();", "")
