"""The parser process: libclang runs here, so that whatever hostile input does to it, the tracer lives on.

Started as ``python -m tracer.cpp.worker``; reads requests from standard input and answers on standard output.
"""

from __future__ import annotations

import contextlib
import gc
import os
import select
import sys
import threading
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Any

from tracer.cpp.wire import plain, plain_tables, receive, send

if TYPE_CHECKING:
    from tracer.cpp.unit_facts import UnitFacts

_STACK_BYTES = 512 * 1024 * 1024  # for expressions nested as deeply as the parser itself accepts
_RECURSION_LIMIT = 100_000


def serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Answer requests until the other side closes the pipe.

    A request is a tuple beginning with its name: ``parse`` with root, main file, text, arguments, own files, edited
    files and whether to read ahead; ``bodies`` with keys; ``primitives`` with keys; ``trees`` with a key and with how
    many declarations are known, None for none; ``tables``.
    An answer is ``("ok", data)`` or ``("error", kind, message)``.
    """
    from tracer.cpp.libclang import load
    from tracer.cpp.unit import Unit
    from tracer.cpp.unit_facts import UnitFacts
    from tracer.errors import TracerError

    with contextlib.suppress(TracerError):
        load()  # now, because the process may have been started before there is something to parse
    facts: UnitFacts | None = None
    sending = threading.Thread()
    ahead: Iterator[float] = iter(())
    while True:
        try:
            _work_until_asked(requests, ahead)
            request = receive(requests)
        except EOFError:
            return
        try:
            answer: Any
            if request[0] == "parse":
                _, root, main, text, arguments, own_files, edited, is_ahead = request
                path = os.path.join(root, main)
                clang = load()
                texts = {os.path.join(root, file): content for file, content in edited}
                if text is not None:
                    texts[path] = text
                handle = clang.parse(path, list(arguments), texts)
                if handle is None:
                    send(answers, ("error", "parse", "the parser gave up"))
                    continue
                facts = UnitFacts(Unit(clang, handle, root, own_files))
                answer = plain(facts.outline())
                if is_ahead:
                    ahead = facts.ahead()
                    # The answer may be more than a pipe holds and wait there until somebody reads it.
                    sending = threading.Thread(target=_send_quietly, args=(answers, ("ok", answer)))
                    sending.start()
                    continue
            elif facts is None:
                raise TracerError("nothing is parsed yet")
            elif request[0] == "bodies":
                keys = request[1]
                if keys is None:
                    keys = tuple(f.key for f in facts.unit.functions if f.defined)
                answer = plain({key: facts.body(key) for key in keys})
            elif request[0] == "primitives":
                found = facts.primitives(request[1])
                answer = found, plain(facts.plain_bodies(found))
            elif request[0] == "tables":
                answer = plain_tables(facts.tables())
            else:
                _, key, known = request
                trees = facts.plain_trees(key)
                new = None if known is None else plain(tuple(facts.unit.declarations.values())[known:])
                answer = trees, plain_tables(facts.tables()) if new is None else new
            if sending.ident is not None:
                sending.join()
            send(answers, ("ok", answer))
        except TracerError as error:
            send(answers, ("error", "tool", str(error)))
        except RecursionError:
            send(answers, ("error", "depth", "an expression or a type is nested too deeply"))
        except BrokenPipeError:
            return


def _send_quietly(answers: IO[bytes], answer: object) -> None:
    with contextlib.suppress(BrokenPipeError):
        send(answers, answer)


def _work_until_asked(requests: IO[bytes], ahead: Iterator[float]) -> None:
    """Do what will be asked for later, piece by piece, while nothing is asked for.

    The other side waits for each answer before it asks again, so the stream itself never holds a request back.
    """
    if sys.platform == "win32":  # pipes cannot be looked into there
        return
    patience = 0.0
    while not select.select([requests], [], [], patience)[0]:
        try:
            patience = next(ahead)
        except (StopIteration, RecursionError):  # what is nested too deeply is told when it is asked for
            return


def main() -> None:
    """Serve on the standard streams, in a thread with a deep stack."""
    gc.disable()  # a unit's nodes live as long as the process, and there are too many to look at again and again
    requests = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    # Nothing else may write into the answers, and libclang reports its own crashes on standard error.
    with open(os.devnull, "r+b") as nowhere:
        for descriptor in (0, 1, 2):
            os.dup2(nowhere.fileno(), descriptor)
    sys.setrecursionlimit(_RECURSION_LIMIT)
    with contextlib.suppress(ValueError, RuntimeError):
        threading.stack_size(_STACK_BYTES)
    thread = threading.Thread(target=serve, args=(requests, answers))
    thread.start()
    threading.stack_size(0)
    thread.join()


if __name__ == "__main__":
    main()
