"""Do a checkout and the reference kernel implement the papers' algorithm? Step by step, with the place where not.

What is proved is which values meet in which operation; then the extracted terms are carried out on small numbers, and
index sets, loop bounds and barriers are looked at. What cannot be seen is listed in :data:`BLIND_SPOTS`.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import field

from tracer.dataflow.barriers import barrier_findings
from tracer.dataflow.confirm import EXACT, Confirmation
from tracer.dataflow.counterpart import Counterpart, counterpart
from tracer.dataflow.cuda import Kernel, kernels
from tracer.dataflow.diagnose import Finding
from tracer.dataflow.elements import element_findings
from tracer.dataflow.features import features
from tracer.dataflow.functions import KernelFunction, backward_functions, forward_functions
from tracer.dataflow.handed import handed_on_the_way
from tracer.dataflow.host import HostCode
from tracer.dataflow.later import Unread, applied_factor
from tracer.dataflow.owners import owner_findings
from tracer.dataflow.reference import Reference, lend
from tracer.dataflow.sides import LISTINGS, Side, make_side
from tracer.errors import NameNotFound, TracerError
from tracer.graph import Program
from tracer.model import Definition, Location
from tracer.records import dataclass
from tracer.route import DEFAULT_ENTRY, Identity, begin, identity

FORWARD, BACKWARD = "forward", "backward"

#: Of each kind of kernel function: the pass that it belongs to.
_PASSES = {
    "forward": FORWARD,
    "split": FORWARD,
    "combine": FORWARD,
    "backward": BACKWARD,
    "row sums": BACKWARD,
}
_SHOWN = 3  # complaints of the parser
#: How the parser's complaints about broken syntax begin.
_BROKEN = ("expected", "extraneous", "unterminated", "version control", "unmatched")

BLIND_SPOTS = (
    "which operand of a tensor-core product is transposed, and how an element of a fragment maps to a thread",
    "rounding: conversions between floating-point types vanish",
    "places inside of a tile, paged and rotated keys, and how lengths of unequal sequences are read",
    "barriers between tensors in the same bytes",
    "bounds of local windows; masks of the backward pass",
    "which of the caller's tensors the host hands to its own functions; what is stored for rows without any key",
    "what a feature that is assumed off does (dropout, ALiBi, softcap): listed as an assumption",
    "whether the host allocates what the kernel writes, and launches the blocks that the kernel expects",
)


@dataclass(frozen=True, slots=True)
class StepVerdict:
    """One step of the algorithm, and what became of it.

    Attributes:
        number: in the order of the algorithm.
        title: what happens: ``alpha multiplies l_i``.
        formula: ``l_i <- l_i · alpha``.
        operand: the symbol, or the formula, that enters.
        result: the symbol that comes out.
        paper_line: line of the printed algorithm; 0 where the listing has none for the symbol.
        checkout: ``agrees``, ``differs`` or ``not reached``.
        reference: the same of the reference kernel; empty where it has no such kernel.
        location: where the checkout computes it.
        reference_location: where the reference kernel does.
    """

    number: int
    title: str
    formula: str
    operand: str
    result: str
    paper_line: int
    checkout: str
    reference: str
    location: Location | None
    reference_location: Location | None


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong.

    Attributes:
        kind: ``missing``, ``extra``, ``swapped``, ``different``, ``order``, ``store``, ``mask``, ``lanes``, ``value``,
            ``bounds``, ``barrier``, ``bound``, ``unread``.
        title: of the step that it concerns; empty where it concerns none.
        message: in one line.
        location: where.
        chain: the call sites through which that place is reached, innermost first.
        where: ``checkout`` or ``reference``.
    """

    kind: str
    title: str
    message: str
    location: Location | None
    chain: tuple[Location, ...]
    where: str = "checkout"


@dataclass(frozen=True, slots=True)
class KernelCheck:
    """The check of one kernel function against one listing.

    Attributes:
        role: ``forward``, ``split``, ``combine``, ``backward``, ``row sums``.
        algorithm: what the paper calls the algorithm.
        function: the function that was followed; None where it is missing.
        kernel: the kernel that it is the work of.
        steps: all steps of the algorithm.
        problems: what is wrong; the cause first.
        assumptions: compile-time flags that the match needs, and what else it takes for granted.
        confirmed: how it was confirmed by value, or why it was not.
        matched: how many steps agree.
        inputs: the kernel's arguments, by the listing's names.
        outputs: what it stores, by the listing's names.
        unknown: library names that no row of the table explains, with one place each.
    """

    role: str
    algorithm: str
    function: Definition
    kernel: Definition
    steps: tuple[StepVerdict, ...]
    problems: tuple[Problem, ...]
    assumptions: tuple[str, ...]
    confirmed: str
    matched: int
    inputs: tuple[tuple[str, str], ...]
    outputs: tuple[tuple[str, str], ...]
    unknown: tuple[tuple[str, Location], ...] = ()

    @property
    def ok(self) -> bool:
        """Whether every step agrees and nothing else is wrong."""
        return not self.problems and self.matched == len(self.steps) > 0


