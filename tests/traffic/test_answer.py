"""Facts about the answers that do not come from the model itself, and input that makes no sense."""

from __future__ import annotations

import csv
import io
import json
import math
import sys
import types
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

from tracer.errors import MissingTool, NameNotFound, TracerError
from tracer.render import traffic_csv, traffic_json, traffic_plot, traffic_text
from tracer.traffic import (
    InvalidShape,
    IoRow,
    Measurement,
    MeasurementError,
    Shape,
    Tile,
    bounds,
    compare,
    dram_bytes,
    figure2,
    ncu_command,
    ratio_limit,
    read_measurements,
    rows,
)
from tracer.traffic.measured import base_name

SCHEMA = Path(__file__).parents[2] / "tracer" / "schemas" / "io.schema.json"


class Gpu:
    """A GPU of middling size."""

    name = "a GPU"
    sm_count = 108
    shared_memory_per_sm = 164 * 1024
    shared_memory_per_block_optin = 163 * 1024
    l2_bytes = 40 * 1024 * 1024
    bandwidth_bytes_per_second = 1_555_000_000_000
    half_flops_per_second = 312_000_000_000_000


def answer(**changes: Any) -> tuple[IoRow, ...]:
    return rows([Shape(2048, 2048, 64, heads=4)], tiles=[Tile(64, 64)], gpu=Gpu(), **changes)


@pytest.mark.parametrize(("head_dim", "limit"), [(64, 2.0), (128, 1.0)])
def test_the_ratio_of_naive_to_tile_traffic_is_a_constant(head_dim: int, limit: float) -> None:
    """B_r = 64, fp16: 4 passes of 2N² bytes by 2 · 2N²d / B_r; the lower terms are gone at 64k tokens."""
    found = [rows([Shape(n, n, head_dim)], tiles=[Tile(64, 64)]) for n in (1024, 4096, 65536)]
    ratios = [naive.tile_bytes / flash.tile_bytes for naive, flash in found]
    assert ratios[-1] == pytest.approx(limit, rel=0.002)
    assert all(abs(ratio - limit) / limit < 0.1 for ratio in ratios)
    assert ratio_limit(found[0][1], found[0][0]) == limit


@pytest.mark.parametrize("name", ["fa1-forward", "fa2-forward"])
@pytest.mark.parametrize("how", ["algorithm", "mask-and-dropout", "kernel"])
def test_the_ratios_limit_is_where_it_goes(name: str, how: str) -> None:
    naive, flash = rows(
        [Shape(2**18, 2**18, 96)], algorithms=["naive-forward", name], tiles=[Tile(64, 128)], convention_name=how
    )
    assert ratio_limit(flash, naive) == pytest.approx(naive.tile_bytes / flash.tile_bytes, rel=0.005)


def test_what_grows_is_naive_by_dram_bytes() -> None:
    found = [rows([Shape(n, n, 64, heads=16)], tiles=[Tile(64, 64)], gpu=Gpu()) for n in (4096, 8192, 16384)]
    ratios = [naive.dram_bytes / flash.dram_bytes for naive, flash in found if naive.dram_bytes and flash.dram_bytes]
    assert [later / earlier for earlier, later in zip(ratios, ratios[1:], strict=False)] == pytest.approx(
        [2, 2], rel=0.05
    )


def test_keys_of_a_head_that_fit_into_the_cache_are_read_once() -> None:
    """Figure 2's shape: K and V of a head are 256 KiB, and the row tiles of a head are neighbours in the grid."""
    (row,) = rows(
        [Shape(1024, 1024, 64, batch=64, heads=16)], algorithms=["fa2-forward"], tiles=[Tile(128, 128)], gpu=Gpu()
    )
    assert row.dram_bytes == row.compulsory_bytes


def test_keys_that_do_not_fit_are_read_once_per_wave() -> None:
    """One head, 216 blocks at a time in step: each wave of row tiles streams through K and V once."""
    shape, tile = Shape(128 * 216 * 4, 2**18, 64), Tile(128, 128)
    found = dram_bytes(shape, "fa2-forward", tile, l2_bytes=2**20, slots=216)
    keys = 2 * shape.seqlen_k * shape.head_dim * 2
    others = 2 * shape.seqlen_q * shape.head_dim * 2 + 4 * shape.seqlen_q
    assert found == pytest.approx(4 * keys + others, rel=0.01)


