"""Everything that only a GPU can show: ``python -m refkernel.gpu [--out FOLDER] [--quick]``.

Builds for the GPU that is there, validates every kernel on it, proves the fragment layout of the tensor-core rung, runs
compute-sanitizer over small shapes, times each rung next to PyTorch's flash and math backends, collects bytes with
Nsight Compute, and writes one JSON file. What a machine lacks (compute-sanitizer, ncu, the right to read counters) is
written down as such, not left out.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from refkernel.benchmark import Workload, draw, gpu_timings
from refkernel.build import BACKWARD_2, FORWARD_1, FORWARD_2, FORWARD_2_MMA, KERNELS, MMA_LAYOUT, Configuration
from refkernel.cases import Case
from refkernel.errors import RefkernelError
from refkernel.library import AttentionShape, Buffer, Execution, load
from refkernel.needs import require_gpu
from refkernel.validate import ValidationReport, to_json, validate

SCHEMA = "flashtracer/gpu/1"

METRICS = ("dram__bytes.sum", "lts__t_bytes.sum")


@dataclass(frozen=True)
class ToolRun:
    """One run of a tool over the kernels.

    Attributes:
        tool: the program and what it was asked to do.
        passed: whether it found nothing; None if it could not be run.
        message: its last lines, or why it could not be run.
    """

    tool: str
    passed: bool | None
    message: str


@dataclass(frozen=True)
class Traffic:
    """Bytes of one workload as Nsight Compute counted them, summed over the kernels it launched.

    Attributes:
        implementation: ``naive``, or a kernel's name.
        workload: what was run.
        dram_bytes: ``dram__bytes.sum``; None if it could not be read.
        l2_bytes: ``lts__t_bytes.sum``; None if it could not be read.
        message: why not.
    """

    implementation: str
    workload: Workload
    dram_bytes: float | None
    l2_bytes: float | None
    message: str


def layout_errors(dtype: str, device: str) -> dict[str, float]:
    """Multiply tiles of integers with rung 4's fragments; return the largest error of S = Q K^T and of O = Q V.

    Products of small integers are exact, so each must be 0.

    Args:
        dtype: ``fp16`` or ``bf16``.
        device: ``cuda``, or ``cpu`` for the emulation.
    """
    import torch

    from refkernel.call import DTYPES

    element = {name: dtype for dtype, name in DTYPES.items()}[dtype]
    q, k, v = (torch.randint(-8, 9, (16, 16)).to(device, element) for _ in range(3))
    s, o = (torch.full((16, 16), float("nan"), device=device) for _ in range(2))
    target, execution = "cpu", Execution()
    if device == "cuda":
        major, minor = torch.cuda.get_device_capability()
        target, execution = f"sm_{major}{minor}", Execution(stream=torch.cuda.current_stream().cuda_stream)
    tensors = {"Q": q, "K": k, "V": v, "LSE": s, "O": o}
    buffers = {name: Buffer(tensor.data_ptr(), tensor.numel()) for name, tensor in tensors.items()}
    library = load(Configuration(MMA_LAYOUT, dtype, 64, 64, 64, target=target))
    library.run(buffers, AttentionShape(1, 16, 16, 1, 1, 16, 1.0, 16), execution)
    exact = {"S": q.float().cpu() @ k.float().cpu().T, "O": q.float().cpu() @ v.float().cpu()}
    got = {"S": s.cpu(), "O": o.cpu()}
    return {name: float((got[name] - exact[name]).abs().nan_to_num(nan=float("inf")).max()) for name in exact}


def small_cases() -> list[Case]:
    """Return small calls of every kernel for compute-sanitizer, under which a kernel is a hundred times slower."""
    cases = []
    for kernel in KERNELS:
        for dtype in ("fp16", "bf16") if kernel == FORWARD_2_MMA else ("fp32", "fp16"):
            base = Case(kernel, dtype, seqlen_q=100, seqlen_k=130, heads_q=2, heads_k=1, block_m=64)
            cases.append(replace(base, causal=True))
            cases.append(replace(base, window_size=(20, 30), lengths_q=(50, 9), lengths_k=(0, 70)))
    return cases


def sanitizer_runs() -> list[ToolRun]:
    """Run compute-sanitizer's memcheck and racecheck over ``small_cases``."""
    program = shutil.which("compute-sanitizer")
    runs = []
    for tool in ("memcheck", "racecheck"):
        name = f"compute-sanitizer {tool}"
        if not program:
            runs.append(ToolRun(name, None, "compute-sanitizer is not on the path"))
            continue
        command = [program, "--tool", tool, "--error-exitcode", "9", sys.executable, "-m", "refkernel.gpu", "--small"]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        runs.append(ToolRun(name, result.returncode == 0, "\n".join(result.stdout.strip().splitlines()[-3:])))
    return runs


def traffic(implementation: str, workload: Workload) -> Traffic:
    """Let Nsight Compute count the bytes of one call; ``naive`` is Q K^T, softmax and P V as PyTorch operations."""
    program = shutil.which("ncu")
    if not program:
        return Traffic(implementation, workload, None, None, "ncu is not on the path")
    command = [
        program, "--csv", "--metrics", ",".join(METRICS), "--profile-from-start", "off", sys.executable, "-m",
        "refkernel.gpu", "--profile", implementation, "--workload", json.dumps(asdict(workload)),
    ]  # fmt: skip
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        totals = sum_metrics(result.stdout)
    except (KeyError, ValueError) as error:
        return Traffic(implementation, workload, None, None, f"ncu's output has another form: {error!r}")
    if result.returncode != 0 or set(totals) != set(METRICS):
        told = (result.stdout + result.stderr).strip().splitlines()[-3:]
        return Traffic(implementation, workload, None, None, "ncu failed: " + " / ".join(told))
    return Traffic(implementation, workload, totals[METRICS[0]], totals[METRICS[1]], "")


