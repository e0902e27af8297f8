"""The one syntax tree of C++ and CUDA source that everything above the front end reads.

A :class:`Node` is small, immutable and free of libclang. It keeps what was written: operators by their spelling,
template arguments as expressions, callees with the declarations that they can mean. A body that libclang repeats — the
lambda inside nested dispatch switches appears 2^n times — is one shared node, so the tree is a directed acyclic graph;
use :func:`walk` to see each node once.

Kinds of nodes, with their children (``?`` optional, ``*`` any number):

==================  ======================================================================================
statements
==================  ======================================================================================
``block``           statement*
``declare``         variable / alias / class / static_assert *
``variable``        text: name; children: [initialiser]?; ``type`` as declared; ``text2``: storage words such as
                    ``static constexpr`` or ``__shared__``
``alias``           text: name; ``type``: what it stands for
``initialise``      text: a data member that a constructor initialises; value
``bind``            text: names of a structured binding, comma-separated; children: [initialiser]
``if``              condition, then, else?; text: ``constexpr`` where written
``for``             init, condition, step, body (``empty`` where omitted)
``for_range``       variable, range, body
``while``, ``do``   condition, body
``switch``          value, body;  ``case`` value, statement;  ``default`` statement
``return``          value?
``break``, ``continue``, ``empty``
``static_assert``   condition, message?
==================  ======================================================================================

==================  ======================================================================================
expressions
==================  ======================================================================================
``name``            text: as written without template arguments, with qualifiers; children: template arguments;
                    ``targets``: what it can refer to outside of the function; empty for a local name
``member``          text: member's name; children: base, template argument*; text2: ``.`` or ``->``
``call``            callee, argument*
``construct``       text: class name; children: argument*; ``targets``: the constructor
``launch``          kernel, grid, block, shared memory, stream, argument*; text: number of launch parameters
``index``           base, index*
``unary``           text: operator, ``p++`` and ``p--`` for the postfix forms; operand
``binary``          text: operator; left, right
``assign``          text: operator (``=``, ``+=``, …); left, right
``conditional``     condition, then, else
``cast``            text: ``static``, ``reinterpret``, ``c``, ``functional``, ``const``, ``dynamic``; operand; ``type``
``literal``         text: the value as written; text2: ``int``, ``float``, ``bool``, ``string``, ``char``, ``null``
``list``            element*; ``type`` where the list constructs one
``lambda``          parameter*, block
``parameter``       text: name; default?; ``type``
``template parameter``  text: name; default?; ``type`` of a value, none for a type
``sizeof``          operand?; ``type``
``new``, ``delete``, ``this``, ``throw``
``type``            a type used as a template argument; ``type``
``raw``             text: source that no rule reads; children: what libclang shows below it
==================  ======================================================================================
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tracer.records import dataclass


@dataclass(frozen=True, slots=True)
class TypeRef:
    """A type as written, and what it is.

    Attributes:
        spelling: as written, with qualifiers.
        canonical: with aliases resolved, where libclang can.
        form: ``value``, ``reference``, ``pointer`` or ``array``.
        class_usr: USR of the class or class template that it names, where that is known.
    """

    spelling: str
    canonical: str
    form: str
    class_usr: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """One construct of the source. See the module's table of kinds.

    Attributes:
        kind: what it is.
        text: the name, operator or literal.
        children: its parts, in the order of the table.
        file: index into the unit's files; -1 where the construct has no text of its own.
        start: byte offset of its first character in that file.
        end: byte offset behind its last character.
        type: the type it declares or names.
        targets: USRs of the declarations that it refers to.
        text2: the second word of the kinds that have one.
    """

    kind: str
    text: str = ""
    children: tuple[Node, ...] = ()
    file: int = -1
    start: int = 0
    end: int = 0
    type: TypeRef | None = None
    targets: tuple[str, ...] = ()
    text2: str = ""

    def __repr__(self) -> str:
        """Return a short form for debugging, without the children."""
        return f"<{self.kind} {self.text!r} {len(self.children)} children at {self.file}:{self.start}-{self.end}>"


EMPTY = Node("empty")


def walk(node: Node) -> Iterator[Node]:
    """Yield ``node`` and everything below it in source order, each shared node once."""
    seen: set[int] = set()
    stack = [node]
    while stack:
        current = stack.pop()
        identity = id(current)
        if identity not in seen:
            seen.add(identity)
            yield current
            if current.children:
                stack += current.children[::-1]


@dataclass(frozen=True, slots=True)
class Declaration:
    """What a USR stands for, as far as one unit shows it.

    Attributes:
        usr: libclang's unified symbol resolution string: the same in every unit that sees the declaration.
        name: the last component.
        qualified_name: with namespaces and classes; explicit template arguments for a specialization.
        kind: ``function``, ``function template``, ``method``, ``constructor``, ``class``, ``class template``,
            ``variable``, ``enumerator``, ``alias``.
        inside: the declaration stands in the checkout, not in a library.
        primary: USR of the template that it specializes or instantiates; empty for anything else.
        parent: USR of the class that it is a member of; empty for anything else.
        file, line, column, end_line: where the name stands; file is an index into the unit's files.
    """

    usr: str
    name: str
    qualified_name: str
    kind: str
    inside: bool
    primary: str = ""
    parent: str = ""
    file: int = -1
    line: int = 0
    column: int = 0
    end_line: int = 0


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the checkout as one unit defines it, without its body.

    Attributes:
        declaration: name, place and kin.
        attributes: CUDA attributes: ``global``, ``device``, ``host``.
        template_parameters: their names, in order.
        template_arguments: of an explicit specialization, as written.
        parameters: ``parameter`` nodes.
        key: number by which the unit finds the body.
        defined: has a body.
    """

    declaration: Declaration
    attributes: tuple[str, ...]
    template_parameters: tuple[str, ...]
    template_arguments: tuple[str, ...]
    parameters: tuple[Node, ...]
    key: int
    defined: bool


