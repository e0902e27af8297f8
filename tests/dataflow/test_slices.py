"""Products that take slices wrongly, and copies of tiles that ask wrongly which rows and columns exist."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.dataflow.mutants import Change, Subject, Subjects, changed
from tracer.cpp.tree import Node
from tracer.dataflow import ir
from tracer.dataflow.ir import Loop, Value
from tracer.dataflow.match import main_loops
from tracer.dataflow.names import plain
from tracer.dataflow.predicates import Copies
from tracer.dataflow.tiles import Access, accesses_of

NOTHING = "static_cast<void>(0)"


# -- where things are -------------------------------------------------------------------------------------------------
def products(s: Subject, computed: bool | None = None) -> list[tuple[Value, Loop]]:
    """Return the products of slices with their loops: those whose left operand is computed, or is not."""
    found = []
    for value in s.kernel.values:
        if value.op == "matmul" and all(argument.op == "element" for argument in value.args):
            index = plain(value.args[0].args[1])
            assert index.loop is not None
            is_computed = not any(copy.storage is value.args[0].storage for copy in copies(s))
            if computed is None or computed == is_computed:
                found.append((value, index.loop))
    return found


def copies(s: Subject) -> list[Value]:
    """Return the copies from shared memory to registers."""
    found = []
    for value in s.kernel.values:
        if value.op == "set" and value.args[0].op == "copy" and not value.is_view and value.storage is not None:
            source = value.args[0].args[0]
            while source.storage is None and source.op == "select":
                source = source.args[0]
            is_shared = source.storage is not None and source.storage.space == "shared"
            if is_shared and value.storage.space == "registers":
                found.append(value)
    return found


def operand(s: Subject, number: int) -> set[object]:
    return {value.args[number].storage for value, _ in products(s)}


def next_copies(s: Subject, number: int) -> list[Value]:
    """Return the copies of the slice after, of an operand."""
    found = [copy for copy in copies(s) if copy.storage in operand(s, number) and copy.indices]
    return [copy for copy in found if plain(copy.args[1]).op == "add"]


def first_copies(s: Subject, number: int) -> list[Value]:
    found = [copy for copy in copies(s) if copy.storage in operand(s, number) and copy.indices]
    return [copy for copy in found if plain(copy.args[1]).op == "const"]


def bound_of(copy: Value) -> tuple[str, Node]:
    """Return what the counter must be less than for a slice to be copied."""
    tests = [plain(test) for formula in copy.guards for test in ir.tests_of(formula)]
    test = next(test for test in tests if test.op == "lt" and plain(test.args[0]).op == "index")
    site: tuple[str, Node] = plain(test.args[1]).site
    return site


def for_node(loop: Loop, number: int) -> tuple[str, Node]:
    return (loop.site[0], loop.site[1].children[number])


# -- products ---------------------------------------------------------------------------------------------------------
def begins_at_one(computed: bool) -> Change:
    def change(s: Subject) -> None:
        for _, loop in products(s, computed):
            s.replace(plain(loop.counters[0][1]).site, "1")

    return change


def every_second(s: Subject) -> None:
    for _, loop in products(s):
        s.replace(for_node(loop, 2), f"{loop.counters[0][0].name} += 2")


def counts_rows(s: Subject) -> None:
    for _, loop in products(s):
        written = s.text(for_node(loop, 1))
        assert "<2>" in written
        s.replace(for_node(loop, 1), written.replace("<2>", "<1>"))


def last_is_not_copied(number: int) -> Change:
    def change(s: Subject) -> None:
        for copy in next_copies(s, number):
            bound = bound_of(copy)
            s.replace(bound, f"{s.text(bound)} - 1")

    return change


def same_slice_again(number: int) -> Change:
    """The slice is copied to the place of the next one."""

    def change(s: Subject) -> None:
        for copy in next_copies(s, number):
            index = plain(copy.args[0].args[0].args[1]).site
            s.replace(index, s.child(index, 0))

    return change


def to_the_same_place(number: int) -> Change:
    def change(s: Subject) -> None:
        for copy in next_copies(s, number):
            index = plain(copy.args[1]).site
            s.replace(index, s.child(index, 0))

    return change


def first_is_not_copied(number: int) -> Change:
    def change(s: Subject) -> None:
        for copy in first_copies(s, number):
            s.replace(copy.site, NOTHING)

    return change


def whole_is_not_copied(s: Subject) -> None:
    for copy in copies(s):
        if not copy.indices and copy.storage in operand(s, 1):
            s.replace(copy.site, NOTHING)


def said_to_be_there(number: int, flags: str) -> Change:
    """A product of two copied operands is told that some of them are in registers already."""

    def change(s: Subject) -> None:
        value, _ = products(s, False)[number]
        id, call = value.chain[-1]
        s.replace((id, call.children[0]), f"{s.text((id, call.children[0])).partition('<')[0]}<{flags}>")

    return change


UNCOPIED = "which nothing was copied to"
PRODUCTS: dict[str, tuple[str, str, Change, str]] = {
    "from 1, one side computed": ("2.8.3", "forward", begins_at_one(True), UNCOPIED),
    "every second": ("2.8.3", "forward", every_second, UNCOPIED),
    "as many as rows": ("2.8.3", "forward", counts_rows, "slice 3 of 4"),
    "the last is not copied, left": ("2.8.3", "forward", last_is_not_copied(0), f"slice 3 of {{}}, {UNCOPIED}"),
    "the last is not copied, right": ("2.0.0.post1", "forward", last_is_not_copied(1), UNCOPIED),
    "one on, left": ("2.8.3", "forward", same_slice_again(0), "the product takes slice 0"),
    "one on, right": ("2.8.3", "backward", same_slice_again(1), "with slice 0"),
    "to the place before": ("2.8.3", "split", to_the_same_place(1), "slice"),
    "the first is not copied, left": ("2.8.3", "forward", first_is_not_copied(0), "the product reads slice 0"),
    "the first is not copied, right": ("2.8.3", "split", first_is_not_copied(1), "the product reads slice 0"),
    "left is said to be there": ("2.8.3", "forward", said_to_be_there(0, "true"), "the product reads slice 0"),
    "right is said to be there": ("2.8.3", "backward", said_to_be_there(1, "false, true"), "the product reads slice 0"),
    "right is that of before": ("2.8.3", "split", said_to_be_there(1, "false, true"), "was written anew"),
    "registers are never filled": ("2.8.3", "backward", whole_is_not_copied, UNCOPIED),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_a_product_that_takes_slices_wrongly_is_caught(name: str, subjects: Subjects, tmp_path: Path) -> None:
    version, role, change, message = PRODUCTS[name]
    found = subjects(version, role)
    assert not found.side.findings
    side = changed(found, change, tmp_path)
    assert side.comparison.match.ok and side.findings
    found_so = [f for f in side.findings if all(part in f.message for part in message.split("{}"))]
    assert found_so and found_so[0].kind == "bounds" and found_so[0].location is not None, side.findings


def all_at_once(s: Subject) -> None:
    """All slices are copied before the loop over them."""
    for number in (0, 1):
        for copy in first_copies(s, number):
            id, call = copy.site
            for argument in call.children[2:]:
                s.replace((id, argument), s.text((id, argument.children[0])))
        for copy in next_copies(s, number):
            s.replace(copy.site, NOTHING)


def eight_of_them(s: Subject) -> None:
    """How many slices there are is a literal."""
    for _, loop in products(s):
        id, test = for_node(loop, 1)
        s.replace((id, test.children[1]), "8")
    for copy in (*next_copies(s, 0), *next_copies(s, 1)):
        s.replace(bound_of(copy), "7")


@pytest.mark.parametrize("change", [all_at_once, eight_of_them])
@pytest.mark.parametrize("role", ["forward", "backward"])
def test_slices_copied_in_another_way_are_fine(change: Change, role: str, subjects: Subjects, tmp_path: Path) -> None:
    side = changed(subjects("2.8.3", role), change, tmp_path)
    assert not side.findings
    assert not any("slices" in note for note in side.comparison.unjudged)


# -- predicates -------------------------------------------------------------------------------------------------------
def asked(s: Subject, symbol: str) -> list[tuple[Access, Value, Value | None]]:
    """Return the accesses of a symbol that ask for rows: with that test, and the assignment to the columns' array."""
    found, _ = accesses_of(s.side.comparison, main_loops(s.side.comparison.kernel))
    rows = []
    for access in found:
        if access.symbol == symbol:
            tests = [plain(test) for formula in access.guards for test in ir.tests_of(formula)]
            row = next((test for test in tests if test.args and _is_coordinate(plain(test.args[0]))), None)
            columns = next((test for test in tests if test.op == "element" and test.storage is not None), None)
            puts = [v for v in s.kernel.values if columns is not None and v.op == "set" and not v.is_view]
            put = next((v for v in puts if columns is not None and v.storage is columns.storage), None)
            if row is not None:
                rows.append((access, row, put))
    assert rows
    return rows