_UNITS = {"byte": 1.0, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9, "B": 1.0, "KB": 1e3, "MB": 1e6, "GB": 1e9}


def sum_metrics(output: str) -> dict[str, float]:
    """Return the bytes of every metric in ncu's CSV output, summed over kernels. Lines before the table are skipped."""
    lines = [line for line in output.splitlines() if line.startswith('"')]
    totals: dict[str, float] = {}
    for row in csv.DictReader(lines):
        value = float(row["Metric Value"].replace(",", "")) * _UNITS[row["Metric Unit"]]
        totals[row["Metric Name"]] = totals.get(row["Metric Name"], 0.0) + value
    return totals


def profile_once(implementation: str, workload: Workload) -> None:
    """Run one call between the markers that tell Nsight Compute to look."""
    import torch

    from refkernel.call import Options, forward_into, lse_shape

    q, k, v = draw(workload, "cuda")
    options = Options(workload.head_dim**-0.5, workload.causal)
    out, lse = torch.empty_like(q), torch.empty(lse_shape(q, options), device="cuda")

    def call() -> None:
        if implementation == "naive":
            Q, K, V = (one.transpose(1, 2) for one in (q, k, v))
            P = torch.softmax(Q @ K.transpose(2, 3) * options.softmax_scale, -1)
            out.copy_((P @ V).transpose(1, 2))
        else:
            forward_into(implementation, q, k, v, out, lse, options)

    call()
    torch.cuda.synchronize()
    torch.cuda.profiler.start()  # type: ignore[no-untyped-call]
    call()
    torch.cuda.synchronize()
    torch.cuda.profiler.stop()  # type: ignore[no-untyped-call]


def workloads(quick: bool) -> list[Workload]:
    """Return what is timed: d = 64 and 128, N from 1k to 16k, 16k rows and 2,048 features in all, as is customary."""
    lengths = (1024, 4096) if quick else (1024, 2048, 4096, 8192, 16384)
    return [
        Workload(max(1, 16384 // n), 2048 // d, n, d, "fp16", causal)
        for d in (64, 128)
        for n in lengths
        for causal in (False, True)
    ]


def collect(quick: bool) -> dict[str, Any]:
    """Do everything; return the document that is written to the report.

    Raises:
        MissingTorch: PyTorch is not installed.
        MissingGpu: there is no GPU.
        MissingCompiler: there is no nvcc.
    """
    name = require_gpu()
    import torch

    layout = {dtype: layout_errors(dtype, "cuda") for dtype in ("fp16", "bf16")}
    report: ValidationReport = validate(full=not quick, device="cuda")
    timings = []
    for workload in workloads(quick):
        # The first rungs exist to be read. Beyond 4k rows they would take most of the time.
        slow = (FORWARD_1, FORWARD_2, BACKWARD_2) if workload.seqlen <= 4096 else ()
        timings += [asdict(one) for one in gpu_timings(workload, (*slow, FORWARD_2_MMA))]
    measured = [
        asdict(traffic(implementation, Workload(4, 16, n, 64, "fp16", False)))
        for n in ((1024,) if quick else (1024, 4096))
        for implementation in ("naive", FORWARD_1, FORWARD_2, FORWARD_2_MMA)
    ]
    return {
        "schema": SCHEMA,
        "gpu": name,
        "capability": list(torch.cuda.get_device_capability()),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "date": time.strftime("%Y-%m-%d"),
        "quick": quick,
        "layout_errors": layout,
        "validation": json.loads(to_json(report)),
        "sanitizer": [asdict(one) for one in sanitizer_runs()],
        "timings": timings,
        "traffic": measured,
    }


def failures(document: dict[str, Any]) -> list[str]:
    """Return what in a document shows a wrong kernel, one line each; what could not be run is none."""
    found = [
        f"the fragment layout is wrong for {dtype}: {errors}"
        for dtype, errors in document["layout_errors"].items()
        if any(error != 0 for error in errors.values())
    ]
    broken = [row for row in document["validation"]["rows"] if not row["passed"]]
    found += [f"{row['kernel']} {row['dtype']} {row['mask']} breaks its bound" for row in broken]
    runs = [run for run in document["sanitizer"] if run["passed"] is False]
    found += [f"{run['tool']} found errors: {run['message']}" for run in runs]
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the checks and write the report; return 0, 1 if a kernel is wrong, 2 if nothing could be run."""
    parser = argparse.ArgumentParser(prog="python -m refkernel.gpu", description="Check and time the kernels on a GPU.")
    parser.add_argument("--out", type=Path, default=Path("reports/gpu"), help="folder for the JSON file")
    parser.add_argument("--quick", action="store_true", help="fewer cases and shapes, for a first look")
    parser.add_argument("--small", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--profile", help=argparse.SUPPRESS)
    parser.add_argument("--workload", type=json.loads, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    try:
        name = require_gpu()
        if options.small:
            return 0 if validate(cases=small_cases(), device="cuda").passed else 1
        if options.profile:
            profile_once(options.profile, Workload(**options.workload))
            return 0
        document = collect(options.quick)
    except RefkernelError as error:
        print(f"refkernel.gpu: {error}", file=sys.stderr)
        return 2
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / f"{re.sub('[^a-z0-9]+', '-', name.lower()).strip('-')}.json"
    path.write_text(json.dumps(document, indent=1) + "\n")
    print(path)
    found = failures(document)
    for line in found:
        print(line, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
