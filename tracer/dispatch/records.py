"""Calls and answers as lines of JSON: one question a line, one answer a line.

A question is ``{"entry": …, "device": {…}, "arguments": {…}}``; tensors are ``{"shape", "stride", "dtype", "device"}``,
with ``contents`` where the call fixes the numbers in them.
An answer has ``launches``, or ``error`` with message and place, or ``unsupported`` with construct and place.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from tracer.dispatch.answers import Argument, Call, Device, Prediction, Tensor, Unsupported
from tracer.dispatch.query import Dispatcher
from tracer.errors import TracerError
from tracer.graph import Program
from tracer.model import Location


def answer_calls(
    program: Program, lines: Iterable[str], *, defines: Iterable[str] = (), cache: bool = True
) -> Iterator[dict[str, Any]]:
    """Answer one call a line.

    Args:
        program: the checkout.
        lines: JSON objects; empty lines are passed over.
        defines: macros of another build than setup.py's.
        cache: keep what such a build was read as.

    Yields:
        One answer a call, ready for ``json.dumps``.

    Raises:
        TracerError: a line is no such question; the message has its number. A question that this version cannot be
            asked, for an entry or a parameter that it does not have, is answered as unsupported.
    """
    dispatcher = Dispatcher(program, defines=defines, cache=cache)
    try:
        for number, line in enumerate(lines, 1):
            if line.strip():
                yield _answered(dispatcher, line, number)
    finally:
        dispatcher.close()


def _answered(dispatcher: Dispatcher, line: str, number: int) -> dict[str, Any]:
    try:
        question = json.loads(line)
        call = Call(str(question["entry"]), {name: _argument(v) for name, v in question["arguments"].items()})
        device = _device(question["device"], str(question.get("gpu", "")))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise TracerError(
            f"line {number} is no call ({error}); a call is an object with entry, device and arguments"
        ) from None
    try:
        return prediction_record(dispatcher.predict(call, device))
    except Unsupported as error:
        return {"unsupported": {"construct": error.construct, **_place(error.location)}}
    except TracerError as error:  # an entry or a parameter that this version does not have
        return {"unsupported": {"construct": str(error), **_place(None)}}


def prediction_record(prediction: Prediction) -> dict[str, Any]:
    """Return an answer in the form of the lines.

    Library operators that write to a tensor in place are among the launches, under their own names and without a grid,
    because a profiler shows a kernel for them too.
    """
    if prediction.error is not None:
        return {"error": {"message": prediction.error.message, **_place(prediction.error.location)}}
    launches: list[dict[str, Any]] = [
        {
            "symbol": launch.symbol,
            "grid": list(launch.grid),
            "block": list(launch.block),
            "shared_memory_bytes": launch.shared_memory_bytes,
        }
        for launch in prediction.launches
    ]
    for operator in reversed(prediction.operators):
        if operator.name.endswith("_"):
            record = {"symbol": operator.name, "grid": [1, 1, 1], "block": [1, 1, 1], "shared_memory_bytes": 0}
            launches.insert(operator.launches_before, record)
    return {"launches": launches}


def _place(location: Location | None) -> dict[str, Any]:
    return {"file": location.file, "line": location.line} if location else {"file": "", "line": 0}


def _argument(value: Any) -> Argument:
    if not isinstance(value, dict):
        if value is None or isinstance(value, int | float | bool):
            return value
        raise ValueError(f"an argument is {value!r}")
    stride, contents = value.get("stride"), value.get("contents")
    return Tensor(
        tuple(map(int, value["shape"])),
        str(value["dtype"]),
        None if stride is None else tuple(map(int, stride)),
        str(value.get("device") or "cuda:0"),
        None if contents is None else tuple(map(int, contents)),
    )


def _device(value: dict[str, Any], name: str) -> Device:
    return Device(
        name or "the device",
        int(value["major"]),
        int(value["minor"]),
        int(value["sm_count"]),
        int(value["shared_memory_per_sm"]),
        int(value["shared_memory_per_block_optin"]),
    )
