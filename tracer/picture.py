"""A call graph made ready for drawing: alternatives folded, parallel calls merged, pruned around the route.

A `Picture` is what every drawing format starts from, so that Mermaid, DOT, SVG and JSON show the same boxes and arrows.
"""

from __future__ import annotations

import os.path
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tracer import folding
from tracer.errors import NameNotFound
from tracer.model import Confidence, Definition, Edge, How, Language
from tracer.records import dataclass

if TYPE_CHECKING:
    import networkx

    from tracer.route import Route

LANGUAGE_ORDER = {language: position for position, language in enumerate(Language)}
UNREACHED = 1_000_000
_TOOLTIP_MEMBERS = 30
_PLAIN_CALLS = {How.CALL, How.OVERLOAD, How.MEMBER, How.CONSTRUCTOR}


@dataclass(frozen=True, slots=True)
class Prune:
    """Which part of the graph to draw.

    Attributes:
        hops: 0 draws the route and the branches that leave it, n also what is called from or calls it over at most n
            calls, None everything.
        file: draw only definitions of this file; a path relative to the checkout, or the end of one.
        language: draw only definitions of this language.
    """

    hops: int | None = None
    file: str = ""
    language: Language | None = None


@dataclass(frozen=True, slots=True)
class Node:
    """One box: a definition, or several alternatives folded.

    Attributes:
        id: the first member's id.
        label: short name to show.
        sublabel: where it stands, ``file:line`` without folders; for a folded box how many, in how many files.
        language: part of the chain; together with ``file`` the cluster that the box stands in.
        file: path of the file, or for members of several files the pattern they share.
        members: the definitions behind the box, the one on the route first.
        step: 1-based number of the route's step, 0 off the route.
        on_branch: belongs to another way that leaves the route.
        distance: calls between the box and the route.
        condition: of a box on another way: the condition under which it is taken, as in the source.
        tooltip: qualified names and places of the members, one a line.
    """

    id: str
    label: str
    sublabel: str
    language: Language
    file: str
    members: tuple[Definition, ...]
    step: int
    on_branch: bool
    distance: int
    condition: str
    tooltip: str

    @property
    def on_route(self) -> bool:
        """Whether the box is a step of the route."""
        return self.step > 0

    @property
    def count(self) -> int:
        """How many definitions the box stands for."""
        return len(self.members)

    @property
    def cluster(self) -> tuple[Language, str]:
        """The cluster that the box stands in."""
        return self.language, self.file


@dataclass(frozen=True, slots=True)
class Arrow:
    """One arrow: all calls between two boxes.

    Attributes:
        source: id of the calling box.
        target: id of the called box.
        how: the mechanism; of several calls, the one that the route takes or the rarest one.
        label: what to write on the arrow; empty for a plain call.
        on_route: the route goes along it.
        on_branch: another way that leaves the route goes along it.
        count: how many calls it stands for.
        confidence: of the surest call.
        tooltip: the call sites, one a line.
    """

    source: str
    target: str
    how: How
    label: str
    on_route: bool
    on_branch: bool
    count: int
    confidence: Confidence
    tooltip: str


@dataclass(frozen=True, slots=True)
class Picture:
    """Boxes and arrows, ready for drawing.

    Attributes:
        title: what the picture shows.
        nodes: the most important first: the route in order, its branches, then by distance.
        edges: the route's first.
        cut: what was left out, as one sentence; empty where nothing was.
        total_nodes: boxes before anything was left out.
        total_edges: arrows before anything was left out.
    """

    title: str
    nodes: tuple[Node, ...]
    edges: tuple[Arrow, ...]
    cut: str = ""
    total_nodes: int = 0
    total_edges: int = 0

    @property
    def clusters(self) -> Mapping[Language, Mapping[str, Sequence[Node]]]:
        """The boxes by language, in the order of the chain, and by file, in the order of first importance."""
        found: dict[Language, dict[str, list[Node]]] = {}
        for language in Language:
            for node in self.nodes:
                if node.language is language:
                    found.setdefault(language, {}).setdefault(node.file, []).append(node)
        return found


