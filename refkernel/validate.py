"""Measures the kernels against float64, and says which bound each result has to keep.

The bounds. For fp32: O and LSE within 5e-6 of float64, gradients within 2e-5, absolute. For fp16 and bf16 the
criterion of flash-attention's own tests: the error of O is at most 2 times, of a gradient at most 3 times, that of
PyTorch computing the same call in the same dtype; and never asked to be below the fp32 bound. LSE is always computed in
fp32 and keeps the fp32 bound.

Two exceptions, where the scores reach 1e4. LSE may be off by one step of fp32, since nothing nearer can be returned.
And the bound of a gradient becomes relative to the largest gradient and grows by that step, since the algorithm
recomputes P from LSE.
"""

from __future__ import annotations

import json
import math
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from refkernel.build import (
    BACKWARD_2,
    CPU,
    Configuration,
    build_all,
    find_cxx,
    find_nvcc,
    library_path,
    padded_head_dim,
)
from refkernel.cases import Case, full_cases, quick_cases
from refkernel.library import load
from refkernel.needs import require_gpu, require_torch

if TYPE_CHECKING:
    from torch import Tensor

    from refkernel.call import Options

SCHEMA = "flashtracer/validate/1"

FP32_BOUND = 5e-6
FP32_GRADIENT_BOUND = 2e-5


@dataclass(frozen=True)
class Measurement:
    """Error of one result.

    Attributes:
        quantity: ``O``, ``LSE``, ``dQ``, ``dK`` or ``dV``.
        error: largest absolute difference from float64; infinite where the result has a NaN that should not be there.
        bound: what the error must not exceed.
        pytorch_error: error of PyTorch in the same dtype; None for LSE, which it does not return.
    """

    quantity: str
    error: float
    bound: float
    pytorch_error: float | None

    @property
    def passed(self) -> bool:
        """Whether the bound is kept."""
        return self.error <= self.bound


@dataclass(frozen=True)
class Row:
    """One case and its results.

    Attributes:
        case: what was run.
        measurements: one per result.
    """

    case: Case
    measurements: tuple[Measurement, ...]

    @property
    def passed(self) -> bool:
        """Whether every bound is kept."""
        return all(one.passed for one in self.measurements)

    @property
    def worst(self) -> Measurement:
        """The measurement that is nearest to its bound or furthest beyond it."""
        return max(self.measurements, key=lambda one: one.error / one.bound if one.bound else math.inf * one.error)


