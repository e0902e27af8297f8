"""What the real host code did: launches and refusals recorded from compiled releases, call by call."""

from __future__ import annotations

import gzip
import json
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from tests.releases import release_checkout
from tracer.dispatch import answer_calls
from tracer.errors import TracerError
from tracer.graph import Program

RECORDED = Path(__file__).parents[1] / "data" / "dispatch.jsonl.gz"
ENTRIES = ["mha_fwd", "mha_varlen_fwd", "mha_fwd_kvcache"]


@lru_cache(maxsize=1)
def recorded() -> tuple[dict[str, Any], ...]:
    with gzip.open(RECORDED, "rt", encoding="utf-8") as lines:
        return tuple(json.loads(line) for line in lines)


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("version", ["2.8.3", "2.6.3"])
def test_every_recorded_call_is_answered_as_the_real_host_code_does(version: str, entry: str) -> None:
    calls = [call for call in recorded() if call["release"] == version and call["entry"] == entry]
    assert calls
    with Program(release_checkout(version)) as program:
        answers = list(answer_calls(program, (json.dumps(call) for call in calls)))
    wrong = []
    for call, answer in zip(calls, answers, strict=True):
        expected = {key: call[key] for key in ("launches", "error") if key in call}
        if answer != expected:
            wrong.append((call["gpu"], call["arguments"], expected, answer))
    assert not wrong, f"{len(wrong)} of {len(calls)} differ, the first: {wrong[0]}"


def test_the_recorded_calls_cover_launches_refusals_and_library_operators() -> None:
    symbols = {launch["symbol"] for call in recorded() for launch in call.get("launches", ())}
    assert len(recorded()) == 1150
    assert any("splitkv_combine" in symbol for symbol in symbols)
    assert {"aten::fill_", "aten::zero_"} <= symbols
    assert sum("error" in call for call in recorded()) > 300


def test_what_cannot_be_asked_is_answered_line_by_line() -> None:
    call = recorded()[0]
    unknown = {**call, "entry": "mha_fwd_of_tomorrow"}
    extra = {**call, "arguments": {**call["arguments"], "tomorrow": 1}}
    with Program(release_checkout("2.8.3")) as program:
        lines = ["", *map(json.dumps, (unknown, extra, call))]
        first, second, third = answer_calls(program, lines)
        with pytest.raises(TracerError, match="line 2 is no call"):
            list(answer_calls(program, [json.dumps(call), "{}"]))
    assert "no entry named 'mha_fwd_of_tomorrow'" in first["unsupported"]["construct"]
    assert "no parameter named 'tomorrow'" in second["unsupported"]["construct"]
    assert third == {"launches": call["launches"]}