def test_theorem_2_gives_what_it_gives() -> None:
    """N²d² / M at N = 8192, d = 64, M = 100,000 is 2.7 million, whatever some texts say."""
    assert bounds(Shape(8192, 8192, 64), 100_000).flash == pytest.approx(2.7e6, rel=0.02)
    assert bounds(Shape(8192, 8192, 64), 4095).lower is None
    assert not bounds(Shape(8192, 8192, 64), 8192 * 64 + 1).applies


def test_memory_for_the_backward_pass() -> None:
    naive, flash = rows([Shape(1024, 1024, 64)], tiles=[Tile(64, 64)])
    assert naive.saved_bytes == 3 * 1024 * 64 * 2 + 1024 * 1024 * 2
    assert flash.saved_bytes == 4 * 1024 * 64 * 2 + 1024 * 4
    assert (naive.workspace_bytes, flash.workspace_bytes) == (2 * 1024 * 1024 * 2, 0)


def test_split_keys_add_partial_results() -> None:
    """One query row, 8 heads of 4 splits: each writes 64 + 1 floats, which the combining launch reads."""
    (row,) = rows([Shape(1, 4096, 64, heads=8)], algorithms=["fa2-forward"], tiles=[Tile(64, 128, num_splits=4)])
    assert row.algorithm == "fa2-split-forward"
    launches = {one.launch: one.tile_bytes for one in row.launches}
    assert launches["combine"] == 8 * 4 * 65 * 4 + 8 * (64 * 2 + 4)
    assert launches["attention"] == 8 * (2 * 4096 * 64 * 2 + 4 * 64 * 2 + 4 * 65 * 4)


def test_packed_query_heads_read_their_keys_once() -> None:
    shape = Shape(1, 4096, 64, heads=8, heads_k=2)
    apart, packed = (rows([shape], algorithms=["fa2-forward"], tiles=[Tile(64, 128, packed=n)])[0] for n in (1, 4))
    keys = [next(t.read_bytes for t in row.tensors if t.tensor == "K") for row in (apart, packed)]
    assert keys[0] == 4 * keys[1]
    assert apart.compulsory_bytes == packed.compulsory_bytes


@pytest.mark.parametrize("how", ["kernel", "launches"])
def test_the_backward_calls_helpers(how: str) -> None:
    """Beside the two kernels: dQ in fp32 set to zero, read and written as fp16; dK and dV of 4 heads summed to 2."""
    (row,) = rows(
        [Shape(256, 256, 64, heads=4, heads_k=2)],
        algorithms=["fa2-backward"],
        tiles=[Tile(64, 64)],
        convention_name=how,
    )
    names = [one.launch for one in row.launches]
    elements = 4 * 256 * 64
    total = sum(one.tile_bytes for one in row.launches)
    assert total == row.tile_bytes
    if how == "kernel":
        assert names == ["D", "gradients"]
        return
    assert set(names) == {"D", "gradients", "convert", "sum heads"}
    (kernel,) = rows(
        [Shape(256, 256, 64, heads=4, heads_k=2)], algorithms=["fa2-backward"], tiles=[Tile(64, 64)],
        convention_name="kernel",
    )  # fmt: skip
    assert total - kernel.tile_bytes == elements * (4 + 4 + 2) + 2 * (elements * 2 + elements)


NONSENSE: dict[str, dict[str, Any]] = {
    "negative length": {"seqlen_q": -1},
    "no rows": {"seqlen_k": 0},
    "head dim": {"head_dim": 257},
    "heads": {"heads": 3, "heads_k": 2},
    "dtype": {"dtype": "int8"},
    "window": {"window": (-2, 0)},
    "batch": {"batch": 0},
    "far too much": {"seqlen_q": 1 << 50},
    "lengths": {"lengths": ((3, -1),)},
}


@pytest.mark.parametrize("name", NONSENSE)
def test_sizes_that_make_no_sense(name: str) -> None:
    with pytest.raises(InvalidShape) as caught:
        Shape(**{"seqlen_q": 128, "seqlen_k": 128, "head_dim": 64, **NONSENSE[name]})
    assert "\n" not in str(caught.value)


