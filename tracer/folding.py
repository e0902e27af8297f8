"""Which definitions are alternatives of one another, and what to call several of them."""

from __future__ import annotations

import os.path
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tracer.model import Definition, Edge, Language

if TYPE_CHECKING:
    from tracer.route import Route


def fold(definitions: Mapping[str, Definition], calls: Sequence[Edge], route: Route | None) -> dict[str, str]:
    """Sort definitions into groups of alternatives.

    Alternatives are what the route names as such, the explicit specializations of one template, and the definitions of
    one file whose names differ in numbers only and that the same groups call.

    Args:
        definitions: by id.
        calls: between them.
        route: of which no two steps may end in one group.

    Returns:
        For each id, that of the definition that stands for its group.
    """
    group = {key: key for key in definitions}
    steps: set[str] = set()
    if route:
        steps = {step.definition.id for step in route.steps}
        taken = set(steps)
        for step in route.steps:
            for alternative in step.alternatives:
                if alternative.id not in taken:
                    taken.add(alternative.id)
                    group[alternative.id] = step.definition.id
    same: dict[tuple[Language, str], list[str]] = defaultdict(list)
    for key, definition in definitions.items():
        if definition.template_arguments and group[key] == key and key not in steps:
            same[definition.language, bare(definition.qualified_name)].append(key)
    for keys in same.values():
        _join(group, keys, definitions)
    while _fold_siblings(group, definitions, calls, steps):
        pass
    return group


def _fold_siblings(
    group: dict[str, str], definitions: Mapping[str, Definition], calls: Sequence[Edge], steps: set[str]
) -> bool:
    callers: dict[str, set[str]] = defaultdict(set)
    for call in calls:
        if group[call.source] != group[call.target]:
            callers[group[call.target]].add(group[call.source])
    same: dict[tuple[str, str, str, frozenset[str]], list[str]] = defaultdict(list)
    for key in set(group.values()) - steps:
        definition = definitions[key]
        if callers[key]:
            name = re.sub(r"\d+", "#", bare(definition.qualified_name))
            same[definition.location.file, definition.kind, name, frozenset(callers[key])].append(key)
    joined = [keys for keys in same.values() if len(keys) > 1]
    for keys in joined:
        _join(group, keys, definitions)
    return bool(joined)


def _join(group: dict[str, str], keys: Sequence[str], definitions: Mapping[str, Definition]) -> None:
    first = min(keys, key=lambda key: natural(definitions[key]))
    joined = set(keys)
    for key, representative in group.items():
        if representative in joined:
            group[key] = first


def folded_place(members: Sequence[Definition]) -> str:
    """Say where alternatives stand: ``24 specializations in 24 .cu files``, or the first place followed by ``…``."""
    files = sorted({member.location.file for member in members})
    first = min(members, key=lambda member: (member.location.file, member.location.line))
    if len(members) == 1:
        return str(first.location)
    if len(files) == 1:
        return f"{first.location}…"
    kinds = {member.kind for member in members}
    kind = f"{kinds.pop()}s" if len(kinds) == 1 else "definitions"
    endings = {os.path.splitext(file)[1] for file in files}
    ending = f"{endings.pop()} " if len(endings) == 1 else ""
    return f"{len(members)} {kind} in {len(files)} {ending}files"


def label(members: Sequence[Definition]) -> str:
    """Return a short name for alternatives: what their names share, and how they differ.

    A method has its class before it, which by its capital letter is told from a namespace.
    """
    first = members[0]
    separator = "." if first.language is Language.PYTHON else "::"
    parts = bare(first.qualified_name).split(separator)
    inside = parts[-2] if len(parts) > 1 else ""
    if first.language is Language.PYTHON:
        shown = inside if first.kind == "method" else ""
    else:
        shown = inside if inside[:1].isupper() and not inside.isupper() and inside != parts[-1] else ""
    front = f"{shown}{separator}" if shown else ""
    name = front + (parts[-1] if first.language is not Language.BINDING else first.qualified_name)
    if first.template_arguments:
        return f"{name}<{'…' if len(members) > 1 else ', '.join(first.template_arguments)}>"
    names = sorted({member.name for member in members}, key=_numbers)
    if len(names) == 1:
        return name
    low, high = names[0], names[-1]
    begin = re.sub(r"\d+$", "", os.path.commonprefix([low, high]))
    end = _common_end(low[len(begin) :], high[len(begin) :])
    differing = [text[len(begin) : len(text) - len(end)] for text in (low, high)]
    return f"{front}{begin}{{{differing[0]}…{differing[1]}}}{end}"


def _common_end(one: str, other: str) -> str:
    """Return the end that two texts share, which may not begin inside a number."""
    end = os.path.commonprefix([one[::-1], other[::-1]])[::-1]
    return end.lstrip("0123456789")


def shared_file(files: Sequence[str]) -> str:
    """Name several files by what their paths share, ``src/flash_fwd_hdim….cu``."""
    if len(files) == 1:
        return files[0]
    front = re.sub(r"\d+$", "", os.path.commonprefix(list(files)))
    back = _common_end(files[0][len(front) :], files[-1][len(front) :])
    for file in files:
        back = _common_end(back, file[len(front) :])
    return f"{front}…{back}"


def bare(qualified_name: str) -> str:
    """Return a qualified name without template arguments."""
    if re.search(r"operator\s*[<>-]", qualified_name):
        return qualified_name
    depth, kept = 0, []
    for character in qualified_name:
        if character == "<":
            depth += 1
        elif character == ">" and depth:
            depth -= 1
        elif not depth:
            kept.append(character)
    return "".join(kept)


def _numbers(name: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"([0-9]+)", name)]


def natural(definition: Definition) -> tuple[object, ...]:
    """Return a key that sorts definitions by place."""
    place = definition.location
    return place.file, place.line, place.column, definition.qualified_name, definition.id
