"""Tiles that are read from, or written to, another place than theirs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.dataflow.mutants import Change, Subject, Subjects, changed
from tracer.cpp.tree import walk
from tracer.dataflow.addresses import Step
from tracer.dataflow.ir import Value
from tracer.dataflow.match import main_loops
from tracer.dataflow.names import plain
from tracer.dataflow.roles import RoleFinder
from tracer.dataflow.tiles import Access, accesses_of, free_flags


def accesses(s: Subject, symbol: str) -> list[Access]:
    found, _ = accesses_of(s.side.comparison, main_loops(s.side.comparison.kernel))
    return [access for access in found if access.symbol == symbol]


def moves(s: Subject, symbol: str) -> list[Step]:
    walks = {id(walk): walk for access in accesses(s, symbol) for walk, _ in access.address.walks}
    loops = main_loops(s.side.comparison.kernel)
    return [move for walk in walks.values() if walk.loop in loops for move in walk.moves]


def stays(symbol: str) -> Change:
    """The statements that move a pointer, all of them, move it by nothing."""

    def change(s: Subject) -> None:
        for move in moves(s, symbol):
            s.replace(move.index.site, "0")

    return change


def stays_at(symbol: str, number: int) -> Change:
    def change(s: Subject) -> None:
        s.replace(moves(s, symbol)[number].index.site, "0")

    return change


def goes_back(symbol: str) -> Change:
    def change(s: Subject) -> None:
        for move in moves(s, symbol):
            s.replace(move.index.site, f"(-({s.text(move.index.site)}))")

    return change


def coordinate_one_off(symbol: str) -> Change:
    """The number of a tile that is cut out of a tensor is one more."""

    def change(s: Subject) -> None:
        match = s.side.comparison.match
        name = match.inputs.get(symbol) or match.outputs[symbol]
        assert name is not None
        for _, coordinates, (id, call) in s.kernel.inputs[name].tiles:
            if coordinates and coordinates[0] is not None:
                written = (id, call.children[3].children[1])
                s.replace(written, f"{s.text(written)} + 1")

    return change


def products_with_rows(s: Subject, access: Access) -> list[Value]:
    """Return the products of an offset in which a number of rows is multiplied with the stride of the rows."""
    assert access.address.rows is not None
    stride = plain(s.kernel.tuples[plain(access.address.rows.strides).number][0])
    waiting = [step.index for step in access.address.steps if step.mode is None]
    found: dict[int, Value] = {}
    seen: set[int] = set()
    while waiting:
        value = plain(waiting.pop())
        if value.number in seen:
            continue
        seen.add(value.number)
        waiting += value.args
        if value.op == "mul" and plain(value.args[1]) is stride and plain(value.args[0]).op == "mul":
            found[value.number] = value
    return list(found.values())


def rows_one_apart(symbol: str) -> Change:
    """The offset of a tile leaves out the stride of the tensor's rows."""

    def change(s: Subject) -> None:
        for access in accesses(s, symbol):
            for product in products_with_rows(s, access):
                s.replace(product.site, s.child(product.site, 0))

    return change


def offset_one_tile_on(symbol: str) -> Change:
    def change(s: Subject) -> None:
        for access in accesses(s, symbol):
            for product in products_with_rows(s, access):
                inner = plain(product.args[0]).site
                s.replace(inner, f"({s.child(inner, 0)} + 1) * {s.child(inner, 1)}")

    return change


def rows_left_out(symbol: str) -> Change:
    """The offset of a tile is that of the first."""

    def change(s: Subject) -> None:
        for access in accesses(s, symbol):
            for product in products_with_rows(s, access):
                s.replace(product.site, "0")

    return change


