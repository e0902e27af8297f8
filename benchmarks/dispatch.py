"""Kernel answers: the first of a release, a further one from the cache, and the recorded calls in one process.

Times of whole processes start with the interpreter. The recorded calls are measured in processor time on one core,
because the machine may run other people's work.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.measure import Timing, in_turn, ratio
from tracer.checkout import open_checkout

ROUNDS = 7
VERSION = "2.8.3"
RECORDED = Path(__file__).parents[1] / "tests" / "data" / "dispatch.jsonl.gz"
_ONE = """
import sys
from tracer.checkout import open_checkout
from tracer.dispatch import Question, device, predict_question
from tracer.graph import Program
from tracer.render import kernel_text
with Program(open_checkout(sys.argv[1]), cache=sys.argv[2] == "cache") as program:
    question = Question(batch=1, heads=12, seqlen_q=512, head_dim=64)
    answer = predict_question(program, question, device("A100"), explain=True)
    print(kernel_text.answer(answer, color=False, width=120))
"""


def main() -> None:
    root = str(open_checkout(f"pypi:{VERSION}").root)
    one = [sys.executable, "-c", _ONE, root]
    with tempfile.TemporaryDirectory() as folder:
        kept = {"FLASHTRACER_CACHE": folder}
        cold, cached = Timing(f"kernel {VERSION}, cold"), Timing(f"kernel {VERSION}, cached")
        in_turn(ROUNDS, (cold, [*one, "no"], kept), (cached, [*one, "cache"], kept))
    print(cold, "  aim: at most 600 ms wall")
    print(cached, "  aim: at most 300 ms wall")
    print(f"cached / cold   {ratio(cached, cold)}")
    _recorded()


def _recorded() -> None:
    from tracer.dispatch import answer_calls
    from tracer.graph import Program

    with gzip.open(RECORDED, "rt", encoding="utf-8") as lines:
        calls = [json.loads(line) for line in lines]
    began = _processor_seconds()
    clock = time.perf_counter()
    right = 0
    for version in sorted({call["release"] for call in calls}):
        asked = [call for call in calls if call["release"] == version]
        with Program(open_checkout(f"pypi:{version}")) as program:
            answers = list(answer_calls(program, map(json.dumps, asked)))
        for call, answer in zip(asked, answers, strict=True):
            right += answer == {key: call[key] for key in ("launches", "error") if key in call}
    spent = _processor_seconds() - began
    print(
        f"{len(calls)} recorded calls: {right} right, {spent:.2f} s of processor time "
        f"({spent / len(calls) * 1000:.2f} ms a call, parsing included), {time.perf_counter() - clock:.2f} s wall   "
        "aim: at most 20 s on one core"
    )


def _processor_seconds() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system
