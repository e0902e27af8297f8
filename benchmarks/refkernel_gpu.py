"""Times every rung on the GPU as ratios to PyTorch's flash backend in the same run.

Usage: python benchmarks/refkernel_gpu.py [--quick]

A ratio above 1 is faster than the flash backend. The aim of the tensor-core rung is parity. ``python -m refkernel.gpu``
also validates the kernels, counts bytes and writes a report.
"""

from __future__ import annotations

import sys

from refkernel.benchmark import gpu_timings
from refkernel.build import BACKWARD_2, FORWARD_1, FORWARD_2, FORWARD_2_MMA
from refkernel.errors import RefkernelError
from refkernel.gpu import workloads
from refkernel.needs import require_gpu


def main() -> int:
    try:
        print(require_gpu())
    except RefkernelError as error:
        print(f"refkernel_gpu: {error}", file=sys.stderr)
        return 2
    print(f"{'implementation':30} {'d':>4} {'N':>6} {'causal':>7} {'ms':>9} {'TFLOP/s':>8} {'ratio to flash':>15}")
    for workload in workloads("--quick" in sys.argv):
        rungs = (FORWARD_1, FORWARD_2, BACKWARD_2) if workload.seqlen <= 4096 else ()
        for one in gpu_timings(workload, (*rungs, FORWARD_2_MMA)):
            ratio = "" if one.ratio_to_flash is None else f"{one.ratio_to_flash:15.2f}"
            print(
                f"{one.implementation:30} {workload.head_dim:4} {workload.seqlen:6} {workload.causal!s:>7} "
                f"{one.milliseconds:9.3f} {one.teraflops:8.1f} {ratio}"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