def test_a_tile_must_fit_into_shared_memory() -> None:
    with pytest.raises(InvalidShape, match="a GPU gives a thread block 166,912"):
        rows([Shape(1024, 1024, 256)], algorithms=["fa2-forward"], tiles=[Tile(128, 128)], gpu=Gpu())
    with pytest.raises(InvalidShape, match="any GPU gives a thread block 1,000"):
        rows([Shape(1024, 1024, 64)], tiles=[Tile(64, 64)], shared_memory_limit=1000)
    with pytest.raises(InvalidShape, match="block_m is 0"):
        Tile(0, 64)


def test_names_that_do_not_exist() -> None:
    with pytest.raises(NameNotFound, match="fa2-forward"):
        answer(algorithms=["fa2-forwards"])
    with pytest.raises(NameNotFound, match="mask-and-dropout"):
        answer(convention_name="mask+dropout")


def test_no_tile_is_said() -> None:
    with pytest.raises(InvalidShape, match="--block-m"):
        rows([Shape(128, 128, 64)], algorithms=["fa2-forward"])
    (row,) = rows([Shape(1024, 1024, 64)], algorithms=["fa1-forward"], on_chip_bytes=196608)
    assert row.tile is not None and (row.tile.block_m, row.tile.block_n) == (64, 384)


def test_on_chip_memory_that_makes_no_sense() -> None:
    for value in (0, -5, 100):
        with pytest.raises(InvalidShape):
            answer(on_chip_bytes=value)
    for size in (-1, math.nan):
        with pytest.raises(InvalidShape, match="l2_bytes"):
            answer(l2_bytes=size)


def test_an_unknown_cache_leaves_two_levels() -> None:
    class Unknown(Gpu):
        l2_bytes = 0

    found = rows([Shape(256, 256, 64)], tiles=[Tile(64, 64)], gpu=Unknown())
    assert [row.dram_bytes for row in found] == [None, None]
    assert "--l2-bytes" in traffic_text.rows(found)
    again = rows([Shape(256, 256, 64)], tiles=[Tile(64, 64)], gpu=Unknown(), l2_bytes=2**20)
    assert all(row.dram_bytes for row in again)


def measured(kernel: str, dram: int | None, l2: int | None) -> Measurement:
    return Measurement(kernel, "0", dram, l2)


@pytest.mark.parametrize(
    ("dram", "requests", "level"),
    [
        (1.0, 1.0, "agrees"),
        (1.0, 1.3, "tile traffic"),
        (1.0, 0.5, "tile traffic"),
        (5.0, 1.0, "L2"),
        (0.3, 1.0, "compulsory"),
    ],
)
def test_a_mismatch_points_to_its_level(dram: float, requests: float, level: str) -> None:
    row = answer(algorithms=["fa2-forward"])[0]
    assert row.dram_bytes
    one = measured("flash_fwd_kernel", round(dram * row.dram_bytes), round(requests * row.tile_bytes))
    (found,) = compare([one], row)
    assert found.level == level and found.verdict
    assert (found.dram_ratio, found.l2_ratio) == pytest.approx((dram, requests), rel=1e-3)


def test_kernels_are_matched_with_their_launches() -> None:
    names = ["flash_bwd_dot_do_o_kernel", "flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel", "flash_bwd_convert_dq_kernel"]
    row = answer(algorithms=["fa2-backward"], convention_name="launches")[0]
    found = compare([measured(f"void flash::{name}<64>()", 1, 1) for name in [*names, "elementwise"]], row)
    assert [(one.kernel, one.launch.launch) for one in found] == list(
        zip(names, ["D", "gradients", "convert"], strict=True)
    )
    with pytest.raises(MeasurementError, match="elementwise"):
        compare([measured("elementwise", 1, 1)], row)
    forward = answer(algorithms=["fa2-forward"])[0]
    (named,) = compare([measured("k1", 1, 1)], forward, kernels={"k1": "attention"})
    assert named.launch.launch == "attention"
    (other,) = compare([measured("fwd<128, 32>", 1, 1)], forward, decode=lambda name: (128, 32))
    assert (other.level, "128 × 32" in other.verdict) == ("tile traffic", True)


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("void flash::flash_fwd_kernel<T<64, 128>, (bool)1>(flash::P)", "flash_fwd_kernel"),
        ("flash_fwd_kernel", "flash_fwd_kernel"),
        ("void (anonymous namespace)::walk<float>(int)", "walk"),
        ("_ZN5flash9fa_kernelIfEEvi", "fa_kernel"),
        ("", ""),
    ],
)
def test_short_kernel_names(name: str, base: str) -> None:
    assert base_name(name) == base