def draw(
    graph: networkx.MultiDiGraph[str], route: Route | None = None, prune: Prune | None = None, *, fold: bool = True
) -> Picture:
    """Make a picture of a call graph.

    Args:
        graph: nodes are `Definition.id` with an attribute ``definition``; edges have an attribute ``edge``.
        route: what to bring out and to prune around.
        prune: which part to draw; everything if None.
        fold: draw alternatives as one box.

    Raises:
        NameNotFound: no definition of the graph is in the file that ``prune`` names.
    """
    prune = prune or Prune()
    definitions, calls = _facts(graph, route)
    groups = _Groups(definitions, calls, route, fold)
    nodes, edges = groups.nodes(), groups.arrows()
    total_nodes, total_edges = len(nodes), len(edges)
    nodes = _keep(nodes, prune, definitions, around=route is not None)
    kept = {node.id for node in nodes}
    edges = [edge for edge in edges if edge.source in kept and edge.target in kept]
    picture = Picture(_title(route), tuple(nodes), tuple(edges), "", total_nodes, total_edges)
    return replace(picture, cut=_cut(picture, _scope(prune, route)))


def limited(picture: Picture, nodes: int, edges: int) -> Picture:
    """Return the most important part of a picture: at most so many boxes and arrows, and the words for what is gone."""
    if len(picture.nodes) <= nodes and len(picture.edges) <= edges:
        return picture
    kept = {node.id for node in picture.nodes[:nodes]}
    arrows = [edge for edge in picture.edges if edge.source in kept and edge.target in kept][:edges]
    linked = {end for edge in picture.edges for end in (edge.source, edge.target)}
    still_linked = {end for edge in arrows for end in (edge.source, edge.target)}
    boxes = [
        node
        for node in picture.nodes
        if node.id in kept and (node.on_route or node.id in still_linked or node.id not in linked)
    ]
    smaller = replace(picture, nodes=tuple(boxes), edges=tuple(arrows))
    return replace(smaller, cut=_cut(smaller, "the most important part"))


def _facts(graph: networkx.MultiDiGraph[str], route: Route | None) -> tuple[dict[str, Definition], list[Edge]]:
    definitions: dict[str, Definition] = {
        key: attributes["definition"] for key, attributes in graph.nodes(data=True) if attributes.get("definition")
    }
    calls: list[Edge] = [
        attributes["edge"]
        for source, target, attributes in graph.edges(data=True)
        if source in definitions and target in definitions
    ]
    if route:
        for step in route.steps:
            for definition in (step.definition, *step.alternatives):
                definitions.setdefault(definition.id, definition)
        for branch in route.branches:
            for definition in branch.definitions:
                definitions.setdefault(definition.id, definition)
        known = set(calls)
        missing = [edge for edge in route.edges if edge not in known]
        calls += [edge for edge in missing if edge.source in definitions and edge.target in definitions]
    calls.sort(key=lambda edge: (edge.call_site, edge.source, edge.target, edge.how.value, edge.written))
    return definitions, calls


