"""What a later kernel multiplies the backward's dQ by."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.releases import release
from tracer.checkout import open_checkout
from tracer.cpp.source import CppSource
from tracer.cpp.store import Store
from tracer.crosscheck import check
from tracer.dataflow.confirm import SCALE
from tracer.dataflow.cuda import kernels
from tracer.dataflow.functions import backward_functions
from tracer.dataflow.host import HostCode
from tracer.dataflow.later import Unread, applied_factor
from tracer.extensions import Extension
from tracer.graph import Program
from tracer.model import Location


@pytest.mark.parametrize("version", ["2.0.0.post1", "2.5.8", "2.8.3"])
def test_exactly_one_later_kernel_applies_the_scale(version: str) -> None:
    with Program(open_checkout(str(release(version)))) as program:
        (main, *_) = answer = check(program, algorithm="backward").checks
        stored = dict(main.outputs)["dQ"]
        assert "dQ" not in dict(main.inputs) and len(answer) == 2
        main_function, *others = backward_functions(program)
        host = HostCode(main_function.source, main_function.host)

        factors = [
            applied_factor(kernels(other.source, other.definition.id)[0], stored, host.passed) for other in others
        ]
        assert [factor for factor in factors if factor is not None] == [SCALE]


KERNELS = {
    "scaled": ("Y[i] = X[i] * params.scale;", 3.0),
    "scaled twice": ("Y[i] = X[i] * params.scale * params.scale;", 9.0),
    "not scaled": ("Y[i] = X[i];", 1.0),
    "another input": ("Y[i] = Z[i] * params.scale;", None),
    "summed copies": ("float x = 0.f; for (int s = 0; s < n; s++) x += X[i + s * n]; Y[i] = x * params.scale;", 3.0),
}


@pytest.mark.parametrize("name", KERNELS)
def test_the_factor_is_read_off_the_kernel(name: str, tmp_path: Path) -> None:
    body, expected = KERNELS[name]
    assert applied_factor(written(body, tmp_path), "X", lambda field: 3.0 if field == "scale" else None) == expected


def test_what_is_no_product_is_named(tmp_path: Path) -> None:
    with pytest.raises(Unread):
        applied_factor(written("Y[i] = X[i] + Z[i];", tmp_path), "X", lambda _: 1.0)
    with pytest.raises(Unread, match=r"params\.scale"):
        applied_factor(written("Y[i] = X[i] * params.scale;", tmp_path), "X", lambda _: None)


def written(body: str, folder: Path):  # type: ignore[no-untyped-def]
    """Follow a kernel of our own."""
    (folder / "later.cu").write_text(
        "struct Params { float scale; int other; };\n"
        "__global__ void later(const float* X, const float* Z, float* Y, int n, Params params) {\n"
        f"  int i = threadIdx.x; {body}\n}}\n"
    )
    extension = Extension("later", "cuda", Location("later.cu", 1), ("later.cu",), ("",), ("__CUDACC__",))
    from tracer.checkout import Checkout

    source = CppSource(Checkout("later", folder, "later", None, "folder"), extension, Store(False))
    try:
        (id,) = [definition.id for definition in source.definitions() if definition.kind == "kernel"]
        return kernels(source, id)[0]
    finally:
        source.close()