def _is_coordinate(value: Value) -> bool:
    return value.op == "element" and value.storage is not None and value.storage.is_identity


def row_test(symbol: str, written: str) -> Change:
    def change(s: Subject) -> None:
        for _, test, _ in asked(s, symbol):
            s.replace(test.site, written.format(s.child(test.site, 0), s.child(test.site, 1)))

    return change


def column_test(symbol: str, written: str) -> Change:
    def change(s: Subject) -> None:
        for _, _, put in asked(s, symbol):
            assert put is not None
            site = plain(put.args[0]).site
            s.replace(site, written.format(s.child(site, 0), s.child(site, 1)))

    return change


def first_row_for_all(s: Subject) -> None:
    for _, test, _ in asked(s, "K"):
        index = plain(test.args[0]).indices[1]
        assert index is not None
        id, call = plain(test.args[0]).site
        s.replace((id, call.children[1].children[2]), "0")


def limit(symbol: str, written: str) -> Change:
    """What is left of a length is written anew; ``{0}`` is the length and ``{1}`` what lies before."""

    def change(s: Subject) -> None:
        for _, test, _ in asked(s, symbol):
            site = plain(test.args[1]).site
            s.replace(site, written.format(s.child(site, 0), s.child(site, 1)))

    return change


def clears(symbol: str, rows: bool) -> Change:
    """Rows, or columns, that do not exist are not cleared."""

    def change(s: Subject) -> None:
        comparison = s.side.comparison
        found, _ = accesses_of(comparison, main_loops(comparison.kernel))
        wanted = [access for access in found if access.symbol == symbol]
        known = Copies(s.kernel, wanted, comparison.match.flags, frozenset(), is_backward=False)
        for copy in known.by_number.values():
            for zero in copy.clears:
                if (zero.pieces[1] is None) == rows:
                    s.replace(zero.value.site, NOTHING)

    return change


