"""Messages between the tracer and its parser processes, and the same data as the cache keeps it.

``marshal`` carries tuples, numbers and strings only: reading a message or a cache file can never run code.
"""

from __future__ import annotations

import marshal
from dataclasses import fields, is_dataclass
from typing import IO, Any

from tracer.cpp.facts import BindingFact, BodyFact, CallFact, FoundFact, FunctionFact, OutlineFact

_LENGTH_BYTES = 8


def plain(value: Any) -> Any:
    """Turn facts into nested tuples."""
    if is_dataclass(value):
        return tuple([plain(getattr(value, field.name)) for field in fields(value)])
    if isinstance(value, tuple | list):
        return tuple([plain(item) for item in value])
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return value


def outline(data: Any) -> OutlineFact:
    """Rebuild an outline."""
    files, functions, bindings, instantiations, errors = data
    return OutlineFact(
        files,
        tuple([FunctionFact(*row) for row in functions]),
        tuple([BindingFact(*row) for row in bindings]),
        instantiations,
        errors,
    )


def body(data: Any) -> BodyFact:
    """Rebuild the facts of one body."""
    calls, does = data
    return BodyFact(
        tuple(
            [
                CallFact(written, place, outcome, tuple([FoundFact(*f) for f in found]), reason, condition)
                for written, place, outcome, found, reason, condition in calls
            ]
        ),
        does,
    )


def send(stream: IO[bytes], message: Any) -> None:
    """Write one message."""
    data = marshal.dumps(message)
    stream.write(len(data).to_bytes(_LENGTH_BYTES, "little"))
    stream.write(data)
    stream.flush()


def receive(stream: IO[bytes]) -> Any:
    """Read one message.

    Raises:
        EOFError: the other side is gone.
    """
    head = stream.read(_LENGTH_BYTES)
    if len(head) < _LENGTH_BYTES:
        raise EOFError
    size = int.from_bytes(head, "little")
    data = stream.read(size)
    if len(data) < size:
        raise EOFError
    return marshal.loads(data)
