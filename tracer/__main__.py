"""The program's start: runs a command and turns every failure into one line and an exit status."""

from __future__ import annotations

import atexit
import gc
import os
import sys


def main() -> None:
    """Run the command line; exit with 0 for fine, 1 for findings, 2 for bad usage or unreadable input."""
    from tracer.errors import TracerError

    # A command lives for a second and keeps what it makes; the collector would look at all of it again and again, and
    # once more at the end, for a tenth of that second.
    gc.set_threshold(500_000, 20, 100)
    atexit.register(gc.freeze)
    try:
        from tracer.cli import app

        app()
    except TracerError as error:
        message = " ".join(str(error).split())
        print(f"flashtracer: {message}", file=sys.stderr)
        sys.exit(2)
    except BrokenPipeError:
        # The reader of our output went away, as `head` does; there is nobody left to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except Exception as error:
        # A mistake of ours; the checkout may well have provoked it, so its user gets one line too.
        if os.environ.get("FLASHTRACER_TRACEBACK"):
            raise
        what = " ".join(f"{type(error).__name__}: {error}".split())
        print(f"flashtracer: internal error, {what}; FLASHTRACER_TRACEBACK=1 shows where", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("flashtracer: interrupted", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
