"""The one error family of flashtracer.

Every message says what was looked for, where, what was found instead and what to do next, in one line; the command
line prints it after ``flashtracer:`` and exits with status 2.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class TracerError(Exception):
    """Root of everything flashtracer reports about bad input or a missing tool."""


class CheckoutError(TracerError):
    """The checkout cannot be opened: no such folder, no such version, nothing of flash-attention in it."""


class SourceError(TracerError):
    """A source file of the checkout cannot be read as what its name says: binary, truncated, not UTF-8, too large."""


class FrontEndError(TracerError):
    """The C++ parser failed on a file of the checkout, or cannot be started at all."""


class NameNotFound(TracerError):
    """A name that a person typed is not there.

    Attributes:
        name: the name as typed.
        nearest: the names that do exist and are spelled most alike, best first.
    """

    def __init__(self, what: str, name: str, where: str, known: Iterable[str]) -> None:
        """Build the message.

        Args:
            what: what kind of thing was looked for, such as ``entry`` or ``version``.
            name: the name as typed.
            where: where it was looked for.
            known: the names that exist there.
        """
        self.name = name
        self.nearest = nearest(name, known)
        hint = f"nearest: {', '.join(self.nearest)}" if self.nearest else "nothing there has a similar name"
        super().__init__(f"no {what} named '{name}' in {where}; {hint}")


class NoRoute(TracerError):
    """Both ends exist, but no chain of calls leads from one to the other."""


class OutputError(TracerError):
    """A result cannot be written where it was asked for."""


class MissingTool(TracerError):
    """A program or an optional package that this command needs is not installed."""


def nearest(name: str, known: Iterable[str], limit: int = 3) -> tuple[str, ...]:
    """Return up to ``limit`` names of ``known`` that are spelled most like ``name``, best first."""
    names = sorted(set(known))
    found = difflib.get_close_matches(name, names, n=limit, cutoff=0.5)
    if not found:
        found = [known_name for known_name in names if name and name.lower() in known_name.lower()][:limit]
    return tuple(found)