class _Groups:
    """Definitions sorted into boxes, and calls into arrows."""

    def __init__(
        self, definitions: Mapping[str, Definition], calls: Sequence[Edge], route: Route | None, fold: bool
    ) -> None:
        self.definitions = definitions
        self.calls = calls
        self.route = route
        self.box = folding.fold(definitions, calls, route) if fold else {key: key for key in definitions}
        self.steps: dict[str, int] = {}
        self.labels: dict[str, str] = {}
        self.branch_boxes: dict[str, int] = {}
        self.conditions: dict[str, str] = {}
        if route:
            for number, step in enumerate(route.steps, start=1):
                self.steps.setdefault(step.definition.id, number)
                self.labels.setdefault(step.definition.id, step.label if fold else step.definition.qualified_name)
            for definition in (definition for branch in route.branches for definition in branch.definitions):
                if self.box[definition.id] not in self.steps:
                    self.branch_boxes.setdefault(self.box[definition.id], len(self.branch_boxes))
            for branch in route.branches:
                if branch.definitions:
                    self.conditions.setdefault(self.box[branch.definitions[0].id], branch.condition)

    def nodes(self) -> list[Node]:
        members: dict[str, list[Definition]] = defaultdict(list)
        for key, box in self.box.items():
            members[box].append(self.definitions[key])
        distance = self._distances()
        found = [self._node(box, group, distance.get(box, UNREACHED)) for box, group in members.items()]
        degree: dict[str, int] = defaultdict(int)
        for call in self.calls:
            degree[self.box[call.source]] += 1
            degree[self.box[call.target]] += 1

        def importance(node: Node) -> tuple[object, ...]:
            if node.on_route:
                return 0, node.step
            linked = 0 if self.route else -degree[node.id]
            place = node.members[0].location
            branch = self.branch_boxes.get(node.id, UNREACHED)
            return 1, branch, node.distance, linked, LANGUAGE_ORDER[node.language], place, node.id

        return sorted(found, key=importance)

    def _node(self, box: str, group: list[Definition], distance: int) -> Node:
        group.sort(key=lambda definition: (definition.id != box, *folding.natural(definition)))
        first = self.definitions[box]
        files = sorted({definition.location.file for definition in group})
        place = folding.folded_place(group)
        if len(files) == 1:
            place = os.path.basename(place)
        lines = [_line(f"{member.qualified_name} at {member.location}") for member in group[:_TOOLTIP_MEMBERS]]
        if len(group) > _TOOLTIP_MEMBERS:
            lines.append(f"… and {len(group) - _TOOLTIP_MEMBERS} more")
        return Node(
            id=box,
            label=self.labels.get(box) or folding.label(group),
            sublabel=place,
            language=first.language,
            file=folding.shared_file(files),
            members=tuple(group),
            step=self.steps.get(box, 0),
            on_branch=box in self.branch_boxes,
            distance=distance,
            condition=self.conditions.get(box, ""),
            tooltip="\n".join([first.kind, *lines]),
        )

    def _distances(self) -> dict[str, int]:
        """Calls between each box and the route: down from callers to callees, or up, but never down after up.

        A neighbour is what the route uses or what uses the route; the other callees of such a user have nothing to do
        with it.
        """
        down: dict[str, set[str]] = defaultdict(set)
        up: dict[str, set[str]] = defaultdict(set)
        for call in self.calls:
            source, target = self.box[call.source], self.box[call.target]
            down[source].add(target)
            up[target].add(source)
        start = {*self.steps, *self.branch_boxes}
        found = _spread(start, down)
        for box, hops in _spread(start, up).items():
            found[box] = min(hops, found.get(box, hops))
        return found

    def arrows(self) -> list[Arrow]:
        on_route, on_branch = self._ways()
        between: dict[tuple[str, str], list[Edge]] = defaultdict(list)
        for call in self.calls:
            between[self.box[call.source], self.box[call.target]].append(call)
        distance = self._distances()

        def importance(arrow: Arrow) -> tuple[object, ...]:
            pair = arrow.source, arrow.target
            if arrow.on_route:
                return 0, on_route[pair]
            if arrow.on_branch:
                return 1, on_branch[pair]
            ends = [distance.get(box, UNREACHED) for box in pair]
            return 2, max(ends), between[pair][0].call_site, pair

        arrows = [
            self._arrow(source, target, calls, on_route.get((source, target)), on_branch)
            for (source, target), calls in between.items()
        ]
        return sorted(arrows, key=importance)

    def _arrow(
        self,
        source: str,
        target: str,
        calls: Sequence[Edge],
        position: int | None,
        on_branch: Mapping[tuple[str, str], int],
    ) -> Arrow:
        order = {confidence: rank for rank, confidence in enumerate(Confidence)}
        chosen = min(calls, key=lambda call: (call.how is not How.LAUNCH, call.how in _PLAIN_CALLS, call.call_site))
        if position is not None and self.route:
            chosen = self.route.edges[position]
        words = [] if chosen.how in _PLAIN_CALLS else [chosen.how.value.replace("_", " ")]
        if position is not None and chosen.call_site.line:
            words.append(f":{chosen.call_site.line}")
        if len(calls) > 1 and position is None:
            words.append(f"×{len(calls)}")
        sites = sorted({_line(f"{call.how.value.replace('_', ' ')} at {call.call_site}") for call in calls})
        return Arrow(
            source=source,
            target=target,
            how=chosen.how,
            label=" ".join(words),
            on_route=position is not None,
            on_branch=(source, target) in on_branch,
            count=len(calls),
            confidence=min((call.confidence for call in calls), key=order.__getitem__),
            tooltip="\n".join(sites[:_TOOLTIP_MEMBERS]),
        )

    def _ways(self) -> tuple[dict[tuple[str, str], int], dict[tuple[str, str], int]]:
        """The pairs of boxes that the route and its branches go along, each with its position."""
        on_route: dict[tuple[str, str], int] = {}
        on_branch: dict[tuple[str, str], int] = {}
        if self.route:
            for position, edge in enumerate(self.route.edges):
                if edge.source in self.box and edge.target in self.box:
                    on_route.setdefault((self.box[edge.source], self.box[edge.target]), position)
            for branch in self.route.branches:
                if not 1 <= branch.step <= len(self.route.steps):
                    continue
                way = [self.box[self.route.steps[branch.step - 1].definition.id]]
                way += [self.box[definition.id] for definition in branch.definitions]
                for pair in zip(way, way[1:], strict=False):
                    on_branch.setdefault(pair, len(on_branch))
        return on_route, on_branch


