"""Asks the engine what one call does."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import replace

from tracer.cpp import CppSource, Store
from tracer.dispatch.answers import (
    Argument,
    Assumption,
    Call,
    Device,
    Outcome,
    Prediction,
    Refusal,
    Tensor,
    Unsupported,
    Warned,
)
from tracer.dispatch.engine import Engine
from tracer.dispatch.host_code import Code, HostCode, bare
from tracer.dispatch.models.torch import Tensor as TensorObject
from tracer.dispatch.numbers import Number, arithmetic_type, boolean, convert, integer
from tracer.dispatch.overflow import may_overflow, overflows
from tracer.dispatch.run import SPLITS, Refused, Run, Undecided
from tracer.dispatch.scope import Scope
from tracer.dispatch.values import Cell, Optional, Struct, Value
from tracer.errors import NameNotFound, TracerError
from tracer.extensions import Extension
from tracer.graph import Program
from tracer.model import Language

_OUTCOMES = 32  # listed at most
_OPTIONAL = ("std::optional<", "c10::optional<", "optional<")


class Dispatcher:
    """Answers for one extension of a checkout, call after call. Close it when done."""

    def __init__(
        self, program: Program, extension: Extension | None = None, *, defines: Iterable[str] = (), cache: bool = True
    ) -> None:
        """Choose the extension.

        Args:
            program: the checkout.
            extension: whose host code; None for the one that attention most likely lives in.
            defines: macros of another build than setup.py's, such as ``FLASHATTENTION_DISABLE_ALIBI``.
            cache: keep what such a build was read as.

        Raises:
            TracerError: the checkout builds no extension with CUDA kernels.
        """
        found = extension or program.attention_extension()
        if found is None:
            raise TracerError(
                f"{program.where()} builds no extension with CUDA kernels, so there is nothing to dispatch"
            )
        self.program, self.extension = program, found
        self._own: CppSource | None = None
        added = tuple(defines)
        if added:
            changed = replace(found, defines=(*found.defines, *added))
            self._own = CppSource(program.checkout, changed, Store(cache))
        self.source = self._own or program.source(found)
        self.host = HostCode(self.source)
        self.engine = Engine(self.host)
        self._entries: dict[str, Code] = {}
        self._python_entries: dict[str, str | None] = {}
        self.python_modules: dict[str, ast.Module] = {}

    def close(self) -> None:
        """Keep what was read for the next run."""
        if self._own is not None:
            self._own.close()

    # -- entries ------------------------------------------------------------------------------------------------------
    def entry(self, name: str) -> Code:
        """Return the function that a call enters, by its C++ name or the name that Python knows it by.

        Raises:
            NameNotFound: the extension neither defines nor binds it.
        """
        known = self._entries.get(name)
        if known is None:
            known = self._entries[name] = self.host.code(self._entry_id(name))
        return known

    def _entry_id(self, name: str) -> str:
        ids = self.host.functions_named(name)
        bound = {
            target.id: binding.definition for binding in self.source.bindings() for target in binding.targets
        }  # fmt: skip
        if len(ids) != 1:  # a name that several units use, or one that only Python knows
            called = [id for id, definition in bound.items() if name in (definition.name, definition.qualified_name)]
            ids = [id for id in ids if id in bound] or called
        if len(ids) != 1:
            names = [binding.definition.name for binding in self.source.bindings()]
            names += [self.source.definition(t.id).name for b in self.source.bindings() for t in b.targets]
            raise NameNotFound("entry", name, self.program.where(), [*names, *self.program.python.names()])
        return ids[0]

    def python_entry(self, name: str) -> str | None:
        """Return the id of the Python function that a name means; None where Python has none of that name."""
        if name not in self._python_entries:
            try:
                found = self.program.python.entry(name)
                self._python_entries[name] = found.id if found.language is Language.PYTHON else None
            except NameNotFound:
                self._python_entries[name] = None
        return self._python_entries[name]

    # -- calls --------------------------------------------------------------------------------------------------------
    def predict(
        self, call: Call, device: Device, *, explain: bool = False, forced: tuple[bool, ...] | None = None
    ) -> Prediction:
        """Follow one call down to its launches.

        Raises:
            NameNotFound: no such entry.
            TracerError: the call names a parameter that the entry does not have, or leaves one out.
            Unsupported: the host code does something that the engine does not know.
        """
        code = self.entry(call.entry)
        engine = self.engine
        engine.run = run = Run(device, explain=explain, forced=forced)
        engine.owner = ""
        scope = Scope(Scope(), self._parameters(code, call))
        error: Refusal | None = None
        try:
            engine.functions.enter(code, scope)
        except Refused as refused:
            error = Refusal(refused.message, refused.location)
        launches = () if error else tuple(run.launches)
        note = ""
        if not error and not launches:
            note = "the host code returns without launching a kernel"
            run.note_no_launch()
        return Prediction(
            call, device, error, _num_splits(run), launches, tuple(run.operators), tuple(run.decisions),
            _values(run), note, self._warnings(run, call) if explain and not error else (),
        )  # fmt: skip

    def outcomes(self, call: Call, device: Device, *, explain: bool = False) -> tuple[Outcome, ...]:
        """Return everything that a call can do where a branch depends on what the question does not fix.

        One outcome, without assumptions, is the usual answer.

        Raises:
            Unsupported: more branches than can be listed, or a construct that is not known.
        """
        found: list[Outcome] = []
        waiting: list[tuple[Assumption, ...]] = [()]
        while waiting:
            assumed = waiting.pop(0)
            try:
                taken = tuple(assumption.value for assumption in assumed)
                prediction = self.predict(call, device, explain=explain, forced=taken)
            except Undecided as branch:
                if len(waiting) + len(found) >= _OUTCOMES:
                    raise Unsupported(
                        f"more than {_OUTCOMES} outcomes: {branch.condition} depends on {branch.reason}",
                        branch.location,
                    ) from None
                for value in (False, True):
                    assumption = Assumption(branch.condition, value, branch.reason, branch.location)
                    waiting.append((*assumed, assumption))
                continue
            found.append(Outcome(assumed, prediction))
        return tuple(found)

    def _warnings(self, run: Run, call: Call) -> tuple[Warned, ...]:
        sizes = [size for value in call.arguments.values() if isinstance(value, Tensor) for size in value.shape]
        found: list[Warned] = []
        for launch, (code, given), arguments in zip(run.launches, run.kernels, run.arguments, strict=True):
            if may_overflow(launch, max(sizes, default=0)):
                found += overflows(self.engine, launch, code, given, arguments)
        return tuple(found)

    def _in_this_build(self, function: str, binding: str) -> str:
        """Return a function's id in a build with other macros: those can put it into another namespace."""
        if self._own is None:
            return function
        for bound in self.source.bindings():
            if bound.definition.name == binding and bound.targets:
                return bound.targets[0].id
        raise NameNotFound("binding", binding, f"the host code of {self.extension.name}", ())

    def bound_call(self, function: str, binding: str, values: Sequence[object]) -> Call:
        """Return the call that a binding makes of the arguments that Python passes.

        Args:
            function: id of the C++ function.
            binding: the name that Python calls.
            values: Python's arguments, in order.

        Raises:
            TracerError: Python passes another number of arguments, or one that has no form in C++.
        """
        code = self.host.code(self._in_this_build(function, binding))
        if len(values) > len(code.parameters):
            raise TracerError(
                f"Python passes {len(values)} arguments, but {code.definition.name} ({code.definition.location}) has "
                f"{len(code.parameters)} parameters"
            )
        arguments: dict[str, Argument] = {}
        for parameter, value in zip(code.parameters, values, strict=False):
            if isinstance(value, TensorObject):
                arguments[parameter.text] = Tensor(value.shape, value.dtype, value.stride, value.device, value.contents)
            elif value is None or isinstance(value, int | float):
                arguments[parameter.text] = value
            else:
                raise TracerError(f"Python passes {value!r} for {parameter.text}, which has no form in C++")
        return Call(code.definition.name, arguments)

    def _parameters(self, code: Code, call: Call) -> dict[str, Cell]:
        known = {parameter.text for parameter in code.parameters}
        for name, value in call.arguments.items():
            if name not in known and value is not None:
                raise NameNotFound("parameter", name, f"{code.definition.name} ({code.definition.location})", known)
        cells = {}
        for parameter in code.parameters:
            assert parameter.type is not None
            type_ = bare(parameter.type.canonical)
            given = parameter.text in call.arguments
            if not given and not type_.startswith(_OPTIONAL):
                raise TracerError(
                    f"the call says nothing about {parameter.text}, which {code.definition.name} needs "
                    f"({code.definition.location})"
                )
            cells[parameter.text] = _argument(call.arguments.get(parameter.text), type_, parameter.text)
        return cells


