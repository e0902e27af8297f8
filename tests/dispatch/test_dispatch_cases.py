"""The behaviour of the dispatch room, one case per folder of ``tests/cases/2NN-dispatch-…``.

A case is a small extension: ``api.cpp`` and ``kernel.cu``, with their headers. ``expected.json`` has calls in the form
of ``--calls``, on an A100 unless ``gpu`` names another, each with its answer: of ``launches`` the fields that the case
is about, of ``unsupported`` a part of the construct; place and ``error`` whole.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tracer.checkout import open_checkout
from tracer.dispatch import Argument, Call, Dispatcher, Tensor, Unsupported, device, prediction_record
from tracer.graph import Program

CASES = sorted((Path(__file__).parents[1] / "cases").glob("2*-dispatch-*"))


def argument(value: Any) -> Argument:
    if not isinstance(value, dict):
        return value  # type: ignore[no-any-return]
    stride, contents = value.get("stride"), value.get("contents")
    return Tensor(
        tuple(value["shape"]), value["dtype"], tuple(stride) if stride else None, value.get("device", "cuda:0"),
        tuple(contents) if contents else None,
    )  # fmt: skip


def answered(dispatcher: Dispatcher, call: dict[str, Any]) -> dict[str, Any]:
    arguments = {name: argument(value) for name, value in call["arguments"].items()}
    try:
        prediction = dispatcher.predict(Call(call["entry"], arguments), device(call.get("gpu", "A100")))
    except Unsupported as error:
        assert error.location is not None
        return {"unsupported": {"construct": error.construct, "file": error.location.file, "line": error.location.line}}
    record = prediction_record(prediction)
    launches = {launch.symbol: launch for launch in prediction.launches}
    for row in record.get("launches", ()):
        launch = launches.get(row["symbol"])
        if launch is not None:
            row |= {
                "kernel": launch.kernel,
                "template_arguments": dict(launch.template_arguments),
                "traits": dict(launch.traits),
            }
    return record


def only_what_is_expected(found: Any, expected: Any) -> Any:
    """Leave out of ``found`` what the case says nothing about."""
    if isinstance(expected, dict) and isinstance(found, dict):
        kept = {key: only_what_is_expected(found[key], value) for key, value in expected.items() if key in found}
        if set(expected) <= {"construct", "file", "line"} and expected.get("construct", "") in found.get(
            "construct", ""
        ):
            kept["construct"] = expected["construct"]
        return kept if kept or not found else found
    if isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        return [only_what_is_expected(one, other) for one, other in zip(found, expected, strict=True)]
    return found


@pytest.mark.parametrize("folder", CASES, ids=lambda folder: folder.name)
def test_case(folder: Path, checkout_with: Callable[..., Path], own_cache: Path) -> None:
    assert (folder / "README").read_text(encoding="utf-8").strip()
    files = {
        f"csrc/tiny/{f.name}": f.read_text(encoding="utf-8")
        for f in folder.iterdir()
        if f.suffix in (".cpp", ".cu", ".h")
    }
    calls = json.loads((folder / "expected.json").read_text(encoding="utf-8"))["calls"]
    with Program(open_checkout(str(checkout_with(files)))) as program:
        dispatcher = Dispatcher(program)
        for number, call in enumerate(calls):
            found = answered(dispatcher, call)
            assert only_what_is_expected(found, call["answer"]) == call["answer"], f"call {number}: {found}"


def test_there_are_cases() -> None:
    assert len(CASES) >= 10