HEAD = '"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"\n'


@pytest.mark.parametrize(
    ("value", "bytes_"),
    [("1,234,567", 1234567), ("1.234.567", 1234567), ("1,234.5", 1234), ("1.234,5", 1234), ("12,5", 12), ("7", 7)],
)
def test_numbers_in_any_custom(value: str, bytes_: int) -> None:
    (found,) = read_measurements(f'{HEAD}"0","k","dram__bytes.sum","byte","{value}"\n')
    assert found.dram_bytes == bytes_


@pytest.mark.parametrize(
    "text",
    [
        "nothing here\n",
        HEAD,
        f'{HEAD}"0","k","dram__bytes.sum","byte","soon"\n',
        f'{HEAD}"0","k","dram__bytes.sum","furlong","1"\n',
        f'{HEAD}"0","k","dram__bytes.sum","byte","-5"\n',
        f'{HEAD}"0","k","dram__bytes.sum","byte"\n',
        "\n",
    ],
)
def test_profiles_that_are_none(text: str) -> None:
    with pytest.raises(MeasurementError) as caught:
        read_measurements(text)
    assert "\n" not in str(caught.value)


def test_files_that_are_no_profiles(tmp_path: Path) -> None:
    with pytest.raises(MeasurementError, match="no profile at"):
        read_measurements(tmp_path / "none.csv")
    (tmp_path / "binary.csv").write_bytes(b"\x00\x01" * 50)
    with pytest.raises(MeasurementError, match="binary"):
        read_measurements(tmp_path / "binary.csv")
    (tmp_path / "wide.csv").write_text(f'{HEAD}"0","k","dram__bytes.sum","byte","9"\n', encoding="utf-16")
    assert read_measurements(tmp_path / "wide.csv")[0].dram_bytes == 9


class _Metric:
    def __init__(self, value: float, unit: str) -> None:
        self._value, self._unit = value, unit

    def as_double(self) -> float:
        return self._value

    def unit(self) -> str:
        return self._unit


class _Action:
    NameBase_DEMANGLED = 1
    _metrics = {
        "dram__bytes.sum": _Metric(2.0, "Kbyte"),
        "lts__t_bytes.sum": _Metric(9000.0, "byte"),
        "x": _Metric(1, ""),
    }

    def name(self, base: int) -> str:
        return "void flash::flash_fwd_kernel<1>()" if base == self.NameBase_DEMANGLED else "?"

    def metric_names(self) -> tuple[str, ...]:
        return tuple(self._metrics)

    def metric_by_name(self, name: str) -> _Metric:
        return self._metrics[name]


class _Range:
    def num_actions(self) -> int:
        return 1

    def action_by_idx(self, index: int) -> _Action:
        return _Action()


class _Report:
    def num_ranges(self) -> int:
        return 2

    def range_by_idx(self, index: int) -> _Range:
        return _Range()


def test_reports_are_read_through_their_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.ncu-rep"
    path.write_bytes(b"NVR\0")
    monkeypatch.setitem(sys.modules, "ncu_report", None)
    with pytest.raises(MissingTool, match="--import"):
        read_measurements(path)

    def refuse(file: str) -> _Report:
        raise RuntimeError("not a report\nmore")

    package = types.SimpleNamespace(load_report=lambda file: _Report())
    monkeypatch.setitem(sys.modules, "ncu_report", package)
    found = read_measurements(path)
    assert [(one.base_name, one.dram_bytes, one.l2_bytes) for one in found] == [("flash_fwd_kernel", 2000, 9000)] * 2
    monkeypatch.setitem(sys.modules, "ncu_report", types.SimpleNamespace(load_report=refuse))
    with pytest.raises(MeasurementError, match="not a report$"):
        read_measurements(path)


def test_the_ncu_command_survives_a_shell() -> None:
    import shlex

    words = shlex.split(
        ncu_command(Shape(64, 128, 64, heads=4, heads_k=2, window=(3, -1)), ["a", "b.c"], backward=True)
    )
    assert words[words.index("--kernel-name") + 1] == r"regex:^(a|b\.c)$"
    source = words[-1]
    compile(source, "call", "exec")
    assert "window_size=(3, -1)" in source and "randn(1, 128, 2, 64" in source and ".backward(" in source
    with pytest.raises(InvalidShape, match="name of a kernel"):
        ncu_command(Shape(64, 64, 64), [])
    with pytest.raises(TracerError):
        ncu_command(Shape(0, 0, 64, lengths=((3, 4),)), ["a"])
    assert ncu_command(Shape(64, 64, 64), ["a"], program=["./mine", "x y"]).endswith("./mine 'x y'")


