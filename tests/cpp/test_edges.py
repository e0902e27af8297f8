"""Precision and recall of C++ and CUDA call edges on real releases, against lists read off their source by hand.

A list has every function of the forward and the backward route with all its calls that stay in the checkout: the line
of the callee's name and, in ``at``, every definition that the call can reach — the explicit specializations of a
template are several. ``also`` has definitions that the code at the call does not rule out, but the rest of the checkout
does: they are neither demanded nor held against the tracer. ``"kind": "constructor"`` marks objects made with
arguments. A call of a local lambda is none: its body belongs to the function around it.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.releases import release
from tracer.checkout import open_checkout
from tracer.graph import Program
from tracer.model import CallSite, Confidence, Definition, How

LISTS = sorted((Path(__file__).parent.parent / "data" / "cpp_edges").glob("*.json"))
# In the first release the types of tiles come out of a traits class, and overloads differ in the types of their
# arguments: a site that names several candidates and calls itself ambiguous will do there, if the right one is among
# them.
SEVERAL_CANDIDATES_WILL_DO = ("1.0.9",)

each_list = pytest.mark.parametrize("path", LISTS, ids=lambda path: path.stem)


@dataclass(frozen=True, slots=True, order=True)
class Edge:
    """One call that stays in the checkout: from a function, at a line, to a definition's ``file:line``."""

    caller: str
    line: int
    callee: str
    at: str

    def __str__(self) -> str:
        return f"{self.caller}, line {self.line}, to {self.callee} at {self.at}"


@dataclass(frozen=True, slots=True)
class Count:
    """How many edges a reader found, which of them the tracer lacks, and which it has beyond them."""

    expected: int = 0
    missing: tuple[Edge, ...] = ()
    extra: tuple[Edge, ...] = ()

    @property
    def right(self) -> int:
        return self.expected - len(self.missing)

    @property
    def precision(self) -> float:
        return self.right / (self.right + len(self.extra)) if self.right or self.extra else 1.0

    @property
    def recall(self) -> float:
        return self.right / self.expected if self.expected else 1.0

    def __add__(self, other: Count) -> Count:
        return Count(self.expected + other.expected, self.missing + other.missing, self.extra + other.extra)


def root_of(data: dict[str, Any]) -> Path:
    """Return the folder of a list's checkout; what is no release is where the environment says, or the test skips."""
    if "release" in data:
        return release(data["release"])
    if not os.environ.get(data["checkout"]):
        pytest.skip(f"{data['checkout']} names no folder with commit {data['commit']}")
    return Path(os.environ[data["checkout"]])


def caller_of(program: Program, caller: dict[str, Any]) -> Definition:
    extension = program.attention_extension()
    assert extension is not None
    named = [d for d in program.source(extension).definitions() if d.name == caller["name"]]
    found = [d for d in named if str(d.location) == caller["at"]]
    if len(found) != 1:
        places = ", ".join(str(d.location) for d in named) or "nowhere"
        pytest.fail(f"{caller['name']} is defined at {caller['at']}; the tracer finds it {places}", pytrace=False)
    return found[0]


def edges_of(program: Program, caller: str, site: CallSite) -> set[Edge]:
    """Return the edges of one call site; naming a kernel without launching it is no call."""
    callees = [program.definition(target.id) for target in site.targets if target.how is not How.KERNEL_POINTER]
    return {Edge(caller, site.location.line, callee.name, str(callee.location)) for callee in callees}


def compare(program: Program, caller: dict[str, Any], several_will_do: bool) -> Count:
    """Compare the edges that leave one function with its list."""
    name = caller["name"]
    expected = {Edge(name, call["line"], call["callee"], at) for call in caller["calls"] for at in call["at"]}
    allowed = {Edge(name, call["line"], call["callee"], at) for call in caller["calls"] for at in call.get("also", ())}
    reported: set[Edge] = set()
    for site in program.call_sites(caller_of(program, caller).id):
        edges = edges_of(program, name, site)
        if several_will_do and all(target.confidence is Confidence.AMBIGUOUS for target in site.targets):
            edges = edges & expected or edges
        reported |= edges
    missing, extra = expected - reported, reported - expected - allowed
    return Count(len(expected), tuple(sorted(missing)), tuple(sorted(extra)))


def table(title: str, counts: dict[str, Count]) -> str:
    rows = [f"{title:<80} {'edges':>5} {'precision':>9} {'recall':>6}"]
    rows += [f"{name:<80} {c.expected:>5} {c.precision:>9.3f} {c.recall:>6.3f}" for name, c in counts.items()]
    return "\n".join(rows)


@each_list
def test_edges_of_the_routes_functions(path: Path) -> None:
    data = json.loads(path.read_text())
    with Program(open_checkout(str(root_of(data))), cache=False) as program:
        counts = {
            f"{caller['name']} {caller['at'].rpartition('/')[2]}": compare(
                program, caller, path.stem in SEVERAL_CANDIDATES_WILL_DO
            )
            for caller in data["callers"]
        }
    total = sum(counts.values(), Count())
    wrong = "\n".join([f"missing: {edge}" for edge in total.missing] + [f"extra: {edge}" for edge in total.extra])
    print(table(path.stem, {**counts, "all": total}), wrong, sep="\n")
    precision, recall = total.precision, total.recall
    assert precision == 1.0, wrong
    assert recall >= 0.99, wrong


@each_list
def test_the_lists_name_what_stands_in_the_source(path: Path) -> None:
    data = json.loads(path.read_text())
    root = root_of(data)
    lines: dict[str, list[str]] = {}

    def text(file: str, line: int) -> str:
        if file not in lines:
            lines[file] = (root / file).read_text(encoding="utf-8").splitlines()
        return lines[file][line - 1]

    wrong = []
    for caller in data["callers"]:
        named = [(caller["name"], caller["at"])]
        named += [(call["callee"], at) for call in caller["calls"] for at in (*call["at"], *call.get("also", ()))]
        for name, at in named:
            file, _, line = at.rpartition(":")
            if f"{name}(" not in (found := text(file, int(line)).replace(f"({name},", f"{name}(")):
                wrong += [] if f"{name}<" in found else [f"{name} is not at {at}"]
    assert sum(len(caller["calls"]) for caller in data["callers"]) > 150
    assert wrong == []