@dataclass(frozen=True, slots=True)
class CrossCheck:
    """The answer to *do they implement the same algorithm*.

    Attributes:
        checkout: what was read.
        checks: one for each kernel function and algorithm.
        problems: what is wrong with none of them, such as a pass whose kernel is not reached.
        not_checked: what there is none of to check.
        blind_spots: what such a check cannot see.
    """

    checkout: Identity
    checks: tuple[KernelCheck, ...]
    problems: tuple[Problem, ...] = ()
    not_checked: tuple[str, ...] = ()
    blind_spots: tuple[str, ...] = BLIND_SPOTS

    @property
    def ok(self) -> bool:
        """Whether all checks succeed and nothing else is wrong; an answer without any check is none that succeeds."""
        return bool(self.checks) and not self.problems and all(check.ok for check in self.checks)

    @property
    def matched(self) -> int:
        """How many steps agree, over all checks."""
        return sum(check.matched for check in self.checks)

    @property
    def steps(self) -> int:
        """How many steps there are, over all checks."""
        return sum(len(check.steps) for check in self.checks)


def check(
    program: Program, *, algorithm: str = "all", entry: str = DEFAULT_ENTRY, reference: Reference | None = None
) -> CrossCheck:
    """Check a checkout against the papers' listings and the reference kernel.

    Args:
        program: the checkout.
        algorithm: ``forward``, ``backward`` or ``all``.
        entry: the function in which the call begins.
        reference: the reference kernels; those of this package where None.

    Raises:
        NameNotFound: no function is named as ``entry`` says.
        NoRoute: no attention kernel is reached from it.
        TooLarge: a kernel is larger than the bound on work.
    """
    with lend(reference) as used:
        return analyse(program, algorithm=algorithm, entry=entry, reference=used).answer(program)


# ---------------------------------------------------------------------------------------------------------------------
# What stands behind an answer: also the symbol table's source.


@dataclass(slots=True)
class Analysis:
    """One kernel function of the checkout beside the reference's, under one listing."""

    function: KernelFunction
    listing: str
    side: Side
    reference: Counterpart | None
    notes: list[str]

    def check(self) -> KernelCheck:
        """Return the answer for this function."""
        comparison = self.side.comparison
        symbols = {symbol.name: symbol.line for symbol in comparison.listing.symbols}
        reference = self.reference
        verdicts = []
        for place, step in enumerate(comparison.steps.all):
            theirs, their_location = reference.steps[place] if reference is not None else ("", None)
            verdicts.append(
                StepVerdict(
                    step.number, step.title, step.formula, step.operand, step.result, symbols.get(step.result, 0),
                    self.side.verdict(step), theirs, self.side.place(step), their_location,
                )
            )  # fmt: skip
        problems = list(_problems(self.side.titled_findings(), "checkout"))
        if reference is not None:
            problems += _problems(reference.findings, "reference")
        outputs = tuple((name, k) for name, k in comparison.match.outputs.items() if k is not None)
        kernel = self.side.kernel
        return KernelCheck(
            self.function.role,
            comparison.listing.algorithm,
            self.function.definition,
            self.function.kernel,
            tuple(verdicts),
            tuple(problems),
            tuple(self.notes),
            _confirmed(self.side.confirmation),
            sum(verdict.checkout == "agrees" for verdict in verdicts),
            tuple(comparison.match.inputs.items()),
            outputs,
            tuple((name, kernel.location(site)) for name, site in sorted(kernel.unknown.items())),
        )


@dataclass(slots=True)
class Analysed:
    """All kernel functions of a checkout that were followed.

    Attributes:
        functions: in the order of the passes.
        problems, not_checked: see :class:`CrossCheck`.
    """

    functions: list[Analysis]
    problems: list[Problem] = field(default_factory=list)
    not_checked: list[str] = field(default_factory=list)

    def answer(self, program: Program) -> CrossCheck:
        """Return the answer for all of them."""
        checks = tuple([analysis.check() for analysis in self.functions])
        return CrossCheck(identity(program.checkout), checks, tuple(self.problems), tuple(self.not_checked))


