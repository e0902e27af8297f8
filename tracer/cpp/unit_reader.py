"""One unit as the tracer's own process sees it: out of the cache, or from a parser process and into the cache."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracer.checkout import Checkout
from tracer.cpp import wire
from tracer.cpp.client import Parser, refuse_truncated
from tracer.cpp.facts import BodyFact, OutlineFact
from tracer.cpp.sources import UnitPlan
from tracer.cpp.store import Store
from tracer.cpp.tree import Declaration, Node, Tables, from_plain

_NO_BODY = BodyFact((), (), ())


class UnitReader:
    """One unit: from the cache where it is known, from a parser process where not."""

    def __init__(self, checkout: Checkout, plan: UnitPlan, store: Store, ahead: bool) -> None:
        """Look into the cache; a unit that it does not know begins to parse at once."""
        self.checkout, self.plan, self.store = checkout, plan, store
        kept = store.load(plan.key)
        self.outline_data = kept["outline"] if kept else None
        self.bodies_data: dict[int, Any] = dict(kept["bodies"]) if kept else {}
        self.trees_data: dict[int, Any] = dict(kept["trees"]) if kept else {}
        self.tables_data: object | None = kept["tables"] if kept else None
        self.complete = bool(kept and kept["complete"])
        self.primitives_data: dict[int, tuple[str, ...]] = dict(kept["primitives"]) if kept else {}
        self.declarations_sent: int | None = None  # how many the running process has told; None before the first
        self.changed = False
        self.parser: Parser | None = None if kept else Parser(checkout, plan, ahead=ahead)
        self._outline: OutlineFact | None = None
        self._bodies: dict[int, BodyFact] = {}
        self._trees: dict[int, tuple[Node, ...]] = {}
        self._tables: Tables | None = None

    @property
    def outline(self) -> OutlineFact:
        """What the unit declares."""
        if self._outline is None:
            if self.outline_data is None:
                assert self.parser is not None
                self.outline_data = self.parser.outline()
                self.changed = True
            self._outline = wire.outline(self.outline_data)
            refuse_truncated(self.checkout, self.plan, self._outline.errors)
        return self._outline

    def _running(self) -> Parser:
        if self.parser is None:
            self.parser = Parser(self.checkout, self.plan)
            self.parser.outline()
        return self.parser

    def read(self, keys: Sequence[int] | None) -> None:
        """Make sure that the bodies of ``keys``, or all for None, are known."""
        missing = None if keys is None else [key for key in keys if key not in self.bodies_data]
        if self.complete or (missing is not None and not missing):
            return
        _ = self.outline
        self.bodies_data.update(self._running().bodies(missing))
        self.complete = keys is None
        self.changed = True

    def primitives(self, key: int) -> tuple[str, ...]:
        """Return which documented primitives a function uses, with all of the unit that it reaches."""
        if key not in self.primitives_data:
            _ = self.outline
            primitives, bodies = self._running().primitives((key,))
            self.primitives_data.update(primitives)
            self.primitives_data.setdefault(key, ())
            self.bodies_data = {**bodies, **self.bodies_data}
            self.changed = True
        return self.primitives_data[key]

    def body(self, key: int) -> BodyFact:
        """Return the call sites of one function's body; none where the unit has no body."""
        known = self._bodies.get(key)
        if known is None:
            self.read((key,))
            data = self.bodies_data.get(key)
            known = self._bodies[key] = wire.body(data) if data is not None else _NO_BODY
        return known

    def tree(self, key: int) -> tuple[Node, ...]:
        """Return the parameters and, last, the body of one function as syntax trees."""
        known = self._trees.get(key)
        if known is None:
            _ = self.outline
            if key not in self.trees_data:
                trees, told = self._running().trees(key, self.declarations_sent)
                self.trees_data = {**trees, **self.trees_data}
                self._learn(told)
            known = self._trees[key] = from_plain(self.trees_data[key])
        return known

    def tables(self) -> Tables:
        """Return what the trees read so far refer to; what trees of earlier runs refer to is kept."""
        if self._tables is None:
            _ = self.outline
            if self.tables_data is None:
                self._learn(self._running().tables())
            self._tables = wire.tables(self.tables_data)
        return self._tables

    def _learn(self, told: Any) -> None:
        """Add what new trees refer to: at first a unit's tables, later only the declarations that are new."""
        if self.declarations_sent is None:
            self.tables_data, self._tables = wire.joined_tables(self.tables_data, told), None
            self.declarations_sent = len(told[1])
        else:
            self.tables_data = wire.with_declarations(self.tables_data, told)
            self.declarations_sent += len(told)
            if self._tables is not None:
                for row in told:
                    self._tables.declarations.setdefault(row[0], Declaration(*row))
        self.changed = True

    def close(self) -> None:
        """Keep what was read and end the parser process."""
        # A file that could not be opened is not part of the key, so such a reading must not outlive it.
        unopened = self._outline is not None and any("cannot open file" in error for _, error in self._outline.errors)
        if self.changed and self.outline_data is not None and not unopened:
            self.store.save(
                self.plan.key,
                {
                    "outline": self.outline_data,
                    "bodies": self.bodies_data,
                    "trees": self.trees_data,
                    "tables": self.tables_data,
                    "complete": self.complete,
                    "primitives": self.primitives_data,
                },
            )
        if self.parser is not None:
            self.parser.close()
            self.parser = None
