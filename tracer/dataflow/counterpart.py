"""What the reference kernel comes to under each listing: kept beside the code, as it depends on no checkout.

The file is written by ``make reports``, and a test compares it with what the reference kernel comes to now. Where the
sources of the reference kernel or the listings are not those that it was made of, the reference is followed instead.
"""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache
from pathlib import Path
from typing import Any

from tracer.dataflow.diagnose import Finding
from tracer.dataflow.reference import Reference
from tracer.dataflow.sides import LISTINGS, RUNGS, reference_side
from tracer.dataflow.variables import Holding, Variable, variables_of
from tracer.model import Location
from tracer.records import dataclass

KEPT = Path(__file__).with_name("counterparts.json")
_LISTINGS = Path(__file__).parent / "paper"


@dataclass(frozen=True, slots=True)
class Counterpart:
    """The reference's kernel beside a listing.

    Attributes:
        steps: of each step of the listing, in its order, the verdict and where the kernel computes it.
        findings: what is wrong, with the title of the step that it concerns.
        variables: of each symbol of the listing, the variables that hold it.
    """

    steps: tuple[tuple[str, Location | None], ...]
    findings: tuple[tuple[str, Finding], ...]
    variables: dict[str, tuple[Variable, ...]]


def counterpart(reference: Reference, name: str) -> Counterpart | None:
    """Return what the reference's kernel for a listing comes to; None where the reference has no such kernel."""
    if name not in RUNGS:
        return None
    made_of, kept = _kept()
    if name in kept and made_of == digest(reference):
        return kept[name]
    return followed(reference, name)


def followed(reference: Reference, name: str) -> Counterpart | None:
    """Follow the reference's kernel for a listing; None where the reference has no such kernel."""
    side = reference_side(reference, name)
    if side is None:
        return None
    comparison = side.comparison
    return Counterpart(
        tuple([(side.verdict(step), side.place(step)) for step in comparison.steps.all]),
        side.titled_findings(),
        {symbol.name: variables_of(side, symbol.name) for symbol in comparison.listing.symbols},
    )


def digest(reference: Reference) -> str:
    """Return a hash of the reference's sources and of the listings, whatever the line ends are."""
    found = hashlib.sha256()
    for file in [*reference.files(), *sorted(_LISTINGS.glob("*.py"))]:
        text = file.read_text(encoding="utf-8")  # all line ends become one
        found.update(f"{file.name}\0{len(text)}\0{text}".encode())
    return found.hexdigest()


# -- the file ---------------------------------------------------------------------------------------------------------
def as_text(reference: Reference) -> str:
    """Return the contents of the file for a reference in which nothing is wrong."""
    found = {name: followed(reference, name) for name in LISTINGS.values() if name in RUNGS}
    data = {
        "made_of": digest(reference),
        "counterparts": {name: _plain(one) for name, one in found.items() if one is not None and not one.findings},
    }
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"


@lru_cache(maxsize=1)
def _kept() -> tuple[str, dict[str, Counterpart]]:
    """Return what the file was made of and what it holds; nothing where it cannot be read."""
    try:
        data = json.loads(KEPT.read_text(encoding="utf-8"))
        return data["made_of"], {name: _from_plain(one) for name, one in data["counterparts"].items()}
    except (OSError, ValueError, KeyError, TypeError):
        return "", {}


def _plain(one: Counterpart) -> dict[str, Any]:
    return {
        "steps": [[verdict, _place(location)] for verdict, location in one.steps],
        "variables": {
            symbol: [
                {
                    "name": variable.name,
                    "qualified_name": variable.qualified_name,
                    "declared": _place(variable.location),
                    "storage": variable.storage,
                    "form": variable.form,
                    "is_view": variable.is_view,
                    "holds": [[_place(h.at), _place(h.until), h.operation] for h in variable.holds],
                }
                for variable in variables
            ]
            for symbol, variables in one.variables.items()
        },
    }


def _from_plain(data: dict[str, Any]) -> Counterpart:
    variables = {
        symbol: tuple(
            [
                Variable(
                    v["name"], v["qualified_name"], _at(v["declared"]), v["storage"], v["form"], v["is_view"],
                    tuple([Holding(_at(at), _location(until), made) for at, until, made in v["holds"]]),
                )
                for v in found
            ]
        )
        for symbol, found in data["variables"].items()
    }  # fmt: skip
    return Counterpart(tuple([(verdict, _location(place)) for verdict, place in data["steps"]]), (), variables)


def _place(location: Location | None) -> str:
    return "" if location is None else f"{location.file}:{location.line}:{location.column}:{location.end_line}"


def _location(place: str) -> Location | None:
    return _at(place) if place else None


def _at(place: str) -> Location:
    file, line, column, end_line = place.rsplit(":", 3)
    return Location(file, int(line), int(column), int(end_line))