def analyse(
    program: Program, *, algorithm: str, entry: str, reference: Reference, only: str = "", forms: bool = False
) -> Analysed:
    """Follow and compare every kernel function of an algorithm, or only those of one role; see :func:`check`.

    With ``forms``, it is found out too in which form each variable holds its symbol: a symbol table needs that.
    """
    with _many_objects():
        return _analyse(program, algorithm, entry, reference, only, forms)


@contextmanager
def _many_objects() -> Iterator[None]:
    """Put the cycle collector off: it would look at a hundred thousand living values again and again."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _analyse(program: Program, algorithm: str, entry: str, reference: Reference, only: str, forms: bool) -> Analysed:
    begin(program)
    roles = [role for role in LISTINGS if only in ("", role) and algorithm in (_PASSES[role], "all")]
    # The parsers are still busy with the checkout, so what does not depend on it comes first.
    sides = {name: counterpart(reference, name) for name in {LISTINGS[role]: None for role in roles}}
    found: list[Analysis] = []
    spare: list[Analysis] = []

    def follow(functions: Iterable[KernelFunction]) -> None:
        for function in functions:
            if function.role in roles:
                name = LISTINGS[function.role]
                for analysis in _analyses(function, name, sides[name], forms):
                    (spare if function.role == "row sums" else found).append(analysis)

    if algorithm in (FORWARD, "all"):
        follow(forward_functions(program, entry))
    result = Analysed(found)
    if algorithm in (BACKWARD, "all"):
        functions: Iterable[KernelFunction] = ()
        try:
            functions = backward_functions(program, entry)
        except TracerError as error:
            if algorithm == BACKWARD:
                raise
            if isinstance(error, NameNotFound):  # an entry for inference, say
                result.not_checked.append(f"no backward pass belongs to {entry}")
            else:
                result.problems.append(Problem("missing", "", f"backward: {error}", None, ()))
        follow(functions)
    if only:
        return result  # one function alone: nothing can be said of the kernels beside it
    _look_at_later_kernels(found, spare)
    found += _row_sums(found, spare)
    return result


def _look_at_later_kernels(found: list[Analysis], candidates: list[Analysis]) -> None:
    """Check that later kernels apply the factor that the backward pass leaves out of an output, and no other."""
    for analysis in [analysis for analysis in found if _PASSES[analysis.function.role] == BACKWARD]:
        _add_element_faults(analysis, candidates)
        confirmation = analysis.side.confirmation
        host = HostCode(analysis.function.source, analysis.function.host)
        for name, left in (confirmation.factors if confirmation is not None else {}).items():
            stored = analysis.side.comparison.match.outputs.get(name)
            if left is None or stored is None:
                continue
            product, location = left, analysis.function.kernel.location
            try:
                for other in candidates:
                    factor = applied_factor(other.side.kernel, stored, host.passed)
                    if factor is not None:
                        product, location = product * factor, other.function.definition.location
                        analysis.side.findings += barrier_findings(other.side.kernel, {}, ())
            except Unread as unread:
                analysis.notes.append(f"what a later kernel makes of {name} is not judged: it depends on {unread}")
                continue
            if abs(product - 1.0) > EXACT:
                message = f"{name} is stored without the softmax scale, and no later kernel applies exactly it"
                if abs(left - 1.0) < EXACT:
                    message = f"{name} is stored with the softmax scale, and a later kernel applies it again"
                analysis.side.findings.append(Finding("value", message, None, location))


def _add_element_faults(analysis: Analysis, candidates: list[Analysis]) -> None:
    """Add what is wrong with loops over elements in later kernels that read what a backward pass stores."""
    stored = {name for name in analysis.side.comparison.match.outputs.values() if name is not None}
    for other in candidates:
        if stored & other.side.kernel.inputs.keys() and not stored & other.side.kernel.outputs.keys():
            analysis.side.findings += element_findings(other.side.kernel)


def _row_sums(found: list[Analysis], candidates: list[Analysis]) -> list[Analysis]:
    """Return the one of several kernels beside the backward pass that should compute the row sums D.

    It is the one that does; else the one that stores what the backward pass reads as D; else the likeliest. Where a
    backward pass reads D and there is none at all, that is said of the backward pass.
    """
    readers = [analysis for analysis in found if "D" in analysis.side.comparison.match.inputs]
    matching = [analysis for analysis in candidates if analysis.side.comparison.match.ok]
    stored = readers[0].side.comparison.match.inputs["D"] if readers else ""
    for analysis in matching[:1] if readers else ():
        there = analysis.side.comparison.match.outputs["D"]
        if there != stored:
            message = f"D is stored as {there}, but the backward pass reads it as {stored}"
            analysis.side.findings.append(Finding("store", message, None, analysis.function.definition.location))
    if matching or not readers:
        return matching[:1]
    storing = [analysis for analysis in candidates if stored in analysis.side.kernel.outputs]
    likely = sorted(candidates, key=lambda analysis: -analysis.side.comparison.agreeing())
    if not candidates:
        message = f"{stored} is read as D, the row sums of dO and O, but no kernel beside the backward pass stores it"
        readers[0].side.findings.append(Finding("missing", message, None, readers[0].function.kernel.location))
    return (storing or likely)[:1]


def _analyses(function: KernelFunction, name: str, reference: Counterpart | None, forms: bool) -> Iterable[Analysis]:
    host = HostCode(function.source, function.host)
    for kernel in kernels(function.source, function.definition.id, function.flags):
        side = make_side(kernel, name, host.passed, forms=forms)
        unread = side.confirmation.unread if side.confirmation is not None else ""
        if unread and host.is_read:
            assigned = host.assignment(unread.rpartition(".")[2])
            message = f"the host passes {unread} as something that is no multiple of the softmax scale"
            if assigned is None:
                message = f"no host function on the way to the kernel gives {unread} a value"
            side.findings.append(Finding("value", message, None, assigned or function.kernel.location))
        unread_notes, broken = _not_parsed(function, kernel)
        notes = _assumptions(side, kernel.decided) + unread_notes
        side.findings += broken
        side.findings += handed_on_the_way(function.source, function.host(), function.kernel.id, function.definition.id)
        if side.comparison.match.ok and not side.findings:
            foreign = owner_findings(side.comparison, host)
            if function.role == "row sums":  # O and dO have the same shape, and mostly the same strides
                notes += [f"{finding.message} (at {finding.location})" for finding in foreign]
            else:
                side.findings += foreign
        yield Analysis(function, name, side, reference, notes)


def _not_parsed(function: KernelFunction, kernel: Kernel) -> tuple[list[str], list[Finding]]:
    """Say what the parser did not understand in the files of a kernel: it leaves out the statement around that.

    Returns:
        Notes on what is perhaps only a library's name, and findings of what is no C++ at all.
    """
    complaints = function.source.diagnostics
    if not complaints:
        return [], []
    files = {place.file for place in (function.definition.location, function.kernel.location)}
    files |= {kernel.location(value.site).file for value in kernel.values if value.site is not None and value.chain}
    found = [d for d in complaints if d.location.file in files]
    broken = [d for d in found if d.message.startswith(_BROKEN) and "#pragma" not in d.message]
    if broken:
        message = f"the parser cannot read this: {broken[0].message}"
        return [], [Finding("unread", message, None, broken[0].location)]
    more = [f"and {len(found) - _SHOWN} more that the parser did not understand"] if len(found) > _SHOWN else []
    return [f"not understood by the parser: {d.message} at {d.location}" for d in found[:_SHOWN]] + more, []


# -- parts of an answer -----------------------------------------------------------------------------------------------
def _problems(findings: Iterable[tuple[str, Finding]], where: str) -> Iterable[Problem]:
    for title, finding in findings:
        yield Problem(finding.kind, title, finding.message, finding.location, finding.chain, where)


def _assumptions(side: Side, decided: dict[str, bool]) -> list[str]:
    notes = [f"{name} is {str(value).lower()}" for name, value in sorted(decided.items())]
    notes += features(side.comparison)
    confirmation = side.confirmation
    for name, factor in (confirmation.factors if confirmation is not None else {}).items():
        if factor is not None and abs(factor - 1.0) > EXACT:
            notes.append(f"{name} is stored without the softmax scale, which a later kernel applies")
    if confirmation is not None and not confirmation.is_masked:
        notes.append("keys beyond the end are not masked: their tiles are zero")
    return [*notes, *side.comparison.unjudged]


def _confirmed(confirmation: Confirmation | None) -> str:
    if confirmation is None:
        return "not carried out: the operations differ"
    if confirmation.reason:
        return f"not carried out: {confirmation.reason}"
    if confirmation.findings:
        return "carried out on random tiles: the values differ"
    return "carried out on random tiles: equal to the listing within a millionth"
