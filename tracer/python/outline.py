"""What a file defines, read off its text without parsing it.

A sieve before the parser, and the source of the names offered when a typed name does not exist: text in a string that
looks like a definition is let through.
"""

from __future__ import annotations

import re

_DEFINITION = re.compile(r"^([ \t]*)(?:async[ \t]+)?(def|class)[ \t]+(\w+)", re.MULTILINE)


def outline(text: str) -> tuple[str, ...]:
    """Return the names of top-level functions and classes, and ``Class.method``, in source order."""
    found: list[str] = []
    around: list[tuple[int, str, str]] = []
    for match in _DEFINITION.finditer(text):
        indent, word, name = match.groups()
        depth = len(indent.expandtabs())
        while around and around[-1][0] >= depth:
            around.pop()
        outer = around[-1] if around else None
        around.append((depth, word, name))
        if outer is None:
            found.append(name)
        elif outer[1] == "class" and len(around) == 2:
            found.append(f"{outer[2]}.{name}")
    return tuple(dict.fromkeys(found))


def defines(text: str, name: str) -> bool:
    """Whether a text may define a function, method, class or alias of this last name."""
    if name not in text:
        return False
    written = re.escape(name)
    return bool(
        re.search(
            rf"^[ \t]*(?:(?:async[ \t]+)?def|class)[ \t]+{written}\b|^{written}[ \t]*(?::[^=\n]*)?=(?!=)",
            text,
            re.MULTILINE,
        )
    )


def callable_attributes(text: str) -> frozenset[str]:
    """Return every name under which an object of a text's classes can hold something to call.

    Those are the names of functions, of attributes that are assigned to, and of fields declared as ``Callable``.
    """
    names = set(re.findall(r"def (\w+)", text))
    names.update(re.findall(r"\.(\w+) *=(?!=)", text))
    names.update(re.findall(r"\.(\w+): [^=\n(]*=", text))
    for match in re.finditer("Callable", text):
        line = text[text.rfind("\n", 0, match.start()) + 1 : match.start()]
        names.add(line.partition(":")[0].strip())
    return frozenset(names)
