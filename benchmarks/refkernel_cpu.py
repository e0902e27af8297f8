"""Times the reference kernel on the CPU: the first build of one kernel, and a forward pass next to PyTorch's.

Usage: python benchmarks/refkernel_cpu.py

The emulation exists to be right and to count bytes, not to be fast; the ratio to PyTorch says what it costs. The aims
are less than five seconds for a first build, and less than half a second for B = 1, H = 2, N = 1024, d = 64 in fp32 on
two cores.
"""

from __future__ import annotations

import os
import tempfile
import time
from unittest import mock

from refkernel import build
from refkernel.benchmark import Workload, cpu_peer_seconds, cpu_seconds
from refkernel.build import FORWARD_1, FORWARD_2, FORWARD_2_MMA, Configuration


def first_build_seconds(kernel: str, dtype: str, block_m: int) -> float:
    with tempfile.TemporaryDirectory() as folder, mock.patch.object(build, "user_cache_dir", lambda _: folder):
        started = time.perf_counter()
        build.build(Configuration(kernel, dtype, block_m, 64, 64))
        return time.perf_counter() - started


def main() -> None:
    print(f"{build.find_cxx().version}, {os.cpu_count()} processors")
    print(f"\n{'first build of one kernel':34} {'seconds':>8}  aim < 5")
    for kernel, dtype, block_m in ((FORWARD_2, "fp32", 64), (FORWARD_2_MMA, "fp16", 128)):
        print(f"{kernel:34} {first_build_seconds(kernel, dtype, block_m):8.2f}")
    print(f"\n{'forward':34} {'N':>5} {'seconds':>8} {'ratio to PyTorch':>17}  aim < 0.5 s for fp32 N = 1024")
    for kernel, dtype in ((FORWARD_2, "fp32"), (FORWARD_1, "fp32"), (FORWARD_2, "fp16"), (FORWARD_2_MMA, "fp16")):
        for seqlen in (512, 1024):
            workload = Workload(1, 2, seqlen, 64, dtype, False)
            mine, peer = cpu_seconds(workload, kernel), cpu_peer_seconds(workload)
            print(f"{kernel:27} {dtype:6} {seqlen:5} {mine:8.3f} {mine / peer:16.0f}x")


if __name__ == "__main__":
    main()
