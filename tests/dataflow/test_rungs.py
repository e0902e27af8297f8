"""The rungs of the reference kernel against the listings, and against the one with the loops the other way round."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tracer.dataflow.cuda import kernels
from tracer.dataflow.reference import Reference, ReferenceMissing
from tracer.dataflow.sides import RUNGS, make_side


@pytest.fixture(scope="module")
def reference() -> Iterator[Reference]:
    with Reference() as found:
        yield found


def side(reference: Reference, rung: str, number: int, listing: str):  # type: ignore[no-untyped-def]
    source = reference.source(rung)
    return make_side(kernels(source, reference.kernels(rung)[number].id)[0], listing, None)


@pytest.mark.parametrize("listing", RUNGS)
def test_every_rung_matches_its_own_listing(listing: str, reference: Reference) -> None:
    rung, number = RUNGS[listing]
    found = side(reference, rung, number, listing)
    assert not found.findings
    assert found.comparison.agreeing() == len(found.comparison.steps.all) > 1
    assert found.confirmation is not None and not found.confirmation.reason
    assert all(abs(factor - 1) < 1e-9 for factor in found.confirmation.factors.values() if factor is not None)


def test_the_rung_on_tensor_cores_matches_too(reference: Reference) -> None:
    rungs = [rung for rung in reference.rungs if rung.endswith("_mma")]
    assert rungs
    found = side(reference, rungs[0], 0, rungs[0].removesuffix("_mma"))
    assert not found.findings
    assert found.comparison.agreeing() == 31
    assert found.confirmation is not None and not found.confirmation.reason
    assert not found.kernel.unknown


@pytest.mark.parametrize(
    ("rung", "listing"),
    [
        ("flash_attention_1_forward", "flash_attention_2_forward"),
        ("flash_attention_2_forward", "flash_attention_1_forward"),
    ],
)
def test_the_other_loop_order_is_named(rung: str, listing: str, reference: Reference) -> None:
    found = side(reference, rung, 0, listing)
    assert [finding.kind for finding in found.findings] == ["order"]
    assert "the loops are in the other order" in found.findings[0].message
    assert found.findings[0].location is not None


def test_a_product_that_is_added_to_something_stands_where_it_is_added(reference: Reference) -> None:
    rung, number = RUNGS["flash_attention_2_forward"]
    found = side(reference, rung, number, "flash_attention_2_forward")
    (step,) = [s for s in found.comparison.steps.all if s.title == "V_j is multiplied with the matrix P_ij"]
    location = found.place(step)
    assert location is not None
    line = (reference.checkout.root / location.file).read_text().splitlines()[location.line - 1]
    assert re.search(r"\bO_i\b.*\+=.*\bP_ij\b", line), line


def test_missing_kernels_are_said_in_one_line(tmp_path) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ReferenceMissing, match="not in"):
        Reference(tmp_path)
