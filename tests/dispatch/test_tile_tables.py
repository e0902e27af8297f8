"""Tables of all tiles, and Python's copy of the block sizes held against them."""

from __future__ import annotations

import ast
import json
import shutil
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import tracer
from tests.releases import release, release_checkout
from tracer.checkout import open_checkout
from tracer.dispatch import TileTable, all_specializations, gpu_classes
from tracer.graph import Program
from tracer.render import kernel_json, kernel_markdown, kernel_text

jsonschema: Any = import_module("jsonschema")  # It has no types.


@pytest.fixture(scope="module")
def tiles() -> Iterator[TileTable]:
    with Program(release_checkout("2.8.3")) as program:
        yield all_specializations(program, dtypes=("fp16",))


def at(tiles: TileTable, form: str, head_dim: int, gpu: str, mask: str = "none", dropout: bool = False) -> Any:
    (row,) = [
        row for row in tiles.rows
        if row.form == form and row.head_dims[0] <= head_dim <= row.head_dims[1] and gpu in row.gpus
        and mask in row.masks and row.dropout == dropout
    ]  # fmt: skip
    return row


def test_head_dimension_128_has_the_three_tiles_that_its_code_can_reach(tiles: TileTable) -> None:
    found = {
        (row.block_m, row.block_n, row.warps) for row in tiles.rows if row.form == "forward" and row.head_dim == 128
    }
    assert found == {(128, 32, 4), (64, 64, 4), (128, 64, 4)}


def test_every_head_dimension_runs_the_next_larger_kernel(tiles: TileTable) -> None:
    dims = {row.head_dims: row.head_dim for row in tiles.rows if row.form == "forward"}
    assert list(dims) == [(8, 32), (40, 64), (72, 96), (104, 128), (136, 192), (200, 256)]
    assert all(asked[1] == kernel for asked, kernel in dims.items())


def test_the_backward_that_launches_nothing_is_a_row_that_says_so(tiles: TileTable) -> None:
    row = at(tiles, "backward", 256, "L4", dropout=True)
    assert row.kernel == "" and "without launching" in row.refusal
    assert at(tiles, "backward", 256, "A100", dropout=True).block_n == 64
    assert at(tiles, "backward", 256, "L4").block_n == 32


def test_the_split_kernel_has_tiles_of_its_own(tiles: TileTable) -> None:
    assert [at(tiles, "split", d, "A100").block_n for d in (64, 128, 192)] == [256, 128, 64]


def test_one_gpu_of_each_compute_capability_is_asked() -> None:
    capabilities = [(gpu.major, gpu.minor) for gpu in gpu_classes()]
    assert capabilities == sorted(set(capabilities))
    assert {(8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (12, 0)} <= set(capabilities)


def test_pythons_copy_of_the_block_sizes_agrees_in_this_release(tiles: TileTable) -> None:
    assert tiles.drift_checked is not None
    assert tiles.drift == ()
    assert "agrees with the C++ tiles" in kernel_text.table(tiles, color=False, width=120)


def change_return(path: Path, head_dim: int, value: int) -> None:
    """Change what the copy of the block sizes returns below ``head_dim <= …``."""
    text = path.read_text(encoding="utf-8")
    copy = next(n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef) and "block_size" in n.name)
    for node in ast.walk(copy):
        compared = (
            [n.value for n in ast.walk(node.test) if isinstance(n, ast.Constant)] if isinstance(node, ast.If) else []
        )
        if isinstance(node, ast.If) and head_dim in compared:
            returned = node.body[0]
            assert isinstance(returned, ast.Return) and isinstance(returned.value, ast.Constant)
            lines = text.split("\n")
            line = lines[returned.lineno - 1]
            lines[returned.lineno - 1] = f"{line[: returned.value.col_offset]}{value}"
            path.write_text("\n".join(lines), encoding="utf-8")
            return
    raise AssertionError("the copy has no such condition")


def test_a_drift_of_pythons_copy_is_found(tmp_path: Path) -> None:
    source, target = release("2.8.3"), tmp_path / "flash-attention"
    for folder in ("csrc/flash_attn", "flash_attn"):
        shutil.copytree(source / folder, target / folder)
    shutil.copy(source / "setup.py", target / "setup.py")
    path = target / "flash_attn" / "flash_attn_interface.py"
    change_return(path, head_dim=96, value=32)
    with Program(open_checkout(str(target)), cache=False) as program:
        tiles = all_specializations(program, dtypes=("fp16",), forms=())
    assert {row.head_dim for row in tiles.drift} == {96}
    assert {(row.python, row.cpp[1]) for row in tiles.drift} == {((32,), 64)}
    assert "differs from the C++ tiles" in kernel_markdown.tiles(tiles)


def test_the_table_keeps_to_its_schema_and_shows_every_row(tiles: TileTable) -> None:
    folder = Path(tracer.__file__).parent / "schemas"
    schema = json.loads((folder / "kernel_table.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(schema).validate(json.loads(json.dumps(kernel_json.table(tiles))))
    markdown = kernel_markdown.tiles(tiles)
    assert markdown.count("\n|") == len(tiles.rows) + 2 * 3


@pytest.mark.parametrize(
    ("version", "head_dims", "missing"),
    [
        ("2.0.0.post1", [32, 64, 96, 128, 160, 192, 224, 256], ["split"]),
        ("2.5.8", [32, 64, 96, 128, 160, 192, 224, 256], []),
        ("2.6.3", [32, 64, 96, 128, 160, 192, 256], []),
    ],
)
def test_older_releases_complete_with_the_head_dimensions_they_build(
    version: str, head_dims: list[int], missing: list[str]
) -> None:
    with Program(release_checkout(version)) as program:
        tiles = all_specializations(program, dtypes=("fp16",))
    assert sorted({row.head_dim for row in tiles.rows if row.form == "forward" and row.head_dim}) == head_dims
    assert [form for form, _ in tiles.missing] == missing
    newer = [row for row in tiles.rows if row.form == "forward" and row.refusal]
    assert newer and all("only supports Ampere GPUs or newer" in row.refusal for row in newer)
    assert {gpu for row in newer for gpu in row.gpus} == {g.name for g in gpu_classes() if g.major >= 10}