def test_json_keeps_its_schema() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    found = [*answer(on_chip_bytes=196608), *rows([Shape(0, 0, 8, lengths=((3, 4),))], tiles=[Tile(16, 16)])]
    profile = compare([measured("flash_fwd_kernel", 5, None)], found[1])
    data = traffic_json.rows(found, profile, figure2())
    jsonschema.validate(json.loads(json.dumps(data)), schema)
    row = data["rows"][1]
    asked = {"N", "d", "block_m", "block_n", "algorithm", "per_tensor", "compulsory_bytes", "tile_bytes", "dram_bytes"}
    assert asked <= set(row)
    assert sum(t["read_bytes"] + t["written_bytes"] for t in row["per_tensor"].values()) == row["tile_bytes"]
    assert sum(t["dram_read_bytes"] + t["dram_written_bytes"] for t in row["per_tensor"].values()) == row["dram_bytes"]


def test_csv_has_a_line_per_row() -> None:
    found = answer()
    lines = list(csv.DictReader(io.StringIO(traffic_csv.rows(found))))
    assert [int(line["tile_bytes"]) for line in lines] == [row.tile_bytes for row in found]
    assert [line["block_m"] for line in lines] == ["", "64"]


def test_the_screen_names_the_three_levels() -> None:
    screen = traffic_text.rows(answer(on_chip_bytes=196608))
    for words in ("compulsory", "tile traffic", "DRAM", "ridge 201", "does not grow with N", "Theorem 2"):
        assert words in screen
    assert "\x1b" not in screen and "\x1b[1m" in traffic_text.rows(answer(), color=True)


def test_a_sweep_shows_what_varies() -> None:
    found = rows([Shape(n, n, 64, batch=b) for n in (64, 128) for b in (1, 2)], tiles=[Tile(16, 16), Tile(32, 32)])
    lines = traffic_text.rows(found).splitlines()
    assert lines[2].split()[:3] == ["batch", "N", "d"]
    assert sum("fa2-forward" in line for line in lines[3:11]) == 8


def test_figure_2_says_consistent_with() -> None:
    screen = traffic_text.figure2(figure2())
    assert "consistent with" in screen and "not equal" in screen and "equals" not in screen
    found = {(one.algorithms[0], one.block_n, one.convention): one.consistent_with for one in figure2()}
    assert "40.3 GB" in found["naive-forward", None, "mask-and-dropout"]
    assert "35.3 GB" in found["naive-forward", None, "dropout"]
    assert "4.4 GB" in found["fa1-forward", 256, "first-read-skipped"]
    assert found["naive-forward", None, "algorithm"] == ""


def test_a_comparison_shows_both_levels() -> None:
    row = answer(algorithms=["fa2-forward"])[0]
    hostile = measured("flash_fwd_\x1b[2Jkernel", row.dram_bytes, row.tile_bytes)
    screen = traffic_text.comparisons(row, compare([hostile], row))
    assert "lts__t_bytes.sum" in screen and "agrees" in screen and "\x1b" not in screen


def test_the_picture_is_svg() -> None:
    shapes = [Shape(n, n, 64, heads=2) for n in (256, 1024, 4096)]
    picture = traffic_plot.plot(rows(shapes, tiles=[Tile(64, 64)], gpu=Gpu()))
    root = ElementTree.fromstring(picture)
    lines = root.findall("{http://www.w3.org/2000/svg}polyline")
    # tile traffic and DRAM of two algorithms, compulsory, two intensities, the ridge
    assert len(lines) == 2 * 2 + 1 + 2 + 1
    for line in lines:
        assert all(0 <= float(number) <= 1120 for number in line.attrib["points"].replace(",", " ").split())
    with pytest.raises(InvalidShape, match="two lengths"):
        traffic_plot.plot(rows(shapes[:1], tiles=[Tile(64, 64)]))
    with pytest.raises(InvalidShape, match="room for"):
        traffic_plot.plot(rows(shapes, tiles=[Tile(16, 16 * n) for n in range(1, 11)]))
