"""Calls: which function a name means, how its parameters are bound, what a launch is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracer.cpp.tree import Node
from tracer.dispatch import models
from tracer.dispatch.answers import Launch, Reached, Unsupported
from tracer.dispatch.explanation import expression_text
from tracer.dispatch.host_code import Code, HostCode, bare
from tracer.dispatch.mangling import demangled_name, mangled_name
from tracer.dispatch.numbers import Number, arithmetic_type, integer
from tracer.dispatch.scope import Scope
from tracer.dispatch.types import ClassType
from tracer.dispatch.values import (
    Cell,
    Closure,
    Function,
    NamedType,
    Pointer,
    Struct,
    Unknown,
    Value,
    copied,
)

if TYPE_CHECKING:
    from tracer.dispatch.engine import Engine


class FunctionCaller:
    """Enters functions, lambdas and library models on behalf of the engine."""

    def __init__(self, engine: Engine, host: HostCode) -> None:
        """Share the engine's state."""
        self.engine, self.host = engine, host
        self._chosen: dict[tuple[tuple[str, ...], tuple[Value, ...] | None, int], tuple[Code, tuple[Value, ...]]] = {}

    # -- what is called -----------------------------------------------------------------------------------------------
    def call(self, node: Node, scope: Scope) -> Value:
        """Evaluate a ``call`` node."""
        callee, arguments = node.children[0], node.children[1:]
        if callee.kind == "member":
            return self._method(node, callee, arguments, scope)
        if callee.kind == "lambda" and not arguments and len(callee.children) == 1:
            return self._run_body(callee.children[0], Scope(scope))
        function = self.engine.evaluate(callee, scope)
        if isinstance(function, Pointer) and isinstance(function.target, Cell):
            function = function.target.value
        if isinstance(function, Closure):
            return self._closure(function, node, arguments, scope)
        if isinstance(function, Function):
            return self._function(function, node, arguments, scope)
        if isinstance(function, NamedType) and arithmetic_type(function.name) and len(arguments) == 1:
            value = self.engine.evaluate(arguments[0], scope)
            if isinstance(value, Number):
                return models.convert_number(value, arithmetic_type(function.name))
        raise self.engine.unsupported(f"a call of {expression_text(callee)}", node)

    def _function(self, function: Function, node: Node, arguments: tuple[Node, ...], scope: Scope) -> Value:
        if any(self.host.is_inside(usr, self.engine.owner) for usr in function.usrs):
            code, template_arguments = self._choose(function, node, arguments, scope)
            return self.invoke(code, template_arguments, node, arguments, scope)
        model = models.function(function.name, resolved=bool(function.usrs))
        if model is None:
            raise self.engine.unsupported(f"function {function.name}", node)
        site = models.Site(node, function.arguments or ())
        if model.takes_places:
            return model.run(self.engine, [self.engine.place(a, scope) for a in arguments], site)
        return model.run(self.engine, [self.engine.evaluate(a, scope) for a in arguments], site)

    def _method(self, node: Node, callee: Node, arguments: tuple[Node, ...], scope: Scope) -> Value:
        cell = self.engine.place(callee.children[0], scope)
        value = cell.value
        if isinstance(value, Pointer) and isinstance(value.target, Cell):
            value = value.target.value
        if isinstance(value, Unknown):
            return value
        name = callee.text
        if isinstance(value, Struct):
            field = value.fields.get(name)
            if field is not None and isinstance(field.value, Closure):
                return self._closure(field.value, node, arguments, scope)
            raise self.engine.unsupported(f"member function {name}", node)
        method = models.method(value, name)
        if method is None:
            raise self.engine.unsupported(f"{models.class_name(value)}::{name}", node)
        template_arguments = tuple(self.engine.types.argument(child, scope) for child in callee.children[1:])
        evaluated = [self.engine.evaluate(argument, scope) for argument in arguments]
        return method(self.engine, value, evaluated, models.Site(node, template_arguments))

    # -- overloads, templates, specializations ------------------------------------------------------------------------
    def _choose(
        self, function: Function, node: Node, arguments: tuple[Node, ...], scope: Scope
    ) -> tuple[Code, tuple[Value, ...]]:
        """Return the definition that a call enters and its template arguments.

        Raises:
            Unsupported: no definition fits, or several do.
        """
        key = (function.usrs, function.arguments, len(arguments))
        known = self._chosen.get(key)
        if known is not None:
            return known
        found: list[tuple[Code, tuple[Value, ...]]] = []
        deduced = False
        for usr in function.usrs:
            special = self._specialization(usr, function.arguments)
            if special is not None:
                found.append((special, ()))
                continue
            id = self.host.source.id(usr)
            if id is None:
                continue
            code = self.host.code(id)
            least = sum(1 for parameter in code.parameters if not parameter.children)
            if not least <= len(arguments) <= len(code.parameters):
                continue
            if not code.template_parameters:
                if function.arguments is None:
                    found.append((code, ()))
                continue
            given = function.arguments or ()
            if len(given) > len(code.template_parameters):
                continue
            if len(given) < len(code.template_parameters):
                deduced = True
                given = self._deduced(code, given, arguments, scope)
            found.append((code, tuple(self.engine.types.bound(code.template_parameters, given, function.name))))
        if len(found) != 1:
            what = f"{len(found)} overloads of" if found else "no definition of"
            written = f"<{', '.join(map(str, function.arguments))}>" if function.arguments else ""
            where = "" if found else " in any source of the extension"
            raise self.engine.unsupported(f"{what} {function.name}{written}{where}", node)
        if not deduced:
            self._chosen[key] = found[0]
        return found[0]

    def _specialization(self, usr: str, arguments: tuple[Value, ...] | None) -> Code | None:
        if arguments is None:
            return None
        for id, nodes in self.host.specializations(usr):
            values = [self.engine.types.argument(node, Scope()) for node in nodes]
            if len(values) == len(arguments) and all(map(_same_argument, values, arguments)):
                return self.host.code(id)
        return None

    def _deduced(
        self, code: Code, given: tuple[Value, ...], arguments: tuple[Node, ...], scope: Scope
    ) -> tuple[Value, ...]:
        """Deduce trailing template arguments from parameters that are written as ``T``, ``T &`` or ``T const &``."""
        full = list(given)
        for parameter in code.template_parameters[len(given) :]:
            for declared, argument in zip(code.parameters, arguments, strict=False):
                if declared.type is not None and bare(declared.type.spelling) == parameter.text:
                    full.append(_type_of(self.engine.evaluate(argument, scope)))
                    break
            else:
                break
        return tuple(full)

    # -- entering -----------------------------------------------------------------------------------------------------
    def invoke(
        self, code: Code, template_arguments: tuple[Value, ...], node: Node, arguments: tuple[Node, ...], scope: Scope
    ) -> Value:
        """Enter a function of the checkout with the arguments that a call writes."""
        names = {p.text: Cell(a) for p, a in zip(code.template_parameters, template_arguments, strict=True)}
        outer = Scope(names=names)
        parameters: dict[str, Cell] = {}
        for number, parameter in enumerate(code.parameters):
            if number < len(arguments):
                parameters[parameter.text] = self._bound(parameter, arguments[number], scope, outer)
            elif parameter.children:
                with self.engine.inside(code.id):
                    parameters[parameter.text] = self._bound(parameter, parameter.children[0], outer, outer)
            else:
                raise self.engine.unsupported(f"a call of {code.definition.name} without {parameter.text}", node)
        return self.enter(code, Scope(outer, parameters))

    def _bound(self, parameter: Node, argument: Node, scope: Scope, outer: Scope) -> Cell:
        """Bind a parameter: to the argument's own place for a reference, to a converted copy for a value."""
        type_ = parameter.type
        assert type_ is not None
        if type_.form == "reference":
            cell = self.engine.place(argument, scope)
            number = arithmetic_type(type_.canonical)
            if number and isinstance(cell.value, Number) and cell.value.type != number:
                return Cell(models.convert_number(cell.value, number), number)
            converted = (
                cell.value if isinstance(cell.value, Number) else models.coerced(cell.value, bare(type_.canonical))
            )
            return cell if converted is cell.value else Cell(converted)
        value = self.engine.coerced(copied(self.engine.evaluate(argument, scope)), type_, outer)
        return Cell(value, value.type if isinstance(value, Number) else "")

    def enter(self, code: Code, scope: Scope) -> Value:
        """Run a function's body in a scope that has its parameters."""
        engine = self.engine
        saved = engine.owner, engine.errors
        engine.owner, engine.errors = code.id, code.errors
        try:
            value = self._run_body(code.body, scope)
            if isinstance(value, Number):
                return engine.coerced(value, code.result, scope)
            return engine.coerced(value, code.result, scope) if value is not None else None
        except Unsupported as error:
            error.reached.append(_reached(code, scope, error))
            raise
        except RecursionError:
            raise Unsupported(
                f"{code.definition.name}, which calls itself too often", code.definition.location
            ) from None
        finally:
            engine.owner, engine.errors = saved

    def _run_body(self, body: Node, scope: Scope) -> Value:
        outcome = self.engine.execute(body, scope)
        return getattr(outcome, "value", None)

    def _closure(self, closure: Closure, node: Node, arguments: tuple[Node, ...], scope: Scope) -> Value:
        *parameters, body = closure.node.children
        if len(parameters) != len(arguments):
            raise self.engine.unsupported("a lambda called with another number of arguments", node)
        names = {
            parameter.text: self._bound(parameter, argument, scope, closure.scope)
            for parameter, argument in zip(parameters, arguments, strict=True)
        }
        if closure.owner == self.engine.owner:
            return self._run_body(body, Scope(closure.scope, names))
        code = self.host.code(closure.owner)
        saved = self.engine.owner, self.engine.errors
        self.engine.owner, self.engine.errors = code.id, code.errors
        try:
            return self._run_body(body, Scope(closure.scope, names))
        finally:
            self.engine.owner, self.engine.errors = saved

    # -- launches -----------------------------------------------------------------------------------------------------
    def launch(self, node: Node, scope: Scope) -> Value:
        """Record a kernel launch."""
        count = int(node.text)
        kernel = self.engine.evaluate(node.children[0], scope)
        configuration = [self.engine.evaluate(child, scope) for child in node.children[1 : 1 + count]]
        arguments = tuple([self.engine.evaluate(child, scope) for child in node.children[1 + count :]])
        if not isinstance(kernel, Function) or len(kernel.usrs) != 1:
            raise self.engine.unsupported(f"a launch of {expression_text(node.children[0])}", node)
        id = self.host.source.id(kernel.usrs[0])
        if id is None:
            raise self.engine.unsupported(f"kernel {kernel.name}, which no source of the extension defines", node)
        code = self.host.code(id)
        given = self.engine.types.bound(code.template_parameters, kernel.arguments or (), kernel.name)
        shared = configuration[2] if count > 2 else integer(0)
        grid, block = (self._extent(value, node) for value in configuration[:2])
        if not isinstance(shared, Number):
            raise self.engine.unsupported("a launch with an unknown amount of shared memory", node)
        definition = code.definition
        types = [self.engine.types.of(p.type, Scope()) for p in code.parameters if p.type is not None]
        self.engine.run.launches.append(
            Launch(
                definition.name,
                demangled_name(definition.qualified_name, given, types),
                mangled_name(definition.qualified_name, given, types),
                tuple((p.text, str(value)) for p, value in zip(code.template_parameters, given, strict=True)),
                tuple(next((value.numbers() for value in given if isinstance(value, ClassType)), ())),
                grid,
                block,
                int(shared.value),
                self.engine.location(node),
                definition.location,
            )
        )
        self.engine.run.arguments.append(arguments)
        self.engine.run.kernels.append((code, tuple(given)))
        self.engine.run.note_launch()
        return None

    def _extent(self, value: Value, node: Node) -> tuple[int, int, int]:
        parts = models.extent(value)
        if parts is None:
            raise self.engine.unsupported("a launch whose grid or block is not known", node)
        return parts


def _reached(code: Code, scope: Scope, error: Unsupported) -> Reached:
    """Describe the function that an error leaves."""
    cells = [(p.text, scope.find(p.text)) for p in code.template_parameters]
    given = tuple((name, str(cell.value)) for name, cell in cells if cell is not None)
    written = f"<{', '.join(value for _, value in given)}>" if given else ""
    values, error.locals = error.locals, {}
    return Reached(f"{code.definition.name}{written}", given, values, code.definition.location)


def _same_argument(written: Value, given: Value) -> bool:
    """Tell whether a specialization's argument is the given one; a type may be written with fewer qualifiers."""
    if isinstance(written, Number) and isinstance(given, Number):
        return written.value == given.value
    if isinstance(written, NamedType) and isinstance(given, NamedType):
        return written.arguments == given.arguments and (
            f"::{written.name}".endswith(f"::{given.name}") or f"::{given.name}".endswith(f"::{written.name}")
        )
    return bool(written == given)


def _type_of(value: Value) -> Value:
    if isinstance(value, Number):
        return NamedType(value.type)
    return NamedType(type(value).__name__.lower())
