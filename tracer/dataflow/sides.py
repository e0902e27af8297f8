"""One kernel against one listing, by all checks that there are: the checkout's kernel or the reference's."""

from __future__ import annotations

from tracer.dataflow.compare import DIFFERS, NOT_REACHED, Comparison, compare
from tracer.dataflow.confirm import Confirmation, Passed, confirm
from tracer.dataflow.cuda import Kernel, kernels
from tracer.dataflow.diagnose import Diagnosis, Finding
from tracer.dataflow.exchanges import exchange_findings
from tracer.dataflow.features import feature_findings
from tracer.dataflow.handed import handed_findings
from tracer.dataflow.indices import index_findings
from tracer.dataflow.match import main_loops
from tracer.dataflow.reference import Reference
from tracer.dataflow.steps import Step
from tracer.model import Location
from tracer.records import dataclass

#: Of each kind of kernel function: the listing that it must match.
LISTINGS = {
    "forward": "flash_attention_2_forward",
    "split": "flash_attention_2_forward",
    "combine": "flash_attention_2_combine",
    "backward": "flash_attention_2_backward",
    "row sums": "flash_attention_2_row_sums",
}
#: Of each listing: the rung of the reference kernel, and the number of the kernel in its file.
RUNGS = {
    "flash_attention_1_forward": ("flash_attention_1_forward", 0),
    "flash_attention_2_forward": ("flash_attention_2_forward", 0),
    "flash_attention_2_backward": ("flash_attention_2_backward", 1),
    "flash_attention_2_row_sums": ("flash_attention_2_backward", 0),
}
#: Listings of the same pass whose loops are in the other order, and what that order is.
_OTHER_ORDER = {
    "flash_attention_2_forward": ("flash_attention_1_forward", "K_j and V_j in the outer loop, Q_i in the inner one"),
    "flash_attention_1_forward": ("flash_attention_2_forward", "Q_i in the outer loop, K_j and V_j in the inner one"),
}
#: Outputs that may lack the softmax scale, because a later kernel applies it.
_FREE = {"flash_attention_2_backward": frozenset(("dQ",))}


@dataclass(slots=True)
class Side:
    """One side of a comparison with a listing: the checkout's kernel or the reference's.

    Attributes:
        kernel: the value flow.
        comparison: with the listing.
        confirmation: by value; None where the match failed.
        findings: of both.
    """

    kernel: Kernel
    comparison: Comparison
    confirmation: Confirmation | None
    findings: list[Finding]

    def verdict(self, step: Step) -> str:
        """Return what is known of a step; see :meth:`Comparison.verdict`."""
        if any(finding.step == step.key for finding in self.findings):
            return DIFFERS
        if any(finding.kind in ("store", "order") and finding.step is None for finding in self.findings):
            return NOT_REACHED
        return self.comparison.verdict(step)

    def place(self, step: Step) -> Location | None:
        """Return where the kernel computes the term of a step."""
        comparison = self.comparison
        diagnosis = Diagnosis(comparison.paper, comparison.kernel, comparison.steps)
        for term in comparison.partners(comparison.paper.nodes[step.key[0]]):
            if term.op not in ("flag", "join"):
                location, _ = diagnosis.place(term)
                if location is not None:
                    return location
        return None

    def titled_findings(self) -> tuple[tuple[str, Finding], ...]:
        """Return what is wrong, each with the title of the step that it concerns; empty where it concerns none."""
        by_key = self.comparison.steps.by_key
        return tuple([(by_key[f.step].title if f.step in by_key else "", f) for f in self.findings])


def make_side(kernel: Kernel, name: str, passed: Passed | None, *, forms: bool = False) -> Side:
    """Compare a kernel with a listing, and confirm the match by value."""
    comparison = compare(name, kernel)
    comparison.is_whole = forms
    confirmation = None
    findings = list(comparison.findings)
    if comparison.match.ok:
        confirmation = confirm(comparison, passed, _FREE.get(name, frozenset()), forms=forms)
        findings += confirmation.findings
        findings += feature_findings(comparison)
        findings += index_findings(comparison)
        findings += exchange_findings(comparison)
    elif name in _OTHER_ORDER:
        findings = _order_finding(kernel, name) or findings
    return Side(kernel, comparison, confirmation, findings + handed_findings(kernel))


def _order_finding(kernel: Kernel, name: str) -> list[Finding]:
    """Say that the loops are in the other order, where a kernel matches the listing with that order."""
    other, order = _OTHER_ORDER[name]
    comparison = compare(other, kernel)
    if not comparison.match.ok:
        return []
    loops = main_loops(comparison.kernel)
    location = kernel.location(loops[0].site) if loops else None
    message = f"the loops are in the other order: {order}, which is {comparison.listing.algorithm}"
    return [Finding("order", message, None, location)]


def reference_side(reference: Reference, name: str) -> Side | None:
    """Compare the reference's kernel for a listing with it; None where the reference has none."""
    if name not in RUNGS:
        return None
    rung, number = RUNGS[name]
    definitions = reference.kernels(rung)
    if number >= len(definitions):
        return None
    kernel = kernels(reference.source(rung), definitions[number].id)[0]
    return make_side(kernel, name, None, forms=True)
