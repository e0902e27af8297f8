"""CPU time and memory of a cold cross-check and a cold symbol table of one release, process start included.

Prints the CPU seconds (user and system, the parser process included) and the peak memory of a process that has nothing
cached, and the ratio to a process that only reads the same sources with the parser.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile

from tracer.checkout import open_checkout

CHECKOUT, ROUNDS = "pypi:2.8.3", 3
JOBS = {
    "parse only": "list(p.source(p.attention_extension()).definitions())",
    "check forward": "import tracer.crosscheck as c; assert c.check(p, algorithm='forward').ok",
    "check all": "import tracer.crosscheck as c; assert c.check(p).ok",
    "symbols": "import tracer.symbols as s; s.symbol_table(p)",
}
PROGRAM = """
import sys
from tracer.checkout import open_checkout
from tracer.graph import Program
with Program(open_checkout(sys.argv[1]), cache=False) as p:
    {job}
"""


def measured(job: str, checkout: str) -> tuple[float, float]:
    """Return CPU seconds and peak megabytes of one fresh process."""
    with tempfile.TemporaryDirectory() as empty:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        environment = {**os.environ, "FLASHTRACER_CACHE": empty}
        command = [sys.executable, "-c", PROGRAM.format(job=JOBS[job]), checkout]
        process = subprocess.Popen(command, env=environment)
        _, status, usage = os.wait4(process.pid, 0)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if status:
            raise SystemExit(f"{job} failed on {checkout}")
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, usage.ru_maxrss / 1024


def main() -> None:
    checkout = str(open_checkout(CHECKOUT).root)
    base = 0.0
    for job in JOBS:
        rows = [measured(job, checkout) for _ in range(ROUNDS)]
        seconds, memory = min(row[0] for row in rows), max(row[1] for row in rows)
        base = base or seconds
        print(f"{job:<14} {seconds:6.2f} s CPU  {memory:6.0f} MB  {seconds / base:5.2f} times the parsing")


if __name__ == "__main__":
    main()