@dataclass(frozen=True, slots=True)
class Class:
    """A class of the checkout: what the rules for member calls and types need of it.

    Attributes:
        declaration: name, place and kin.
        template_parameters: their names, in order.
        bases: the base classes as types.
        fields: (name, type) of each data member.
        aliases: (name, type) of each ``using`` and ``typedef``.
        methods: (name, USR) of each member function, constructors under the class's name.
        constants: (name, initialiser) of each static constant member.
        constant_types: the declared type of each of ``constants``.
    """

    declaration: Declaration
    template_parameters: tuple[str, ...]
    bases: tuple[TypeRef, ...]
    fields: tuple[tuple[str, TypeRef], ...]
    aliases: tuple[tuple[str, TypeRef], ...]
    methods: tuple[tuple[str, str], ...]
    constants: tuple[tuple[str, Node], ...]
    constant_types: tuple[TypeRef, ...] = ()


@dataclass(frozen=True, slots=True)
class Tables:
    """What the nodes of one unit refer to.

    Attributes:
        files: the checkout's files, relative to its root; ``Node.file`` is an index into them.
        declarations: by USR, everything that a node's targets can name, libraries included.
        classes: the checkout's classes, by USR.
        aliases: namespace-level type aliases of the checkout: (name, type).
        templates: names behind which a ``<`` opens template arguments.
        template_parameters: by USR, the ``template parameter`` nodes of each function and class template of the
            checkout.
        results: by USR, what each function of the checkout returns.
    """

    files: tuple[str, ...]
    declarations: dict[str, Declaration]
    classes: dict[str, Class]
    aliases: tuple[tuple[str, TypeRef], ...]
    templates: frozenset[str]
    template_parameters: dict[str, tuple[Node, ...]]
    results: dict[str, TypeRef]


# ---------------------------------------------------------------------------------------------------------------------
# Plain form: nested tuples of numbers and strings, for the pipe between processes and for the cache. Shared nodes stay
# shared. (Not pickle: a cache file must never be able to run code.)

Plain = tuple[Any, ...]


def to_plain(roots: Sequence[Node]) -> Plain:
    """Return the nodes below ``roots`` as (types, nodes in post-order, positions of the roots)."""
    types: dict[TypeRef, int] = {}
    numbers: dict[int, int] = {}
    rows: list[Plain] = []

    def number(node: Node) -> int:
        known = numbers.get(id(node))
        if known is not None:
            return known
        children = tuple([number(child) for child in node.children])
        type_number = -1 if node.type is None else types.setdefault(node.type, len(types))
        rows.append(
            (node.kind, node.text, children, node.file, node.start, node.end, type_number, node.targets, node.text2)
        )
        numbers[id(node)] = len(rows) - 1
        return len(rows) - 1

    positions = tuple([number(root) for root in roots])
    plain_types = tuple([(t.spelling, t.canonical, t.form, t.class_usr) for t in types])
    return plain_types, tuple(rows), positions


def from_plain(plain: Plain) -> tuple[Node, ...]:
    """Rebuild what :func:`to_plain` wrote."""
    plain_types, rows, positions = plain
    types = [TypeRef(*row) for row in plain_types]
    nodes: list[Node] = []
    for kind, text, children, file, start, end, type_number, targets, text2 in rows:
        node_type = None if type_number < 0 else types[type_number]
        nodes.append(
            Node(kind, text, tuple([nodes[child] for child in children]), file, start, end, node_type, targets, text2)
        )
    return tuple([nodes[position] for position in positions])