def predicates_from_one(s: Subject) -> None:
    for _, _, put in asked(s, "K"):
        assert put is not None
        loop = plain(put.args[1]).loop
        assert loop is not None
        s.replace(plain(loop.counters[0][1]).site, "1")


def piece_zero_for_all(s: Subject) -> None:
    for access, _, _ in asked(s, "K"):
        id, call = access.value.site
        s.replace((id, call.children[2].children[-1]), "0")


def flags_exchanged(s: Subject) -> None:
    """The first copy of Q gets its first two template arguments in the other order."""
    access, _, _ = asked(s, "Q")[0]
    id, call = access.value.chain[-1]
    first, second = call.children[0].children[:2]
    s.replace((id, first), s.text((id, second)))
    s.replace((id, second), s.text((id, first)))


PREDICATES: dict[str, tuple[str, str, Change, str]] = {
    "rows inverted": ("2.8.3", "forward", row_test("K", "{0} >= {1}"), "is not loaded"),
    "one row too many": ("2.8.3", "forward", row_test("K", "{0} <= {1}"), "is loaded, which has"),
    "one row too few": ("2.0.0.post1", "forward", row_test("Q", "{0} + 1 < {1}"), "is not loaded"),
    "the first row decides": ("2.8.3", "backward", first_row_for_all, "is loaded, which has"),
    "nothing is asked": ("2.8.3", "split", row_test("V", "true"), "is loaded, which has"),
    "limit of another tile": ("2.8.3", "forward", limit("V", "{0} - {1} - 1"), "is not loaded"),
    "limit of the whole": ("2.8.3", "split", limit("K", "{0}"), "is loaded, which has"),
    "limit of nothing": ("2.8.3", "forward", limit("Q", "0"), "is not loaded"),
    "limit of dO": ("2.8.3", "backward", limit("dO", "{0}"), "of dO is loaded, which has"),
    "limit of a store": ("2.8.3", "forward", limit("O", "{0}"), "of O is stored, which has"),
    "rows are not cleared": ("2.8.3", "forward", clears("V", True), "it meets zeros in a product"),
    "rows are not cleared, backward": ("2.8.3", "backward", clears("K", True), "it meets zeros in a product"),
    "columns are not cleared": ("2.8.3", "forward", clears("K", False), "a product is summed over them"),
    "columns inverted": ("2.8.3", "backward", column_test("K", "{0} >= {1}"), "is not loaded"),
    "half of the columns": ("2.8.3", "forward", column_test("K", "{0} < {1} / 2"), "are not those below"),
    "one column too many": ("2.8.3", "split", column_test("K", "{0} <= {1}"), "are not those below"),
    "no predicate for the first": ("2.8.3", "forward", predicates_from_one, "nothing was written to"),
    "a piece for all": ("2.8.3", "forward", piece_zero_for_all, "to the place of another"),
    "flags exchanged": ("2.8.3", "forward", flags_exchanged, "decides whether all rows of"),
}