@dataclass(frozen=True)
class ValidationReport:
    """The outcome of ``validate``.

    Attributes:
        full: whether the full set was run.
        seed: of the random inputs; the same seed gives the same inputs.
        device: ``cpu`` or ``cuda``.
        compiler: the compiler's line about itself.
        built: libraries compiled for this run.
        build_seconds: how long that took.
        run_seconds: how long the cases took.
        gpu: name of the GPU that PyTorch sees, or None.
        rows: one per case that was run.
        skipped: cases whose tiles need more shared memory than the GPU has, one line each; none on the CPU.
    """

    full: bool
    seed: int
    device: str
    compiler: str
    built: int
    build_seconds: float
    run_seconds: float
    gpu: str | None
    rows: tuple[Row, ...]
    skipped: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether every case keeps its bounds."""
        return all(row.passed for row in self.rows)


def validate(
    full: bool = False,
    seed: int | None = None,
    *,
    device: str = CPU,
    cases: Sequence[Case] | None = None,
    on_progress: Callable[[str], None] | None = None,
) -> ValidationReport:
    """Run kernels on fresh random inputs and compare with float64.

    Args:
        full: every case instead of the quick ones.
        seed: of the inputs; drawn where None, and reported.
        device: ``cpu`` or ``cuda``.
        cases: run these instead.
        on_progress: called with one line about what happens next.

    Raises:
        MissingTorch: PyTorch is not installed.
        MissingGpu: ``cuda`` was asked for and there is none.
        MissingCompiler: there is no compiler for the device.
        KernelFault: a kernel misbehaved.
    """
    require_torch()
    if device != CPU:
        require_gpu()
    import torch

    tell = on_progress or (lambda line: None)
    seed = secrets.randbelow(2**31) if seed is None else seed
    compiler = find_cxx() if device == CPU else find_nvcc()
    chosen = list(cases if cases is not None else full_cases() if full else quick_cases())
    target = CPU
    if device != CPU:
        major, minor = torch.cuda.get_device_capability()
        target = f"sm_{major}{minor}"
    configurations = {configuration_of(case, target) for case in chosen}
    missing = [one for one in configurations if not library_path(one).exists()]
    if missing:
        tell(f"compiling {len(missing)} kernels with {compiler.version}")
    started = time.perf_counter()
    build_all(missing)
    built = time.perf_counter()
    rows, skipped = [], []
    available = None if device == CPU else _gpu_shared_bytes()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # the tensors are small: PyTorch's threads would only wait for each other
    try:
        for number, case in enumerate(chosen):
            tell(f"{number + 1} of {len(chosen)}: {case.kernel} {case.dtype} {case.mask}")
            needed = load(configuration_of(case, target)).shared_bytes
            if available is not None and needed > available:
                skipped.append(
                    f"{case.kernel} {case.dtype} {case.block_m} x {case.block_n}, d = {case.head_dim}: "
                    f"{needed} bytes of shared memory, the GPU has {available}"
                )
                continue
            rows.append(Row(case, _measure(case, seed + number, device)))
    finally:
        torch.set_num_threads(threads)
    finished = time.perf_counter()
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    return ValidationReport(
        full, seed, device, compiler.version, len(missing), built - started, finished - built, gpu, tuple(rows),
        tuple(skipped),
    )  # fmt: skip


def _gpu_shared_bytes() -> int | None:
    """Return the most shared memory a block can have on the GPU; None where this PyTorch does not tell."""
    import torch

    return getattr(torch.cuda.get_device_properties(), "shared_memory_per_block_optin", None)


def configuration_of(case: Case, target: str = CPU) -> Configuration:
    """Return the library that a case needs."""
    return Configuration(
        case.kernel, case.dtype, case.block_m, case.block_n, padded_head_dim(case.head_dim), case.softcap > 0,
        case.alibi, target,
    )  # fmt: skip


def _measure(case: Case, seed: int, device: str) -> tuple[Measurement, ...]:
    import torch

    from refkernel import oracle
    from refkernel.call import backward_into, forward_into, lse_shape

    q, k, v, dout, options = _inputs(case, seed, device)
    exact = oracle.attention(q, k, v, options, dout)
    peer = _pytorch(q, k, v, options, dout)
    sixteen = case.dtype != "fp32"
    nan = math.nan
    if case.kernel == BACKWARD_2:
        dq, dk, dv = (torch.full_like(one, nan) for one in (q, k, v))
        backward_into(dout, q, k, v, exact.out.to(q.dtype), exact.lse.float(), dq, dk, dv, options)
        measured = []
        for name, result in (("dQ", dq), ("dK", dk), ("dV", dv)):
            wanted = getattr(exact, name.lower())
            floor = FP32_GRADIENT_BOUND
            if case.inputs != "normal":
                # P is recomputed from LSE, and is off by the factor exp(half a step of LSE).
                floor = (floor + _fp32_step(exact.lse)) * max(1.0, float(wanted.abs().max()))
            its_error = largest_error(peer[name], wanted)
            bound = max(floor, 3 * its_error) if sixteen else floor
            measured.append(Measurement(name, largest_error(result, wanted), bound, its_error))
        return tuple(measured)
    out = torch.full_like(q, nan)
    lse = torch.full(lse_shape(q, options), nan, dtype=torch.float32, device=q.device)
    forward_into(case.kernel, q, k, v, out, lse, options)
    its_error = largest_error(peer["O"], exact.out)
    bound = max(FP32_BOUND, 2 * its_error) if sixteen else FP32_BOUND
    return (
        Measurement("O", largest_error(out, exact.out), bound, its_error),
        Measurement("LSE", largest_error(lse, exact.lse), max(FP32_BOUND, _fp32_step(exact.lse)), None),
    )


def _fp32_step(values: Tensor) -> float:
    """Return the distance between neighbouring fp32 numbers at the largest finite value; 0 if there is none."""
    finite = values[values.isfinite()].abs()
    largest = float(finite.max()) if finite.numel() else 0.0
    return 2.0 ** (math.floor(math.log2(largest)) - 23) if largest > 0 else 0.0


def largest_error(result: Tensor, exact: Tensor) -> float:
    """Return the largest absolute difference; infinite if a NaN stands where a number should, 0 without elements."""
    import torch

    if result.numel() == 0:
        return 0.0
    difference = (result.double() - exact).abs()
    difference = torch.where(result.double() == exact, 0.0, difference)  # inf - inf is NaN, and equal
    return float(difference.nan_to_num(nan=math.inf, posinf=math.inf).max())


def _inputs(case: Case, seed: int, device: str) -> tuple[Tensor, Tensor, Tensor, Tensor, Options]:
    import torch

    from refkernel.call import DTYPES, Options

    dtype = {name: dtype for dtype, name in DTYPES.items()}[case.dtype]
    random = torch.Generator().manual_seed(seed)
    rows_q: tuple[int, ...] = (case.batch, case.seqlen_q)
    rows_k: tuple[int, ...] = (case.batch, case.seqlen_k)
    varlen: dict[str, Any] = {}
    batch = case.batch
    if case.lengths_q:
        rows_q, rows_k = (sum(case.lengths_q),), (sum(case.lengths_k),)
        batch = len(case.lengths_q)
        for side, lengths in (("q", case.lengths_q), ("k", case.lengths_k)):
            starts = torch.tensor((0, *lengths)).cumsum(0).to(device, torch.int32)
            varlen |= {f"cu_seqlens_{side}": starts, f"max_seqlen_{side}": max(lengths)}
    shape_q, shape_k = (*rows_q, case.heads_q, case.head_dim), (*rows_k, case.heads_k, case.head_dim)
    scale = case.head_dim**-0.5
    q, k = torch.randn(shape_q, generator=random), torch.randn(shape_k, generator=random)
    if case.inputs == "large":
        # Sums of head_dim products of integers up to 31 are exact in fp32, and some of them pass 1e4.
        q, k = (torch.randint(-31, 32, shape, generator=random).float() for shape in (shape_q, shape_k))
        scale = 1.0
    elif case.inputs == "late":
        # -156 per element of a row of 64: near -1e4 in all, again exact.
        q = torch.full(shape_q, 13.0)
        k = torch.randint(-13, -11, shape_k, generator=random).float()
        scale = 1.0
    v, dout = torch.randn(shape_k, generator=random), torch.randn(shape_q, generator=random)
    slopes = torch.rand((batch, case.heads_q), generator=random).to(device) if case.alibi else None
    q, k, v, dout = (one.to(device, dtype) for one in (q, k, v, dout))
    options = Options(
        scale, case.causal, case.window_size, case.softcap, slopes, block_m=case.block_m, block_n=case.block_n, **varlen
    )
    return q, k, v, dout, options


def _pytorch(q: Tensor, k: Tensor, v: Tensor, options: Options, dout: Tensor) -> dict[str, Tensor]:
    """Return O, dQ, dK, dV as PyTorch computes them in the dtype of the inputs, one operation at a time."""
    import torch

    from refkernel.oracle import visible

    q, k, v = (one.detach().clone().requires_grad_() for one in (q, k, v))
    if options.cu_seqlens_q is not None and options.cu_seqlens_k is not None:
        starts_q, starts_k = options.cu_seqlens_q.tolist(), options.cu_seqlens_k.tolist()
        spans = list(zip(starts_q, starts_q[1:], starts_k, starts_k[1:], strict=False))
        sequences = [(q[a:b], k[c:e], v[c:e]) for a, b, c, e in spans]
    else:
        sequences = [(q[b], k[b], v[b]) for b in range(q.shape[0])]
    parts = []
    for b, (Q, K, V) in enumerate(sequences):
        seqlen_q, seqlen_k, group = Q.shape[0], K.shape[0], Q.shape[1] // K.shape[1]
        Q, K, V = (one.repeat_interleave(times, 1).transpose(0, 1) for one, times in ((Q, 1), (K, group), (V, group)))
        S = Q * options.softmax_scale @ K.transpose(1, 2)
        if options.softcap > 0:
            S = options.softcap * torch.tanh(S / options.softcap)
        if options.alibi_slopes is not None:
            slopes = options.alibi_slopes.expand(len(sequences), Q.shape[0])[b]
            rows, columns = torch.arange(seqlen_q, device=q.device), torch.arange(seqlen_k, device=q.device)
            distance = (rows[:, None] + seqlen_k - seqlen_q - columns[None, :]).abs()
            S = S - (slopes[:, None, None] * distance).to(S.dtype)
        seen = visible(seqlen_q, seqlen_k, options.causal, options.window_size).to(q.device)
        P = torch.softmax(S.masked_fill(~seen, -math.inf), -1).masked_fill(~seen.any(1)[:, None], 0.0)
        parts.append((P @ V).transpose(0, 1))
    out = torch.cat(parts) if options.cu_seqlens_q is not None else torch.stack(parts)
    # The softmax of a row that sees nothing is NaN, and so is its gradient; its true gradient is 0.
    dq, dk, dv = (one.nan_to_num(nan=0.0) for one in torch.autograd.grad(out, (q, k, v), dout))
    return {"O": out.detach(), "dQ": dq, "dK": dk, "dV": dv}


def to_json(report: ValidationReport) -> str:
    """Return the report as JSON by ``schemas/validate.schema.json``. An infinite error is null."""

    def number(value: float | None) -> float | None:
        return value if value is not None and math.isfinite(value) else None

    rows = [
        asdict(row.case)
        | {
            "mask": row.case.mask,
            "passed": row.passed,
            "measurements": [
                {
                    "quantity": one.quantity,
                    "error": number(one.error),
                    "bound": number(one.bound),
                    "pytorch_error": number(one.pytorch_error),
                    "passed": one.passed,
                }
                for one in row.measurements
            ],
        }
        for row in report.rows
    ]
    head = {"schema": SCHEMA, "passed": report.passed} | {
        name: getattr(report, name)
        for name in ("full", "seed", "device", "compiler", "built", "build_seconds", "run_seconds", "gpu", "skipped")
    }
    return json.dumps(head | {"rows": rows}, indent=1)


_HEADINGS = (
    "kernel", "dtype", "shape (B, M, N, H, d)", "tile", "mask", "of", "max error", "bound", "PyTorch's own", "",
)  # fmt: skip


def _cells(row: Row) -> tuple[str, ...]:
    case, worst = row.case, row.worst
    heads = f"{case.heads_q}" if case.heads_q == case.heads_k else f"{case.heads_q}/{case.heads_k}"
    if case.lengths_q:
        lengths = ["+".join(map(str, one)) for one in (case.lengths_q, case.lengths_k)]
    else:
        lengths = [str(case.seqlen_q), str(case.seqlen_k)]
    batch = len(case.lengths_q) or case.batch
    peer = "" if worst.pytorch_error is None else f"{worst.pytorch_error:.1e}"
    return (
        case.kernel, case.dtype, f"{batch}, {lengths[0]}, {lengths[1]}, {heads}, {case.head_dim}",
        f"{case.block_m} x {case.block_n}", case.mask, worst.quantity, f"{worst.error:.1e}", f"{worst.bound:.1e}", peer,
        "ok" if row.passed else "BROKEN",
    )  # fmt: skip


def _summary(report: ValidationReport) -> str:
    kept = sum(row.passed for row in report.rows)
    built = f"{report.built} kernels built in {report.build_seconds:.1f} s" if report.built else "built before"
    gpu = f"GPU: {report.gpu}" if report.gpu else "GPU: none found (make gpu)"
    skipped = f", {len(report.skipped)} do not fit this GPU" if report.skipped else ""
    counts = f"{kept} of {len(report.rows)} within bounds{skipped}"
    return "      ".join((counts, f"seed {report.seed}", f"{report.compiler}; {built}", gpu))


def render_text(report: ValidationReport) -> str:
    """Return the report as a table: per case the result nearest to its bound."""
    table = [_HEADINGS, *(_cells(row) for row in report.rows)]
    widths = [max(len(cells[column]) for cells in table) for column in range(len(_HEADINGS))]
    lines = ["  ".join(map(str.ljust, cells, widths)).rstrip() for cells in table]
    return "\n".join([*lines, "", _summary(report)])


def render_markdown(report: ValidationReport) -> str:
    """Return the report as a Markdown table."""
    table = [_HEADINGS, ("---",) * len(_HEADINGS), *(_cells(row) for row in report.rows)]
    return "\n".join(["| " + " | ".join(cells) + " |" for cells in table] + ["", _summary(report)])
