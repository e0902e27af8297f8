"""The part of the C++ front end that notes what orders accesses to memory: barriers, fences, and waits for copies."""

from __future__ import annotations

from collections.abc import Sequence

from tracer.cpp.tree import Node
from tracer.dataflow.frames import Thing
from tracer.dataflow.ir import Event, Ref, Site, Value, plain
from tracer.dataflow.library import Meaning, instructions
from tracer.dataflow.names import Names, constant_of

_GROUPS_OF_A_WARP = ("tiled_partition", "coalesced_threads")
_ORDERING = frozenset(("block", "warp", "fence", "wait"))


class Ordering(Names):
    """What orders accesses in the function that is followed."""

    def template_node(self, node: Node, text: str = "") -> Thing:
        """Return what a template argument is."""
        raise NotImplementedError

    def library_order(
        self, found: Meaning, name: str, callee: Node, arguments: Sequence[Node], base: Thing, site: Site
    ) -> Thing:
        """Follow a call of a library's barrier, fence or wait."""
        if found.does == "wait":
            written = [self.template_node(child) for child in callee.children if child.kind != "this"]
            counts = [constant_of(argument) for argument in written if isinstance(argument, Value)]
            groups = next((count for count in counts if isinstance(count, int)), 0)
            # CuTe and CUTLASS wait for all copies, also for those of no group, where no group may be under way.
            self._order("wait", site, groups, waits_for_all=not groups)
        elif found.does == "fence":
            self._order("fence", site)
        else:
            group = self.thing(arguments[0]) if base is None and arguments else base
            text = plain(self.as_value(group)).text if isinstance(group, Ref | Value) else ""
            self._order("warp" if text.startswith(_GROUPS_OF_A_WARP) else found.op, site)
            if name.startswith("__syncthreads_"):
                return self.value("opaque", (), site, name)
        return None

    def assembly_order(self, node: Node, site: Site) -> bool:
        """Follow an ``asm`` statement of instructions that order accesses; tell whether it is one."""
        written = instructions(node.text)
        if not any(does in _ORDERING for does, _, _ in written):
            return False
        things = [self.thing(child) for child in node.children]
        counts = [constant_of(thing) for thing in things if isinstance(thing, Value)]
        passed = next((count for count in counts if isinstance(count, int)), 0)
        for does, name, operand in written:
            if does == "wait":
                is_all = name.startswith("cp.async.wait_all")
                groups = 0 if is_all else int(operand) if operand.isdigit() else passed
                self._order("wait", site, groups, waits_for_all=is_all)
            elif does in _ORDERING:
                self._order(does, site)
        return True

    def _order(self, kind: str, site: Site, groups: int = 0, *, waits_for_all: bool = False) -> None:
        self.events.append(Event(kind, None, site, self.path, groups=groups, waits_for_all=waits_for_all))