def _line(text: str) -> str:
    """Return text as one line, whatever the names in it hold."""
    return " ".join(text.split())


def _spread(start: set[str], links: Mapping[str, set[str]]) -> dict[str, int]:
    found = dict.fromkeys(sorted(start), 0)
    queue = deque(found)
    while queue:
        box = queue.popleft()
        for neighbour in links.get(box, ()):
            if neighbour not in found:
                found[neighbour] = found[box] + 1
                queue.append(neighbour)
    return found


def _keep(nodes: list[Node], prune: Prune, definitions: Mapping[str, Definition], around: bool) -> list[Node]:
    if prune.file:
        wanted = prune.file.replace("\\", "/").removeprefix("./").strip("/")
        files = {definition.location.file for definition in definitions.values()}
        chosen = {file for file in files if file == wanted or file.endswith("/" + wanted)}
        if not chosen:
            known = files | {os.path.basename(file) for file in files}
            raise NameNotFound("file", prune.file, "the call graph", known)
        nodes = [node for node in nodes if any(member.location.file in chosen for member in node.members)]
    if prune.language:
        nodes = [node for node in nodes if node.language is prune.language]
    if prune.hops is not None and around:
        nodes = [node for node in nodes if node.distance <= prune.hops]
    return nodes


def _title(route: Route | None) -> str:
    if not route or not route.steps:
        return "Call graph"
    return f"{route.steps[0].label} → {kernel_label(route)}"


def kernel_label(route: Route) -> str:
    """Return the label of the route's kernel, or of its last step where no step is a kernel."""
    launched = {edge.target for edge in route.edges if edge.how is How.LAUNCH}
    kernels = [s.label for s in route.steps if s.definition.kind == "kernel" or s.definition.id in launched]
    return kernels[-1] if kernels else route.steps[-1].label


def _scope(prune: Prune, route: Route | None) -> str:
    words = []
    if prune.hops is not None and route:
        near = {0: "the route and what branches off it", 1: "the route and its direct neighbours"}
        words.append(near.get(prune.hops, f"the route and what is within {prune.hops} calls of it"))
    if prune.file:
        words.append(f"only {prune.file}")
    if prune.language:
        words.append(f"only {prune.language.value}")
    return ", ".join(words)


def _cut(picture: Picture, scope: str) -> str:
    if len(picture.nodes) == picture.total_nodes and len(picture.edges) == picture.total_edges:
        return ""
    boxes = f"{len(picture.nodes)} of {picture.total_nodes} boxes"
    arrows = f"{len(picture.edges)} of {picture.total_edges} arrows"
    return f"Shown: {boxes} and {arrows}{': ' + scope if scope else ''}."
