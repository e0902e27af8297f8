"""The symbol table and the cross-check of real releases, against facts read by hand."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.releases import release_checkout
from tracer.crosscheck import check
from tracer.graph import Program
from tracer.render import symbols_json, symbols_markdown, symbols_text
from tracer.symbols import SymbolTable, symbol_table

# Variable and declaration line of each symbol, read in the sources by hand.
FACTS: dict[str, dict[str, list[tuple[str, int]]]] = {
    "2.8.3": {
        "S_ij": [("acc_s", 303), ("acc_s", 379), ("scores", 139)], "O_i": [("acc_o", 187)],
        "P_ij": [("rP", 347), ("tOrP", 365)], "m_i": [("row_max", 132), ("scores_max_cur", 154)],
        "m_prev": [("scores_max_prev", 146)], "alpha": [("scores_scale", 157)], "l_i": [("row_sum", 132)],
        "L": [("lse", 433), ("gLSE", 455)],
    },
    "2.5.8": {
        "S_ij": [("acc_s", 281), ("acc_s", 354), ("scores", 138)], "O_i": [("acc_o", 165)],
        "P_ij": [("rP", 322), ("tOrP", 340)], "m_i": [("row_max", 131), ("scores_max_cur", 153)],
        "m_prev": [("scores_max_prev", 145)], "alpha": [("scores_scale", 156)], "l_i": [("row_sum", 131)],
        "L": [("lse", 405), ("gLSE", 430)],
    },
    "2.0.0.post1": {
        "S_ij": [("acc_s", 322), ("acc_s", 423), ("scores", 345)], "O_i": [("acc_o", 204)],
        "P_ij": [("rP", 389), ("tOrP", 392)], "m_i": [("scores_max", 223), ("scores_max_cur", 86)],
        "m_prev": [("scores_max_prev", 79)], "alpha": [("scores_scale", 89)], "l_i": [("scores_sum", 224)],
        "L": [("lse", 479), ("gLSE", 512)],
    },
}  # fmt: skip


@pytest.fixture(scope="module", params=FACTS)
def table(request: pytest.FixtureRequest) -> tuple[str, SymbolTable]:
    with Program(release_checkout(request.param)) as program:
        return request.param, symbol_table(program)


def test_symbols_are_where_a_person_finds_them(table: tuple[str, SymbolTable]) -> None:
    version, found = table
    rows = {row.symbol: [(v.name, v.location.line) for v in row.variables] for row in found.rows}
    for symbol, wanted in FACTS[version].items():
        assert set(wanted) <= set(rows[symbol]), symbol
    assert found.agreeing == len(found.rows) == 14


def test_the_form_of_the_row_sum_is_told(table: tuple[str, SymbolTable]) -> None:
    version, found = table
    row = next(row for row in found.rows if row.symbol == "l_i")
    name = FACTS[version]["l_i"][0][0]
    form = next(v.form for v in row.variables if v.name == name and not v.is_view)
    expected = "one thread's share" if version != "2.0.0.post1" else "complete across the row's lanes"
    assert expected in form
    maximum = next(row for row in found.rows if row.symbol == "m_prev")
    assert "complete" in maximum.variables[0].form


def test_scores_become_probabilities_in_the_same_registers(table: tuple[str, SymbolTable]) -> None:
    _, found = table
    rows = {row.symbol: row for row in found.rows}
    scores = next(v for v in rows["S_ij"].variables if v.name == "acc_s" and not v.is_view)
    assert any(v.location == scores.location for v in rows["P_ij"].variables)
    assert any(held.until is not None for held in scores.holds)
    assert scores.storage == "registers"


def test_loops_and_sizes(table: tuple[str, SymbolTable]) -> None:
    _, found = table
    assert [loop.order for loop in found.loops] == ["descending", "descending"]
    assert [loop.is_masked for loop in found.loops] == [True, False]
    assert {size.symbol for size in found.sizes} >= {"B_r", "B_c", "d", "softmax scale"}


@pytest.mark.parametrize("version", ["2.8.3", "2.0.0.post1"])
def test_check_of_a_release_agrees(version: str) -> None:
    with Program(release_checkout(version)) as program:
        answer = check(program)
    assert answer.ok
    assert answer.matched == answer.steps >= 51
    assert all("equal to the listing" in found.confirmed for found in answer.checks)
    roles = [found.role for found in answer.checks]
    assert roles[0] == "forward" and "backward" in roles and "row sums" in roles
    if version == "2.8.3":
        assert roles.count("split") == 2 and "combine" in roles
    text = symbols_text.check(answer, width=100)
    assert f"{answer.matched} of {answer.steps} steps" in text
    assert max(len(line) for line in text.splitlines()) <= 110
    schema = json.loads((Path(symbols_json.__file__).parents[1] / "schemas" / "check.schema.json").read_text())
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.validate(symbols_json.check(answer), schema)
    markdown = symbols_markdown.check(answer, lambda _: None)
    assert markdown.count("| agrees | agrees |") > 40


@pytest.mark.parametrize("version", ["2.8.3", "2.0.0.post1"])
@pytest.mark.parametrize("algorithm", ["forward", "backward"])
def test_a_table_of_one_pass_alone_has_no_problem(version: str, algorithm: str) -> None:
    with Program(release_checkout(version)) as program:
        found = symbol_table(program, algorithm=algorithm)
    assert found.check.ok and not found.check.problems


def test_the_table_in_every_format(table: tuple[str, SymbolTable]) -> None:
    _, found = table
    schema = json.loads((Path(symbols_json.__file__).parents[1] / "schemas" / "symbols.schema.json").read_text())
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.validate(symbols_json.symbols(found), schema)
    text = symbols_text.symbols(found, width=140)
    assert "14 symbols, all agree with the reference kernel" in text
    markdown = symbols_markdown.symbols(found, lambda place: f"https://example.org/{place}")
    assert markdown.count("| agrees |") == 14 and "https://example.org/" in markdown


def test_no_variable_of_a_release_is_named_in_our_code() -> None:
    names = {name for facts in FACTS.values() for rows in facts.values() for name, _ in rows} - {"lse", "scores"}
    names |= {"n_block", "m_block", "kBlockM", "kBlockN", "softmax_rescale_o", "compute_attn_1rowblock", "Allreduce"}
    folder = Path(symbols_json.__file__).parents[1]
    files = [*folder.glob("dataflow/**/*.py"), folder / "symbols.py", folder / "crosscheck.py"]
    files += folder.glob("render/symbols_*.py")
    assert len(files) > 20
    for file in files:
        text = file.read_text(encoding="utf-8")
        for name in names:
            assert not re.search(rf"\b{name}\b", text), f"{file.name} names {name}"


def test_the_picture_has_a_node_for_each_symbol_and_the_rescale_in_it(table: tuple[str, SymbolTable]) -> None:
    from tracer.render import symbols_mermaid

    _, found = table
    picture = symbols_mermaid.flow(found)
    assert picture.count(":::agrees") == 14
    symbols = [row.symbol for row in found.rows]
    alpha, output = symbols.index("alpha"), symbols.index("O_i")
    assert f"s{alpha} --> s{output}" in picture
    assert found.rows[output].variables[0].name in picture


def test_every_kind_of_finding_is_in_the_schemas() -> None:
    folder = Path(symbols_json.__file__).parents[1]
    sources = [
        file.read_text(encoding="utf-8") for file in (*folder.glob("dataflow/**/*.py"), folder / "crosscheck.py")
    ]
    said = {kind for text in sources for kind in re.findall(r"\b(?:Finding|Problem|_report)\(\s*\"(\w+)\"", text)}
    assert {"missing", "bounds", "unread", "swapped", "barrier"} <= said
    for name in ("check", "symbols"):
        schema = json.loads((folder / "schemas" / f"{name}.schema.json").read_text())
        assert said <= set(schema["$defs"]["problem"]["properties"]["kind"]["enum"]), name
