"""Kernel names out of profilers and object files, taken apart.

Three spellings mean the same kernel: the mangled one, the demangled one with ``128, false``, and the one of NVIDIA's
demangler with ``(int)128, (bool)0``. All become one :class:`KernelName`.
"""

from __future__ import annotations

import re

from tracer.errors import TracerError
from tracer.records import dataclass


class KernelNameError(TracerError):
    """The text is no whole kernel name: cut off, or not a name at all."""


@dataclass(frozen=True, slots=True)
class NameArgument:
    """One template argument: a number, a truth, or a type with arguments of its own.

    Attributes:
        value: ``128``, ``True``; None for a type.
        name: qualified name of a type; empty for a value.
        arguments: of a type; None for what is no template.
    """

    value: int | bool | None = None
    name: str = ""
    arguments: tuple[NameArgument, ...] | None = None

    def __str__(self) -> str:
        """Return it as C++ writes it."""
        if self.value is not None:
            return str(self.value).lower() if isinstance(self.value, bool) else str(self.value)
        if self.arguments is None:
            return self.name
        inner = ", ".join(map(str, self.arguments))
        return f"{self.name}<{inner}{' ' if inner.endswith('>') else ''}>"


@dataclass(frozen=True, slots=True)
class KernelName:
    """A kernel's name, taken apart.

    Attributes:
        given: as it came.
        demangled: the same for every spelling, without the parameter list.
        namespace: such as ``flash``; empty for none.
        name: the last component.
        arguments: the template arguments; empty for none.
    """

    given: str
    demangled: str
    namespace: str
    name: str
    arguments: tuple[NameArgument, ...]


def parse_kernel_name(given: str) -> KernelName:
    """Take a kernel name apart, mangled or demangled.

    Raises:
        KernelNameError: the name is cut off or no name.
    """
    text = _demangled(given.strip())
    text = re.sub(r"^(?:\[clone[^\]]*\]\s*)?(?:__global__\s+)?(?:void|int)\s+", "", text)
    head, arguments, rest = _split(text, given)
    if rest and not rest.startswith("("):
        raise KernelNameError(
            f"'{_short(given)}' is no kernel name: what follows its template arguments is '{_short(rest)}'"
        )
    if not re.fullmatch(r"(?:::)?[A-Za-z_]\w*(?:::(?:[A-Za-z_]\w*|\(anonymous namespace\)))*", head):
        raise KernelNameError(f"'{_short(given)}' is no kernel name")
    namespace, _, name = head.removeprefix("::").rpartition("::")
    taken = tuple(_argument(part, given) for part in arguments)
    shown = str(NameArgument(None, head, taken if arguments else None))
    return KernelName(given, shown, namespace, name, taken)


def _demangled(text: str) -> str:
    if not text.startswith(("_Z", "__Z")):
        return text
    from itanium_demangler import parse  # type: ignore[import-untyped]

    try:
        tree = parse(text.removeprefix("_") if text.startswith("__Z") else text)
    except (NotImplementedError, AssertionError, IndexError, ValueError):
        tree = None
    if tree is None:
        raise KernelNameError(f"'{_short(text)}' is no whole mangled name; profilers cut long names: ask for all of it")
    return str(tree)


def _split(text: str, given: str) -> tuple[str, list[str], str]:
    """Return what stands before the template arguments, those, and what stands behind them."""
    opening = text.find("<")
    before = text if opening < 0 else text[:opening]
    if "(" in before and "(anonymous" not in before:
        head, _, rest = before.partition("(")
        if opening < 0 and text.count("(") != text.count(")"):
            raise KernelNameError(_cut(given))
        return head.strip(), [], f"({rest}"
    if opening < 0:
        return text.strip(), [], ""
    parts: list[str] = []
    start, depth = opening + 1, 1
    for position in range(opening + 1, len(text)):
        character = text[position]
        if character in "<([{":
            depth += 1
        elif character in ">)]}":
            depth -= 1
            if depth == 0:
                parts.append(text[start:position])
                return before.strip(), [part.strip() for part in parts if part.strip()], text[position + 1 :].strip()
        elif character == "," and depth == 1:
            parts.append(text[start:position])
            start = position + 1
    raise KernelNameError(_cut(given))


def _cut(given: str) -> str:
    return (
        f"'{_short(given)}' is cut off: its brackets do not close; profilers shorten long names, ask for the whole one"
    )


def _short(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:77]}..."


_VALUE = re.compile(
    r"\(bool\)\s*([01])|\((?:unsigned |signed )?(?:int|long|short|char)\)\s*(-?\d+)|(true|false)|(-?\d+)[ulUL]*"
)


def _argument(text: str, given: str) -> NameArgument:
    match = _VALUE.fullmatch(text)
    if match:
        cast_bool, cast_int, word, number = match.groups()
        if cast_bool is not None:
            return NameArgument(cast_bool == "1")
        if word is not None:
            return NameArgument(word == "true")
        return NameArgument(int(cast_int if cast_int is not None else number))
    head, arguments, rest = _split(re.sub(r"^(?:struct|class|const)\s+", "", text), given)
    if rest.startswith("::"):
        return NameArgument(None, text)
    return NameArgument(
        None, f"{head}{rest}", tuple(_argument(part, given) for part in arguments) if arguments else None
    )
