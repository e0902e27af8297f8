"""The names of a kernel: as the object file has it (the Itanium C++ ABI) and as a profiler shows it."""

from __future__ import annotations

from collections.abc import Sequence

from tracer.dispatch.answers import Unsupported
from tracer.dispatch.numbers import Number, arithmetic_type
from tracer.dispatch.types import ClassType
from tracer.dispatch.values import NamedType, PointerType, Value, written

_BUILTIN = {
    "void": "v", "bool": "b", "char": "c", "signed char": "a", "unsigned char": "h", "short": "s",
    "unsigned short": "t", "int": "i", "unsigned int": "j", "long": "l", "unsigned long": "m", "long long": "x",
    "unsigned long long": "y", "float": "f", "double": "d",
}  # fmt: skip
_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def demangled_name(name: str, arguments: Sequence[Value], parameters: Sequence[Value]) -> str:
    """Return the name of a kernel as a profiler shows it.

    Args:
        name: qualified name of the kernel.
        arguments: its template arguments; empty for what is no template.
        parameters: types of its parameters.
    """
    taken = f"({', '.join(map(str, parameters))})"
    return f"void {name}<{written(arguments)}>{taken}" if arguments else f"{name}{taken}"


def mangled_name(name: str, arguments: Sequence[Value], parameters: Sequence[Value]) -> str:
    """Return the name of a kernel in the object file, which the Itanium C++ ABI defines.

    Raises:
        Unsupported: a parameter or argument is of a kind that this writer does not encode.
    """
    return _Mangler().function(name, arguments, parameters)


class _Mangler:
    """Writes one name; remembers the parts that a later one may refer back to."""

    def __init__(self) -> None:
        self.seen: dict[str, int] = {}

    def function(self, name: str, arguments: Sequence[Value], parameters: Sequence[Value]) -> str:
        scopes = name.split("::")
        if not arguments:
            own = self._source_name(scopes[-1])
            inner = self._prefix(scopes[:-1])
            text = f"N{inner}{own}E" if inner else own
            return f"_Z{text}{self._parameters(parameters)}"
        if len(scopes) == 1:
            text = self._template_prefix(scopes) + self._arguments(arguments)
        else:
            text = f"N{self._template_prefix(scopes)}{self._arguments(arguments)}E"
        return f"_Z{text}v{self._parameters(parameters)}"

    def _parameters(self, parameters: Sequence[Value]) -> str:
        return "".join(map(self._type, parameters)) if parameters else "v"

    def _source_name(self, name: str) -> str:
        return f"{len(name)}{name}"

    def _remembered(self, key: str) -> str | None:
        number = self.seen.get(key)
        if number is None:
            return None
        return "S_" if number == 0 else f"S{_base36(number - 1)}_"

    def _remember(self, key: str) -> None:
        self.seen.setdefault(key, len(self.seen))

    def _prefix(self, scopes: Sequence[str]) -> str:
        """Write namespaces; each one is a part that can be referred to."""
        if not scopes:
            return ""
        return self._scoped("::".join(scopes), scopes)

    def _template_prefix(self, scopes: Sequence[str]) -> str:
        return self._scoped(f"template {'::'.join(scopes)}", scopes)

    def _scoped(self, key: str, scopes: Sequence[str]) -> str:
        """Write a name in its namespaces, as a whole that can be referred to by a key from then on."""
        known = self._remembered(key)
        if known is not None:
            return known
        text = self._prefix(scopes[:-1]) + self._source_name(scopes[-1])
        self._remember(key)
        return text

    def _arguments(self, arguments: Sequence[Value]) -> str:
        return f"I{''.join(map(self._argument, arguments))}E"

    def _argument(self, argument: Value) -> str:
        if isinstance(argument, Number) and isinstance(argument.value, int):
            digits = f"n{-argument.value}" if argument.value < 0 else str(argument.value)
            return f"L{_BUILTIN[argument.type]}{digits}E"
        return self._type(argument)

    def _type(self, type_: Value) -> str:
        if isinstance(type_, NamedType) and type_.arguments is None:
            builtin = _BUILTIN.get(arithmetic_type(type_.name) or type_.name)
            if builtin is not None:
                return builtin
        if isinstance(type_, PointerType) and type_.mark in ("*", "&"):
            key = str(type_)
            known = self._remembered(key)
            if known is not None:
                return known
            text = ("P" if type_.mark == "*" else "R") + self._type(type_.pointee)
            self._remember(key)
            return text
        if isinstance(type_, NamedType | ClassType):
            return self._class(type_.name, type_.arguments or (), str(type_))
        raise Unsupported(f"the mangled form of {type_}")

    def _class(self, name: str, arguments: tuple[Value, ...], key: str) -> str:
        known = self._remembered(key)
        if known is not None:
            return known
        scopes = name.split("::")
        if scopes[0] == "std":
            raise Unsupported(f"the mangled form of {name}")
        if arguments:
            text = self._template_prefix(scopes) + self._arguments(arguments)
        else:
            text = self._prefix(scopes[:-1]) + self._source_name(scopes[-1])
        self._remember(key)
        return f"N{text}E" if len(scopes) > 1 else text


def _base36(number: int) -> str:
    digits = ""
    while True:
        digits = _DIGITS[number % 36] + digits
        number //= 36
        if number == 0:
            return digits
