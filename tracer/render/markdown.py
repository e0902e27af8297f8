"""A route as a Markdown table, and the whole report through the templates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from tracer.model import Confidence, Definition, Location
from tracer.picture import kernel_label
from tracer.records import dataclass
from tracer.render import templates, wording
from tracer.render.escape import Markdown, code, link, words
from tracer.route import Route


@dataclass(frozen=True, slots=True)
class Choice:
    """A step at which dispatch chooses among several definitions.

    Attributes:
        number: 1-based number of the step.
        label: what the step is called.
        members: name and place of each definition, the one on the route first.
    """

    number: int
    label: str
    members: tuple[tuple[Markdown, Markdown], ...]


@dataclass(frozen=True, slots=True)
class Branching:
    """Another way that leaves the route.

    Attributes:
        step: 1-based number of the step that it leaves.
        way: name and place of each definition on it.
        condition: as in the source; may be empty.
        place: where it is taken.
    """

    step: int
    way: tuple[tuple[Markdown, Markdown], ...]
    condition: str
    place: Markdown


def route(route: Route) -> str:
    """Return a route as Markdown: what was read, the table of the steps, the alternatives and the coverage."""
    return templates.fill("route.md.j2", _values(route))


def report(
    route: Route,
    *,
    picture: str = "",
    mermaid: str = "",
    files: Mapping[str, str] | None = None,
    made: Mapping[str, str] | None = None,
    **answers: object,
) -> str:
    """Return the whole report.

    Args:
        route: the answer that the first sections show.
        picture: name of an image file beside the report that shows the route.
        mermaid: the picture as a Mermaid chart, shown where there is no image file.
        files: what lies beside the report: file name to what it is.
        made: how the report was made: what to what, such as ``version`` to ``0.1.0``.
        answers: of later rooms, by the name that their section's template uses.
    """
    values = {
        **_values(route),
        "picture": picture,
        "mermaid": Markdown(mermaid.strip()),
        "files": dict(files or {}),
        "made": dict(made or {}),
        **answers,
    }
    return templates.fill("report.md.j2", values)


def place(location: Location, base: str | None, text: str = "") -> Markdown:
    """Return a place as code, linked to the public repository where its address is known."""
    shown = code(text or str(location))
    if not base:
        return shown
    from urllib.parse import quote

    file = quote(location.file, errors="surrogateescape")
    if "{file}" not in base:
        base = f"{base.rstrip('/')}/{{file}}#L{{line}}"
    return link(shown, base.replace("{file}", file).replace("{line}", str(location.line)))


def _values(route: Route) -> dict[str, object]:
    base = route.checkout.permalink
    rows = wording.rows(route)
    uncertain = [row for row in rows if row.confidence not in (None, Confidence.EXACT)]
    return {
        "route": route,
        "headline": wording.headline(route),
        "identity": wording.identity(route.checkout),
        "entry": route.steps[0].label if route.steps else "",
        "kernel": kernel_label(route) if route.steps else "",
        "parts": _parts(rows),
        "certainty": wording.certainty(route.edges).capitalize(),
        "coverage_sentence": wording.coverage(route.coverage),
        "rows": [(row, place(row.location, base, row.place), _meaning(row)) for row in rows],
        "uncertain": uncertain,
        "choices": _choices(route),
        "branches": _branches(route),
        "unresolved": [
            (place(site.location, base), code(site.written), words(site.reason)) for site in route.coverage.unresolved
        ],
        "reasons": wording.reasons(route.coverage),
        "diagnostics": [(place(item.location, base), words(item.message)) for item in route.diagnostics],
        "diagnostic_files": sorted(Counter(item.location.file for item in route.diagnostics).items()),
    }


def _meaning(row: wording.Row) -> Markdown:
    """Say what stands at a step: its name, and where the source tells, what happens there."""
    return Markdown(f"{code(row.label)} — {words(row.role)}" if row.role else code(row.label))


def _parts(rows: Sequence[wording.Row]) -> str:
    """Say which steps belong to which language: ``Python 1–3, Binding 4``."""
    numbers: dict[str, list[int]] = {}
    for row in rows:
        numbers.setdefault(row.language, []).append(row.number)
    return ", ".join(
        f"{language} {found[0]}–{found[-1]}" if len(found) > 1 else f"{language} {found[0]}"
        for language, found in numbers.items()
    )


def _choices(route: Route) -> list[Choice]:
    return [
        Choice(number, step.label, _listed((step.definition, *step.alternatives), route.checkout.permalink))
        for number, step in enumerate(route.steps, start=1)
        if step.alternatives
    ]


def _branches(route: Route) -> list[Branching]:
    base = route.checkout.permalink
    return [
        Branching(branch.step, _listed(branch.definitions, base), branch.condition, place(branch.call_site, base))
        for branch in route.branches
    ]


def _listed(definitions: Sequence[Definition], base: str | None) -> tuple[tuple[Markdown, Markdown], ...]:
    return tuple((code(wording.definition_line(item)), place(item.location, base)) for item in definitions)
