"""The part of the C++ front end that follows expressions: what each kind of node reads, writes and gives."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from tracer.cpp.tree import Node
from tracer.dataflow.addresses import UNKNOWN, Address, Step
from tracer.dataflow.frames import Closure, Frame, Object, Thing
from tracer.dataflow.ir import Formula, Ref, Site, Value, decided, flags_of
from tracer.dataflow.library import CONSTANTS, instruction, meaning
from tracer.dataflow.library_calls import LibraryCalls
from tracer.dataflow.names import COUNTING, OPERATORS, constant_of, plain


class Undecided(Exception):
    """A compile-time flag chooses between two tensors: both kernels that come of it must be followed, one by one."""

    def __init__(self, flags: Iterable[str]) -> None:
        """Name the flags."""
        super().__init__()
        self.flags = sorted(flags)


class Expressions(LibraryCalls):
    """Expressions of the function that is followed."""

    def thing(self, node: Node) -> Thing:
        """Follow an expression: a value, a reference, an object, a closure or a type."""
        handler = getattr(self, f"_thing_{node.kind}", None)
        if handler is not None:
            return handler(node)
        values = [self.thing(child) for child in node.children]
        operands = [self.as_value(thing) for thing in values if isinstance(thing, Ref | Value)]
        return self.value("opaque", operands, self.site(node), node.kind)

    def _thing_name(self, node: Node) -> Thing:
        local = self.frame.find(node.text)
        if local is not None:
            return local
        if node.text in self.frame.template:
            return self.frame.template[node.text]
        this = self.frame.this
        if this is not None and "::" not in node.text:
            field = self.field_called(this, node.text)
            if field is not None:
                return field
            constant = self.class_constant(this.cls, node.text)
            if constant is not None:
                return self.thing(constant)
        qualifier, _, last = node.text.rpartition("::")
        if qualifier:
            written = self.class_written(qualifier)
            constant = self.class_constant(written[0], last) if written is not None else None
            if written is not None and constant is not None:
                saved, self.frame = self.frame, Frame(self.frame.id, self.class_arguments(*written))
                result = self.thing(constant)
                self.frame = saved
                return result
        if node.text in CONSTANTS:
            return self.const(CONSTANTS[node.text], self.site(node))
        return self.value("param", (), self.site(node), node.text)

    def _thing_this(self, node: Node) -> Thing:
        return self.frame.this

    def _thing_member(self, node: Node) -> Thing:
        base = self.thing(node.children[0])
        site = self.site(node)
        if isinstance(base, Object):
            constant = self.class_constant(base.cls, node.text)
            return self.thing(constant) if constant is not None else self.member(base, node.text, site)
        if isinstance(base, Ref):
            if base.storage.space == "argument" and not base.is_indexed:
                storage = self.input(f"{base.storage.name}.{node.text}", None)
                return Ref(storage, storage.name)
            if base.storage.space in ("shared", "registers") and base.is_pointer and not base.is_indexed:
                return self.part(base, ("member", node.text), node.text, site)
            return base
        if isinstance(base, Value) and base.op == "param":
            return self.value("symbol", (), site, f"{base.text}.{node.text}")
        return base

    def _thing_literal(self, node: Node) -> Thing:
        site = self.site(node)
        text = node.text.replace("'", "")
        if node.text2 == "bool":
            return self.const(text == "true", site)
        try:
            if node.text2 == "int":
                return self.const(int(text.rstrip("uUlLzZ"), 0), site)
            if node.text2 == "float":
                return self.const(float(text.rstrip("fFlL")), site)
        except ValueError:
            pass
        return self.value("opaque", (), site, text[:40])

    def _thing_unary(self, node: Node) -> Thing:
        site, operator = self.site(node), node.text
        thing = self.thing(node.children[0])
        if operator == "&":
            if isinstance(thing, Ref):
                return (
                    self.part(thing, (node.file, node.start), "", site)
                    if thing.is_indexed
                    else thing.view(is_pointer=True)
                )
            return thing
        if operator == "*":
            if isinstance(thing, Ref) and thing.storage.space == "argument":
                thing.storage.space = "global"
            return thing.view(is_pointer=True) if isinstance(thing, Ref) else thing
        if operator in COUNTING:
            if isinstance(thing, Ref):
                before = self.read(thing, site)
                op = "add" if "+" in operator else "sub"
                self.write(thing, self.operation(op, [before, self.const(1, site)], site), site)
                return before if operator.startswith("p") else thing
            return thing
        value = self.as_value(thing, site)
        if operator == "-":
            return self.operation("neg", [value], site)
        if operator == "!":
            constant = constant_of(value)
            return (
                self.const(not constant, site) if isinstance(constant, bool | int) else self.value("not", [value], site)
            )
        return value if operator == "+" else self.value("complement", [value], site)

    def _thing_binary(self, node: Node) -> Thing:
        site, operator = self.site(node), node.text
        left_node, right_node = node.children
        if operator == ",":
            self.thing(left_node)
            return self.thing(right_node)
        left = self.thing(left_node)
        if operator in ("&&", "||"):
            first = self.as_value(left, site)
            formula = self.formula(first)
            if isinstance(formula, bool):
                return self.evaluated(right_node) if formula == (operator == "&&") else self.const(formula, site)
            second = self.evaluated(right_node)
            return self.value("and" if operator == "&&" else "or", [first, second], site)
        right = self.thing(right_node)
        if isinstance(left, Ref) and left.is_pointer and operator in ("+", "-"):
            offset = self.as_value(right, site)
            if left.storage.space == "argument":
                left.storage.space = "global"
            moved = left.view(
                loops=offset.loops, indices=(*left.indices, offset), address=_moved(left, offset, operator)
            )
            if moved.storage.space in ("shared", "registers") and not _is_of_thread(offset):
                return self.part(moved, (node.file, node.start), "", site)
            return moved
        if isinstance(left, Ref) and left.storage.space == "global" and not left.is_indexed and operator in ("+", "-"):
            offset = self.as_value(right, site)
            return left.view(
                loops=offset.loops, indices=(*left.indices, offset), is_pointer=True,
                address=_moved(left, offset, operator),
            )  # fmt: skip
        values = [self.as_value(left, site), self.as_value(right, site)]
        return self.operation(OPERATORS.get(operator, operator), values, site)

    def _thing_assign(self, node: Node) -> Thing:
        site, operator = self.site(node), node.text
        left_node, right_node = node.children
        if left_node.kind == "call" and left_node.children[0].kind == "member":
            found = meaning(left_node.children[0].text)
            base = self.thing(left_node.children[0].children[0])
            if found is not None and found.does == "view" and isinstance(base, Ref):
                right = self.thing(right_node)
                self.as_value(right, self.site(right_node))
                self._move(left_node.children[0].children[0], base, right)
                return base
        right = self.thing(right_node)
        left = self.thing(left_node)
        if not isinstance(left, Ref):
            return left
        if isinstance(left, Ref) and left.is_pointer and left.storage.space == "shared" and left_node.kind == "name":
            self._move(left_node, left, right)
        if isinstance(left, Ref) and left.is_pointer and left.storage.space == "global" and left_node.kind == "name":
            offset = self.as_value(right, site) if operator in ("+=", "-=") else None
            moved = left.view(address=_moved(left, offset, operator[0])) if offset is not None else right
            self._move(left_node, left, moved)
            return left
        value = self.as_value(right, site)
        if operator != "=":
            value = self.operation(OPERATORS.get(operator[:-1], operator), [self.read(left, site), value], site)
        self.write(left, value, site)
        return left

    def _move(self, name: Node, base: Ref, right: Thing) -> None:
        """Move a pointer: what is behind it stays what it is, but its address is another one."""
        if base.storage.space == "shared" and self.open_loops:
            base.storage.moves.append(self.path)
        if name.kind != "name" or base.storage.space != "global":
            return
        if base.is_alias:
            self.lost.add(base.storage)  # the pointer of the caller moves too
        before, after = base.address or Address(), UNKNOWN
        if isinstance(right, Ref) and right.storage is base.storage and right.address is not None:
            after = right.address
        walk = next((walk for walk, _ in before.walks if walk.loop in self.open_loops[-1:]), None)
        guards = self.path[len(walk.loop.guards) if walk is not None else 0 :]
        if after.is_known and after.steps[: len(before.steps)] == before.steps:
            steps = [replace(step, guards=guards) for step in after.steps[len(before.steps) :]]
        else:
            steps = [Step(self.undefined, guards=guards)]  # it is not known where it points to if that happens
        if walk is not None:
            walk.moves += steps
            after = before.walking(walk, len(walk.moves))
        elif guards or steps[0].index is not self.undefined:
            after = before.moved(*steps)
        self.frame.rebind(name.text, base.view(address=after))

    def _thing_conditional(self, node: Node) -> Thing:
        condition, then_node, other_node = node.children
        site = self.site(node)
        formula = self.formula(self.evaluated(condition))
        formula = decided(formula, self.known)
        if isinstance(formula, bool):
            return self.thing(then_node if formula else other_node)
        things: list[Thing] = [None, None]

        def follow(number: int, side: Node) -> bool:
            thing = self.thing(side)
            is_pointer = isinstance(thing, Ref) and (thing.is_pointer or thing.storage.space in ("global",))
            things[number] = thing if is_pointer or not isinstance(thing, Ref) else self.read(thing, site)
            return False

        self.branch(formula, lambda: follow(0, then_node), lambda: follow(1, other_node), site)
        if things[0] is None or things[1] is None:
            return things[0] if things[1] is None else things[1]
        return self._either(formula, things[0], things[1], site, node)

    def _either(self, formula: Formula, then: Thing, other: Thing, site: Site, node: Node) -> Thing:
        if isinstance(then, Ref) and isinstance(other, Ref):
            if then.storage is other.storage:
                if then.address is None or other.address is None or then.address == other.address:
                    return other
                chosen = then.address.either(other.address, lambda a, b: self.select(formula, a, b, site))
                return other.view(address=chosen)
            if then.is_pointer or other.is_pointer or "global" in (then.storage.space, other.storage.space):
                flags = flags_of(formula)
                if flags and {then.storage.space, other.storage.space} <= {"global", "argument"}:
                    raise Undecided(flags)
                if then.storage.space == other.storage.space == "registers":
                    return self.fresh(self.select(formula, self.read(then, site), self.read(other, site), site))
                return self.part(then, (node.file, node.start), "", site)
        if isinstance(then, Ref | Value) and isinstance(other, Ref | Value):
            return self.select(formula, self.as_value(then, site), self.as_value(other, site), site)
        return then

    def _thing_cast(self, node: Node) -> Thing:
        parts = [child for child in node.children if child.kind not in ("type",)]
        if node.text in ("functional", "c", "static") and parts:
            last = parts[-1]
            if last.kind == "list":
                return self._listed(node, last)
            thing = self.thing(last)
            if node.text != "c" and isinstance(thing, Ref) and (thing.is_indexed or self.lookup.is_scalar(node.type)):
                thing = self.read(thing, self.site(node))
            if isinstance(thing, Value) and self.lookup.is_whole(node.type):
                self.whole.add(thing.number)
            return thing
        if not parts:
            return self.const(0, self.site(node))
        thing = self.thing(parts[-1])
        if node.text == "reinterpret" and isinstance(thing, Value):
            inner = plain(thing)
            if inner.op == "select" and all(plain(side).op == "input" for side in inner.args):
                raise Undecided(flags_of(inner.condition))
        if node.text == "reinterpret" and isinstance(thing, Ref):
            if thing.storage.space == "argument":
                thing.storage.space = "global"
            return thing.view(is_pointer=True)
        return thing

    def _listed(self, node: Node, items: Node) -> Thing:
        if items.children:
            return self.thing(items.children[0])
        found = constant_in(node.type.canonical if node.type is not None else "")
        return self.const(found if found is not None else 0, self.site(node))

    def _thing_call(self, node: Node) -> Thing:
        return self.call(node)

    def _thing_index(self, node: Node) -> Thing:
        base = self.thing(node.children[0])
        if isinstance(base, Object):
            methods = [m for m in self.lookup.methods(base.cls, "operator[]") if m.takes(len(node.children) - 1)]
            if methods:
                return self.inline(methods[0], node.children[1:], (), base, dict(base.template), self.site(node))
        return self.indexed(base, node.children[1:], self.site(node))

    def _thing_construct(self, node: Node) -> Thing:
        built = self.construct(node.type, node.text, node.children, self.site(node))
        if built is not None:
            return built
        values = [self.thing(child) for child in node.children if child.kind != "list"]
        if len(values) == 1 and isinstance(values[0], Ref) and values[0].is_pointer and len(node.children) == 1:
            return values[0]  # an address as a number
        if len(values) == 1 and len(node.children) == 1 and isinstance(values[0], Ref | Value):
            made = self.value("convert", [self.as_value(values[0], self.site(node))], self.site(node), node.text)
            if self.lookup.is_whole(node.type):
                self.whole.add(made.number)
            return made
        shape = self.value("shape", (), self.site(node), node.text)
        spelling = node.type.spelling if node.type is not None else ""
        if spelling.startswith(("Stride<", "cute::Stride<")):
            self.tuples[shape.number] = tuple([self._static(text) for text in self.lookup.arguments_of(spelling)])
        return shape

    def _static(self, text: str) -> Value:
        """Return the number that a static integer such as ``_1`` or ``Int<size>`` is."""
        found = re.fullmatch(r"_(\d+)|(?:cute::)?(?:Int|C)<(.+)>", text)
        argument = int(found.group(1)) if found is not None and found.group(1) else None
        if argument is not None:
            return self.const(argument)
        thing = self.template_argument(found.group(2) if found is not None else text)
        return thing if isinstance(thing, Value) else self.value("opaque", (), None, text)

    def _thing_list(self, node: Node) -> Thing:
        if node.type is not None and self.lookup.class_of(node.type) is not None:
            return self.construct(node.type, node.type.spelling, node.children, self.site(node))
        for child in node.children:
            self.thing(child)
        return (
            self.const(0.0, self.site(node)) if not node.children else self.value("shape", (), self.site(node), "list")
        )

    def _thing_lambda(self, node: Node) -> Thing:
        return Closure(node, self.frame)

    def _thing_raw(self, node: Node) -> Thing:
        site = self.site(node)
        is_assembly = node.text.startswith("asm")
        if is_assembly and self.assembly_order(node, site):
            return None
        does = instruction(node.text) if is_assembly else ""
        if not does:
            return self.value("opaque", (), site, node.text[:40])
        things = [self.thing(child) for child in node.children]
        refs: list[Ref] = []
        for thing in things:
            if isinstance(thing, Ref) and all(thing.storage is not other.storage for other in refs):
                refs.append(thing)
        whole = [ref.view(is_indexed=False, indices=()) for ref in refs]
        if does == "product" and len(refs) >= 3:
            product = self.value("matmul", [self.read(whole[1], site), self.read(whole[2], site)], site)
            self.write(refs[0], self.value("add", [self.read(refs[0], site), product], site), site)
        elif does == "copy" and len(refs) >= 2:
            self.write(whole[0], self.value("copy", [self.read(refs[1], site)], site), site)
        elif does == "exp2" and refs:
            self.write(refs[0], self.value("exp2", [self.as_value(things[-1], site)], site), site)
        return None

    def _thing_sizeof(self, node: Node) -> Thing:
        return self.value("param", (), self.site(node), f"sizeof {node.type.spelling if node.type is not None else ''}")

    def _thing_empty(self, node: Node) -> Thing:
        return None


def _moved(ref: Ref, offset: Value, operator: str) -> Address | None:
    """Return the address behind a reference to global memory plus or minus an offset."""
    if ref.storage.space != "global":
        return None
    return (ref.address or Address()).moved(Step(offset, sign=-1 if operator == "-" else 1))


def _is_of_thread(offset: Value) -> bool:
    """Tell whether an offset addresses an element, one for each thread or step, and cuts no buffer in parts."""
    waiting, seen = [offset], set()
    while waiting:
        value = plain(waiting.pop())
        if value.number in seen:
            continue
        seen.add(value.number)
        if value.op in ("index", "phi") or (value.op == "symbol" and value.text.startswith("threadIdx")):
            return True
        waiting += value.args
    return False


def constant_in(canonical: str) -> int | None:
    """Return the number that a type such as ``cute::C<1>`` stands for."""
    found = re.fullmatch(r"(?:const )?(?:cute::)?(?:C|Int|integral_constant)<(?:int, ?)?(-?\d+)>", canonical)
    return int(found.group(1)) if found else None
