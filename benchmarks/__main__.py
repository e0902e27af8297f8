"""``python -m benchmarks [NAME …]``: run the benchmarks, or those named."""

from __future__ import annotations

import importlib
import pkgutil
import sys

import benchmarks

_TOOLS = ("measure", "__main__")


def main() -> None:
    names = [module.name for module in pkgutil.iter_modules(benchmarks.__path__) if module.name not in _TOOLS]
    chosen = sys.argv[1:] or names
    unknown = [name for name in chosen if name not in names]
    if unknown:
        sys.exit(f"no benchmark named {', '.join(unknown)}; there are {', '.join(names)}")
    for name in chosen:
        print(f"== {name}")
        importlib.import_module(f"benchmarks.{name}").main()


if __name__ == "__main__":
    main()