def _argument(value: Argument, type_: str, name: str) -> Cell:
    """Return a parameter's cell: the argument as the binding hands it over.

    Raises:
        TracerError: an argument of a kind that the parameter cannot take.
    """
    made: Value = TensorObject.of(value) if isinstance(value, Tensor) else _number(value) if value is not None else None
    if type_.startswith(_OPTIONAL):
        inner = arithmetic_type(type_.partition("<")[2].rpartition(">")[0])
        return Cell(Optional(convert(made, inner) if inner and isinstance(made, Number) else made, inner))
    number = arithmetic_type(type_)
    if number and isinstance(made, Number):
        return Cell(convert(made, number), number)
    if not number and isinstance(made, TensorObject):
        return Cell(made)
    raise TracerError(f"argument {name} is {value!r}, but the parameter is of type {type_}")


def _number(value: int | float | bool) -> Number:
    if isinstance(value, bool):
        return boolean(value)
    return Number(value, "double") if isinstance(value, float) else integer(value, "long")


def _num_splits(run: Run) -> int | None:
    """Return the number of splits that the kernels are told, where their parameters have such a field."""
    for arguments in run.arguments:
        for argument in arguments:
            if isinstance(argument, Struct):
                cell = argument.fields.get(SPLITS)
                if cell is not None and isinstance(cell.value, Number):
                    return int(cell.value.value)
    return None


def _values(run: Run) -> dict[str, int | float | bool]:
    """Return the numbers in the entry's own local variables."""
    values: dict[str, int | float | bool] = {}
    for name, cell in (run.outermost.names if run.outermost else {}).items():
        if isinstance(cell.value, Number):
            values[name] = bool(cell.value.value) if cell.value.type == "bool" else cell.value.value
    return values


def predict(
    program: Program, call: Call, device: Device, *, defines: Iterable[str] = (), explain: bool = False
) -> Prediction:
    """Follow one call of the checkout's attention extension down to its launches.

    Args:
        program: the checkout.
        call: the C++ entry and its arguments.
        device: on which GPU.
        defines: macros of another build than setup.py's.
        explain: keep every decision on the way.

    Raises:
        TracerError: no such extension, entry or parameter.
        Unsupported: the host code does something that the engine does not know.
    """
    dispatcher = Dispatcher(program, defines=defines)
    try:
        return dispatcher.predict(call, device, explain=explain)
    finally:
        dispatcher.close()


__all__ = ["Dispatcher", "Unsupported", "predict"]
