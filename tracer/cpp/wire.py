"""Messages between the tracer and its parser processes, and the same data as the cache keeps it.

``marshal`` carries tuples, numbers and strings only: reading a message or a cache file can never run code.
"""

from __future__ import annotations

import marshal
from dataclasses import fields
from functools import cache
from typing import IO, Any

from tracer.cpp.facts import BindingFact, BodyFact, CallFact, FoundFact, FunctionFact, OutlineFact
from tracer.cpp.tree import Class, Declaration, Node, Tables, TypeRef, from_plain, to_plain

_LENGTH_BYTES = 8


def plain(value: Any) -> Any:
    """Turn facts into nested tuples."""
    kind = value.__class__
    if kind in _ATOMS:
        return value
    if kind is tuple or kind is list:
        return tuple([item if item.__class__ in _ATOMS else plain(item) for item in value])
    if kind is dict:
        return {key: plain(item) for key, item in value.items()}
    return tuple([plain(getattr(value, name)) for name in _names_of(kind)])


_ATOMS = frozenset((str, int, bool, float, type(None)))


@cache
def _names_of(kind: Any) -> tuple[str, ...]:
    return tuple([field.name for field in fields(kind)])


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
    calls, does, assigns, exchanged = data
    return BodyFact(
        tuple(
            [
                CallFact(written, place, outcome, tuple([FoundFact(*f) for f in found]), reason, condition)
                for written, place, outcome, found, reason, condition in calls
            ]
        ),
        does,
        assigns,
        exchanged,
    )


def plain_tables(tables: Tables) -> Any:
    """Turn a unit's tables into nested tuples."""
    constants = [node for class_ in tables.classes.values() for _, node in class_.constants]
    classes = [
        (
            class_.declaration.usr, class_.template_parameters, plain(class_.bases), plain(class_.fields),
            plain(class_.aliases), class_.methods, tuple([name for name, _ in class_.constants]),
            plain(class_.constant_types),
        )
        for class_ in tables.classes.values()
    ]  # fmt: skip
    return (
        tables.files, plain(tuple(tables.declarations.values())), tuple(classes), to_plain(constants),
        plain(tables.aliases), tuple(sorted(tables.templates)),
        tuple([(usr, to_plain(nodes)) for usr, nodes in tables.template_parameters.items()]),
        plain(tables.results),
    )  # fmt: skip


def joined_tables(older: Any, newer: Any) -> Any:
    """Return a unit's tables as ``newer`` has them, with the declarations that only ``older`` knows."""
    if older is None:
        return newer
    known = {row[0] for row in newer[1]}
    return (newer[0], (*newer[1], *(row for row in older[1] if row[0] not in known)), *newer[2:])


def with_declarations(data: Any, rows: Any) -> Any:
    """Return a unit's tables in plain form with more declarations."""
    known = {row[0] for row in data[1]}
    return (data[0], (*data[1], *(row for row in rows if row[0] not in known)), *data[2:])


def tables(data: Any) -> Tables:
    """Rebuild a unit's tables."""
    files, plain_declarations, plain_classes, plain_constants, aliases, templates, template_parameters, results = data
    declarations = {row[0]: Declaration(*row) for row in plain_declarations}
    constants: list[Node] = list(from_plain(plain_constants))
    classes: dict[str, Class] = {}
    for usr, parameters, bases, fields_, class_aliases, methods, constant_names, constant_types in plain_classes:
        own, constants = constants[: len(constant_names)], constants[len(constant_names) :]
        classes[usr] = Class(
            declarations[usr],
            parameters,
            tuple([TypeRef(*base) for base in bases]),
            tuple([(name, TypeRef(*type_)) for name, type_ in fields_]),
            tuple([(name, TypeRef(*type_)) for name, type_ in class_aliases]),
            methods,
            tuple(zip(constant_names, own, strict=True)),
            tuple([TypeRef(*type_) for type_ in constant_types]),
        )
    return Tables(
        files,
        declarations,
        classes,
        tuple([(name, TypeRef(*type_)) for name, type_ in aliases]),
        frozenset(templates),
        {usr: from_plain(nodes) for usr, nodes in template_parameters},
        {usr: TypeRef(*type_) for usr, type_ in results.items()},
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
