"""Makes text from a checkout safe to show: names and paths are data, whatever characters they hold."""

from __future__ import annotations

import re
import unicodedata

# An underscore inside a word begins no emphasis; everywhere else it may.
_UNSAFE_IN_WORDS = re.compile(r"[&<>|`*\[\]\\~#$@]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|(?<![A-Za-z0-9])www\.|://")
_UNSAFE_IN_CODE = re.compile(r"[^A-Za-z0-9 .,:;/+=(){}-]")
_UNSAFE_IN_ADDRESS = re.compile(r"[\s<>()\"'\\`|\[\]]")


def visible(text: str) -> str:
    r"""Return text as one line in which nothing is invisible.

    White space becomes single spaces. Control characters, direction marks, zero-width characters and what is no valid
    Unicode become escapes such as ``\u202e``, so that a name cannot reorder, hide or break what stands beside it.
    """
    if text.isascii() and text.isprintable():
        return " ".join(text.split()) if "  " in text else text.strip()
    shown = []
    for character in text:
        if character.isspace():
            shown.append(" ")
        elif unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Cn"):
            code = ord(character)
            shown.append(f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 65536 else f"\\U{code:08x}")
        else:
            shown.append(character)
    return " ".join("".join(shown).split())


def shortened(text: str, limit: int) -> str:
    """Return text cut in its middle to at most ``limit`` characters, so that its beginning and end stay readable."""
    if len(text) <= limit:
        return text
    front = (limit - 1) * 2 // 3
    back = limit - 1 - front
    return f"{text[:front]}…{text[len(text) - back :] if back else ''}"


def cells(text: str) -> int:
    """Return how many columns of a terminal text takes."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    combining = sum(unicodedata.category(character) in ("Mn", "Me") for character in text)
    return len(text) + wide - combining


def xml(text: str) -> str:
    """Return visible text with the five characters that XML and HTML reserve as entities."""
    text = visible(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace('"', "&quot;").replace("'", "&#39;")


class Markdown(str):
    """Text that is Markdown already and must not be escaped again."""

    __slots__ = ()


def words(text: str) -> Markdown:
    """Return text as Markdown that reads as exactly that text, in a paragraph or in a table's cell."""
    return Markdown(_UNSAFE_IN_WORDS.sub(_entities, visible(text)))


def code(text: str) -> Markdown:
    """Return text as Markdown in the typeface of code.

    A code span of backticks cannot hold every text in a table's cell: a pipe ends the cell, a backslash before a pipe
    is read in two ways. Such text becomes an HTML element with everything in it escaped.
    """
    text = visible(text)
    if not text:
        return Markdown("")
    if not re.search(r"[`|\\]", text):
        return Markdown(f"`{text}`")
    return Markdown(f"<code>{_UNSAFE_IN_CODE.sub(_entities, text)}</code>")


def link(text: Markdown, address: str | None) -> Markdown:
    """Return a Markdown link, or the text alone where there is no address."""
    if not address:
        return text
    return Markdown(f"[{text}]({_UNSAFE_IN_ADDRESS.sub(lambda match: f'%{ord(match.group()):02X}', address)})")


def _entities(match: re.Match[str]) -> str:
    return "".join(f"&#{ord(character)};" if not character.isalnum() else character for character in match.group())
