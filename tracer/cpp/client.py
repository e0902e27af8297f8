"""The tracer's side of a parser process: ask, wait, and say which file is to blame when the parser dies."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from typing import Any

from tracer.checkout import Checkout
from tracer.cpp.process import Died, ParserProcess, take
from tracer.cpp.sources import STUBS, UnitPlan, leaves_first, truncated_file
from tracer.errors import FrontEndError, MissingTool, SourceError


class Parser:
    """One unit in a parser process of its own. The parse runs while the tracer does other things."""

    def __init__(self, checkout: Checkout, plan: UnitPlan, *, ahead: bool = False) -> None:
        """Start the process and the parse; :meth:`outline` waits for it.

        With ``ahead``, the process reads on below kernels while it is not asked for anything.
        """
        self.checkout, self.plan = checkout, plan
        self._process = take()
        self._waiting = True
        root = os.path.realpath(checkout.root)
        arguments = [*plan.arguments]
        arguments += [f"-I{os.path.join(root, folder)}" for folder in plan.include_dirs]
        arguments += ["-isystem", str(STUBS), "-include", str(STUBS / "flashtracer" / "prelude.h")]
        self._parse = ("parse", root, plan.main, plan.text, tuple(arguments), plan.files, plan.edited, ahead)
        with contextlib.suppress(Died):  # waiting for the answer tells, and finds out which file is to blame
            self._process.send(self._parse)

    def outline(self) -> Any:
        """Return what the unit declares, in plain form. Call it once, before anything else.

        Raises:
            FrontEndError: the parser crashed; the message names the file.
            SourceError: a file ends in the middle of something.
        """
        return self._answer()

    def bodies(self, keys: Sequence[int] | None) -> Any:
        """Return the facts of the functions ``keys``, of everything for None."""
        return self._ask(("bodies", None if keys is None else tuple(keys)))

    def primitives(self, keys: Sequence[int]) -> Any:
        """Return which primitives the functions ``keys`` and all that they reach use, and bodies read on the way."""
        return self._ask(("primitives", tuple(keys)))

    def trees(self, key: int, known: int | None) -> Any:
        """Return the syntax trees of a function and of what it calls, and what they refer to, in plain form.

        Of declarations only those that the unit has learnt of since it told ``known`` of them; for None all tables.
        """
        return self._ask(("trees", key, known))

    def tables(self) -> Any:
        """Return what the trees read so far refer to, in plain form."""
        return self._ask(("tables",))

    def close(self) -> None:
        """End the process."""
        self._process.close()

    def _ask(self, request: tuple[Any, ...]) -> Any:
        try:
            self._process.send(request)
        except Died:
            raise self._blame() from None
        return self._answer()

    def _answer(self) -> Any:
        try:
            answer = self._process.receive()
        except Died:
            raise self._blame() from None
        if answer[0] == "ok":
            return answer[1]
        if answer[1] == "tool":
            raise MissingTool(answer[2])
        raise self._blame()

    def _blame(self) -> FrontEndError:
        """Find the file that the parser cannot survive: give it one file at a time, each after what it includes."""
        self.close()
        for file in leaves_first(self.checkout, self.plan.files):
            process = ParserProcess()
            try:
                process.send(("parse", self._parse[1], file, None, *self._parse[4:-1], False))
                answered = process.receive()[0] == "ok"
                if answered:
                    process.send(("bodies", None))
                    answered = process.receive()[0] == "ok"
            except Died:
                answered = False
            finally:
                process.close()
            if not answered:
                return FrontEndError(
                    f"the C++ parser cannot read {file}: it crashes or never ends on this file (nested too deeply, or "
                    "generated?); compare the file with the release, or remove it from the build's sources"
                )
        return FrontEndError(
            f"the C++ parser ended without an answer on {self.plan.name}; each of its files alone can be read, so "
            "memory may have run out: try again with fewer programs running"
        )


def refuse_truncated(checkout: Checkout, plan: UnitPlan, errors: Sequence[tuple[Any, str]]) -> None:
    """Raise when the parser's complaints come from a file that ends in the middle of something.

    Raises:
        SourceError: names the file and the line of what does not close.
    """
    suspicious = any("expected '}'" in message or "unterminated" in message or "#endif" in message
                     for _, message in errors)  # fmt: skip
    if not suspicious:
        return
    found = truncated_file(checkout, plan.files)
    if found is not None:
        file, line = found
        raise SourceError(
            f"{file} ends in the middle of something: what opens at line {line} never closes; the file is truncated: "
            "fetch it again"
        )
