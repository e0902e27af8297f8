"""Runs commands as whole processes, in turn, and compares the medians."""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass
class Timing:
    """What the runs of one command cost.

    Attributes:
        name: what to call the command.
        wall: seconds from start to end, one a run.
        cpu: user and system seconds of the process and of those it waited for, one a run.
        memory: MiB that the process and its children held at the same time at most, shared pages once.
    """

    name: str
    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    memory: float = 0.0

    def __str__(self) -> str:
        """Return a row of the table."""
        return (
            f"{self.name:44s} {statistics.median(self.wall) * 1000:7.0f} ms wall "
            f"({min(self.wall) * 1000:.0f}–{max(self.wall) * 1000:.0f}) "
            f"{statistics.median(self.cpu) * 1000:7.0f} ms cpu "
            f"{self.memory:6.0f} MiB"
        )


def run(timing: Timing, command: Sequence[str], environment: dict[str, str] | None = None) -> None:
    """Run a command once, its output thrown away, and add what it cost."""
    before = os.times()
    began = time.perf_counter()
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, **(environment or {})}
    )
    while process.poll() is None:
        timing.memory = max(timing.memory, _held(process.pid))
        time.sleep(0.005)
    timing.wall.append(time.perf_counter() - began)
    after = os.times()
    timing.cpu.append(after.children_user + after.children_system - before.children_user - before.children_system)
    if process.returncode != 0:
        raise SystemExit(f"benchmark command failed with status {process.returncode}: {' '.join(command)}")


def in_turn(rounds: int, *commands: tuple[Timing, Sequence[str], dict[str, str]]) -> None:
    """Run commands A B C A B C …, after one round that does not count."""
    for timing, command, environment in commands:
        run(Timing(timing.name), command, environment)
    for _ in range(rounds):
        for timing, command, environment in commands:
            run(timing, command, environment)


def ratio(one: Timing, other: Timing) -> str:
    """Return the ratio of two medians, with the spread of the ratios of neighbouring runs."""
    pairs = sorted(a / b for a, b in zip(one.wall, other.wall, strict=True))
    return f"{statistics.median(pairs):.2f} ({pairs[0]:.2f}–{pairs[-1]:.2f})"


def _held(pid: int) -> float:
    """Return the proportional set size of a process and all below it, in MiB; 0 where /proc does not tell."""
    total = 0
    waiting = [pid]
    while waiting:
        process = waiting.pop()
        try:
            with open(f"/proc/{process}/smaps_rollup") as stream:
                total += next(int(line.split()[1]) for line in stream if line.startswith("Pss:"))
            for task in os.listdir(f"/proc/{process}/task"):
                with open(f"/proc/{process}/task/{task}/children") as stream:
                    waiting += [int(child) for child in stream.read().split()]
        except (OSError, StopIteration):
            continue
    return total / 1024