NO_ROW = "a place that is no row of it"
FAULTS: dict[str, tuple[str, str, Change, str]] = {
    "Q of another tile": ("2.8.3", "forward", coordinate_one_off("Q"), "Q is read from row 64, while tile 0"),
    "O to another tile": ("2.8.3", "forward", coordinate_one_off("O"), "O is written to row 64, while tile 0"),
    "L to another tile": ("2.8.3", "forward", coordinate_one_off("L"), "L is written to row 64, while tile 0"),
    "split: K stays": ("2.8.3", "split", stays("K"), "K is read from row"),
    "split: V goes back": ("2.8.3", "split", goes_back("V"), "V is read from row"),
    "split: O to another tile": ("2.8.3", "split", offset_one_tile_on("O"), "O is written to row 64, while tile 0"),
    "split: K with another stride": ("2.8.3", "split", rows_one_apart("K"), NO_ROW),
    "2.0: K stays": ("2.0.0.post1", "forward", stays("K"), "K is read from row 128, while tile 3, from row 96 on"),
    "2.0: V goes back": ("2.0.0.post1", "forward", goes_back("V"), "V is read from row"),
    "2.0: Q with another stride": ("2.0.0.post1", "forward", rows_one_apart("Q"), NO_ROW),
    "backward: Q stays": ("2.8.3", "backward", stays("Q"), "Q is read from row 64, while tile 0"),
    "backward: Q stays, double-buffered": (
        "2.8.3",
        "backward",
        stays_at("Q", 0),
        "Q is read from row 64, while tile 0",
    ),
    "backward: Q stays, else": ("2.8.3", "backward", stays_at("Q", 1), "Q is read from row 64, while tile 0"),
    "backward: dO goes back": ("2.8.3", "backward", goes_back("dO"), "dO is read from row 128, while tile 0"),
    "backward: LSE stays": ("2.8.3", "backward", stays("L"), "L is read from row 64, while tile 0"),
    "backward: D stays": ("2.8.3", "backward", stays("D"), "D is read from row 64, while tile 0"),
    "backward: dQ stays": ("2.8.3", "backward", stays("dQ"), "dQ is written to row 128, while tile 1"),
    "backward: K of another tile": (
        "2.8.3",
        "backward",
        offset_one_tile_on("K"),
        "K is read from row 32, while tile 0",
    ),
    "backward: dV to another tile": (
        "2.8.3",
        "backward",
        offset_one_tile_on("dV"),
        "dV is written to row 32, while tile 0",
    ),
    "row sums: O of the first tile": ("2.8.3", "row sums", rows_left_out("O"), "is read from row 0, while tile 2"),
    "row sums: dO of another tile": (
        "2.8.3",
        "row sums",
        offset_one_tile_on("dO"),
        "is read from row 64, while tile 0",
    ),
    "backward: dK with another stride": ("2.8.3", "backward", rows_one_apart("dK"), NO_ROW),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_tile_out_of_place_is_caught(name: str, subjects: Subjects, tmp_path: Path) -> None:
    version, role, change, message = FAULTS[name]
    found = subjects(version, role)
    assert not found.side.findings
    side = changed(found, change, tmp_path)
    assert [finding.kind for finding in side.findings] == ["bounds"], side.findings
    assert message in side.findings[0].message
    assert side.findings[0].location is not None


#: Of each kernel, the tensors whose tiles the algorithm reads and writes: every one of them must have been looked at.
SYMBOLS = {
    "forward": {"Q", "K", "V", "O", "L"},
    "row sums": {"O", "dO", "D"},
    "backward": {"Q", "K", "V", "dO", "L", "D", "dQ", "dK", "dV"},
}


@pytest.mark.parametrize(
    ("version", "role"),
    [
        ("2.8.3", "forward"),
        ("2.8.3", "backward"),
        ("2.0.0.post1", "forward"),
        ("2.8.3", "split"),
        ("2.8.3", "row sums"),
    ],
)
def test_every_tensor_is_looked_at(version: str, role: str, subjects: Subjects) -> None:
    comparison = subjects(version, role).side.comparison
    found, unseen = accesses_of(comparison, main_loops(comparison.kernel))
    assert {access.symbol for access in found} == SYMBOLS["forward" if role == "split" else role]
    assert not unseen and not any(note.startswith("where the tiles") for note in comparison.unjudged)


def test_the_host_alone_chooses_between_two_places_of_a_load(subjects: Subjects) -> None:
    comparison = subjects("2.8.3", "backward").side.comparison
    found, _ = accesses_of(comparison, main_loops(comparison.kernel))
    assert len(free_flags(found) - set(comparison.kernel.flag_names())) == 1


def test_a_stride_that_is_not_known_is_said(subjects: Subjects, tmp_path: Path) -> None:
    def change(s: Subject) -> None:
        for access in accesses(s, "Q"):
            assert access.address.rows is not None
            parts = s.kernel.tuples[plain(access.address.rows.strides).number]
            for node in plain(access.address.rows.strides).site[1].children[1:2]:
                s.replace((s.kernel.id, node), f"rank({s.text((s.kernel.id, node))})")
            assert plain(parts[0]).op == "input"

    side = changed(subjects("2.8.3", "forward"), change, tmp_path)
    assert not side.findings
    assert any(note.startswith("where the tiles of Q lie is not judged") for note in side.comparison.unjudged)


# -- other ways of reaching the same places ---------------------------------------------------------------------------
def indexed_instead_of_moved(s: Subject) -> None:
    """A pointer to the rows stays; the index goes back by as many rows as the pointer would have."""
    (loop,) = main_loops(s.side.comparison.kernel)
    counter, start, _, _ = loop.counters[0]
    rows = RoleFinder(s.side.comparison, [loop]).roles().rows
    for move in moves(s, "L"):
        s.replace(move.index.site, "0")
    for access in accesses(s, "L"):
        if access.is_next:
            steps = f"({s.text(plain(start).site)} - {counter.name} + 1)"
            written = (access.value.site[0], access.value.site[1].children[1])
            reads = [node for node in walk(written[1]) if node.kind == "call" and len(node.children) == 2]
            target = (written[0], reads[0].children[1]) if reads else written
            s.replace(target, f"{s.text(target)} - {steps} * {rows}")


def test_the_same_place_reached_otherwise_is_none_of_another_tile(subjects: Subjects, tmp_path: Path) -> None:
    side = changed(subjects("2.8.3", "backward"), indexed_instead_of_moved, tmp_path)
    assert not side.findings, side.findings