@pytest.mark.parametrize("name", PREDICATES)
def test_a_wrong_predicate_is_caught(name: str, subjects: Subjects, tmp_path: Path) -> None:
    version, role, change, message = PREDICATES[name]
    found = subjects(version, role)
    assert not found.side.findings
    side = changed(found, change, tmp_path)
    found_so = [finding for finding in side.findings if message in finding.message]
    assert found_so and found_so[0].kind == "bounds" and found_so[0].location is not None, side.findings


@pytest.mark.parametrize("written", ["{1} > {0}", "!({0} >= {1})", "{0} <= {1} - 1"])
@pytest.mark.parametrize("role", ["forward", "backward"])
def test_a_predicate_written_otherwise_is_fine(written: str, role: str, subjects: Subjects, tmp_path: Path) -> None:
    def change(s: Subject) -> None:
        row_test("K", written)(s)
        column_test("K", written)(s)

    assert not changed(subjects("2.8.3", role), change, tmp_path).findings


@pytest.mark.parametrize(("version", "role"), [("2.8.3", "forward"), ("2.8.3", "backward"), ("2.0.0.post1", "forward")])
def test_every_tile_is_asked_for(version: str, role: str, subjects: Subjects) -> None:
    comparison = subjects(version, role).side.comparison
    found, _ = accesses_of(comparison, main_loops(comparison.kernel))
    known = Copies(subjects(version, role).kernel, found, comparison.match.flags, frozenset(), is_backward=False)
    by_symbol = {access.symbol for access in found if access.value.number in known.by_number}
    assert by_symbol >= ({"Q", "K", "V", "O"} if role == "forward" else {"Q", "K", "V", "dO", "dK", "dV"})
    assert not any("copied is not judged" in note for note in comparison.unjudged)
