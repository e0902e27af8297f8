"""Arguments that a kernel, what it calls, or the host code on the way to it do not hand on as they are."""

from __future__ import annotations

from collections.abc import Iterable
from weakref import WeakKeyDictionary

from tracer.cpp.handed import exchanged
from tracer.cpp.source import CppSource
from tracer.cpp.tree import Node
from tracer.dataflow.cuda import Kernel
from tracer.dataflow.diagnose import Finding

#: What was found in the functions looked at so far, by their bodies: many kernels have the same ones inlined.
_KNOWN: WeakKeyDictionary[CppSource, dict[int, tuple[Node, list[tuple[Node, str]]]]] = WeakKeyDictionary()


def handed_findings(kernel: Kernel) -> list[Finding]:
    """Return what the function that was followed, and those inlined into it, do not hand on as it is."""
    functions = [kernel.lookup.function(kernel.id), *kernel.followed.values()]
    names = {f.usr: ([p.text for p in f.parameters], [p.text for p in f.template]) for f in functions}
    known = _KNOWN.setdefault(kernel.source, {})
    found = []
    for function in functions:
        if function.body is not None:
            if id(function.body) not in known:
                here = exchanged(function.body, names[function.usr], names.get)
                known[id(function.body)] = function.body, [(node, said) for node, said, is_flag in here if not is_flag]
            for node, said in known[id(function.body)][1]:
                found.append(Finding("swapped", said, None, kernel.location((function.id, node))))
    return found


def handed_on_the_way(source: CppSource, ids: Iterable[str], kernel: str, work: str) -> list[Finding]:
    """Return what host functions, and what stands between a kernel and its work, do not hand on as it is.

    Args:
        source: the C++ side.
        ids: of the host functions on the way to the kernel.
        kernel: id of the kernel.
        work: id of the device function that does its work.
    """
    wrappers = [kernel] if kernel != work else []
    for wrapper in wrappers:  # grows while it is walked through
        below = [target.id for site in source.call_sites(wrapper) for target in site.targets]
        if work not in below:
            wrappers += [id for id in below if source.owns(id) and id not in wrappers]
    return [
        Finding("swapped", said, None, location) for id in (*ids, *wrappers) for location, said in source.exchanged(id)
    ]
