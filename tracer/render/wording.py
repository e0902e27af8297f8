"""What is said about a route, in words that the screen and the report share."""

from __future__ import annotations

import os.path
from collections import Counter

from tracer.folding import folded_place
from tracer.model import Confidence, Coverage, Definition, Diagnostic, Edge, How, Language, Location
from tracer.picture import kernel_label
from tracer.records import dataclass
from tracer.render.escape import visible
from tracer.route import Branch, Identity, Route, Step

LANGUAGE_NAMES = {
    Language.PYTHON: "Python",
    Language.BINDING: "Binding",
    Language.CPP: "C++ host",
    Language.CUDA: "CUDA",
}


@dataclass(frozen=True, slots=True)
class Row:
    """One step of a route as words.

    Attributes:
        number: 1-based.
        language: heading to stand under.
        label: what to call the step.
        place: ``file:line``, or for a step in several files how many of what.
        location: the place that can be linked to.
        role: what happens here; may be empty.
        found: by which mechanism and call site the step was reached; empty for the first one.
        confidence: of the edge that leads here; None for the first one.
    """

    number: int
    language: str
    label: str
    place: str
    location: Location
    role: str
    found: str
    confidence: Confidence | None


def rows(route: Route) -> tuple[Row, ...]:
    """Put every step of a route into words."""
    found = []
    for position, step in enumerate(route.steps):
        edge = route.edges[position - 1] if position else None
        found.append(
            Row(
                number=position + 1,
                language=LANGUAGE_NAMES[step.definition.language],
                label=visible(step.label),
                place=visible(place(step)),
                location=step.definition.location,
                role=visible(step.role),
                found=visible(_found(route, position)),
                confidence=edge.confidence if edge else None,
            )
        )
    return tuple(found)


def headline(route: Route) -> str:
    """Return ``entry → kernel``."""
    if not route.steps:
        return "no route"
    return f"{visible(route.steps[0].label)} → {visible(kernel_label(route))}"


def identity(checkout: Identity) -> str:
    """Say which checkout was read: ``flash-attention 2.8.3 (pypi)``."""
    origin = "pypi" if checkout.source == "pypi" else checkout.commit[:12] if checkout.commit else checkout.source
    changed = ", with local changes" if checkout.dirty else ""
    version = f" {visible(checkout.version)}" if checkout.version else ", version unknown"
    return f"{visible(checkout.flavour)}{version} ({origin}{changed})"


def certainty(edges: tuple[Edge, ...]) -> str:
    """Say how sure the steps are: ``every step exact``, or how many are not."""
    counts = Counter(edge.confidence for edge in edges)
    if set(counts) <= {Confidence.EXACT}:
        return "every step exact"
    return ", ".join(f"{counts[confidence]} {confidence.value}" for confidence in Confidence if counts[confidence])


def place(step: Step) -> str:
    """Say where a step stands, all its alternatives included."""
    return folded_place((step.definition, *step.alternatives))


def _found(route: Route, position: int) -> str:
    """Say how a step of a route was reached; of a binding also where its module is named, which the next edge knows."""
    if not position:
        return ""
    text = found_by(route.edges[position - 1], route.steps[position], route.steps[position - 1])
    leaving = route.edges[position] if position < len(route.edges) else None
    if route.steps[position].definition.language is Language.BINDING and leaving and leaving.through:
        named = short_place(leaving.through, route.steps[position].definition.location.file)
        text = "; ".join(part for part in (text, f"module named in {named}") if part)
    return text


def found_by(edge: Edge, step: Step, previous: Step) -> str:
    """Say by which mechanism and at which call site a step was reached."""
    site = edge.call_site
    if site.line == previous.definition.location.line and site.file == previous.definition.location.file:
        at = ""
    else:
        at = short_place(site, _home(step, previous))
    through = short_place(edge.through, site.file) if edge.through and edge.through != site else ""
    written = edge.written
    if edge.how is How.BINDING:
        text = f"called at {at}" if at else ""
    elif edge.how is How.CUSTOM_OP:
        text = _join("through custom op", written, at)
    elif edge.how is How.AUTOGRAD:
        text = _join("through", written, at)
    elif edge.how in (How.LAUNCH, How.KERNEL_POINTER):
        # A library that starts a kernel names it by a template argument; else a variable holds the kernel.
        named = edge.template_arguments[0] if "::" in written and edge.template_arguments else written
        pointer = f"`{named}`" if named and named != step.definition.name else ""
        text = _join("launched at", at)
        if pointer or through:
            text = _join(text, "through", pointer, through)
    else:
        text = _join("called at", at) if at else ""
        if edge.how is How.ALIAS or through:
            text = _join(text, "through", f"`{written}`" if written else "", through)
    if edge.confidence is not Confidence.EXACT:
        text = _join(text, f"({edge.confidence.value})")
    return text


def short_place(location: Location, home: str) -> str:
    """Return ``:line`` for a place in the file ``home``, else the file's name and the line."""
    name = "" if location.file == home else os.path.basename(location.file)
    return f"{name}:{location.line}"


def branch(route: Route, other: Branch) -> str:
    """Say which other way leaves a route: ``from step 6: a → b   (condition)``."""
    way = " → ".join(visible(definition.name) for definition in other.definitions)
    condition = f"   ({visible(other.condition)})" if other.condition else ""
    return f"from step {other.step}: {way}{condition}"


def coverage(found: Coverage) -> str:
    """Say how many call sites were understood."""
    external = f", {found.external} into libraries" if found.external else ""
    return (
        f"Resolved {found.resolved} of {found.call_sites} call sites on the way{external}; "
        f"unresolved {len(found.unresolved)}."
    )


def reasons(found: Coverage) -> list[tuple[str, int]]:
    """Count unresolved call sites by reason, the most frequent first."""
    counts = Counter(visible(site.reason) or "no reason recorded" for site in found.unresolved)
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def diagnostics(found: tuple[Diagnostic, ...]) -> str:
    """Count what the readers could not make full sense of; empty where there is nothing."""
    if not found:
        return ""
    files = Counter(diagnostic.location.file for diagnostic in found)
    names = ", ".join(f"{visible(os.path.basename(file))} {count}" for file, count in files.most_common(3))
    more = f", … {len(files) - 3} more files" if len(files) > 3 else ""
    return f"{len(found)} {'diagnostic' if len(found) == 1 else 'diagnostics'}: {names}{more}."


def definition_line(definition: Definition) -> str:
    """Return a definition's name, with the template arguments that tell it from its siblings."""
    if definition.template_arguments and "<" not in definition.qualified_name:
        return visible(f"{definition.qualified_name}<{', '.join(definition.template_arguments)}>")
    return visible(definition.qualified_name)


def _home(step: Step, previous: Step) -> str:
    """The file that a reader takes a bare line number to belong to: the one in the row, else the one above."""
    files = {definition.location.file for definition in (step.definition, *step.alternatives)}
    return files.pop() if len(files) == 1 else previous.definition.location.file


def _join(*parts: str) -> str:
    return " ".join(part for part in parts if part)
