"""Arguments, pointers and strides that stand in each other's place, in a kernel, above it and in the host code."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.dataflow.mutants import copy_of
from tests.releases import release
from tracer.checkout import open_checkout
from tracer.cpp.handed import _bare, exchanged
from tracer.cpp.source import CppSource
from tracer.cpp.tree import Node, walk
from tracer.crosscheck import CrossCheck, analyse, check
from tracer.dataflow.cuda import Kernel
from tracer.dataflow.functions import KernelFunction, backward_functions, forward_functions
from tracer.dataflow.host import HostCode
from tracer.dataflow.reference import Reference
from tracer.graph import Program


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Program]]:
    folder = copy_of("2.5.8", tmp_path_factory.mktemp("handed") / "copy")
    with Program(open_checkout(str(folder)), cache=False) as program:
        yield folder, program


class Copy:
    """A release's files, of which one text is changed for a while."""

    def __init__(self, folder: Path, program: Program) -> None:
        self.folder, self.program = folder, program

    def with_edits(self, source: CppSource, edits: list[tuple[str, Node, str]], algorithm: str) -> CrossCheck:
        """Put texts in the places of nodes of one file, check, and put the file back."""
        assert edits, "the edit was not located"
        (name,) = {source.location(id, node).file for id, node, _ in edits}
        file = self.folder / name
        right = file.read_bytes()
        data = right
        for _, node, text in sorted(edits, key=lambda edit: -edit[1].start):
            data = data[: node.start] + text.encode() + data[node.end :]
        try:
            file.write_bytes(data)
            with Program(open_checkout(str(self.folder)), cache=False) as program:
                return check(program, algorithm=algorithm)
        finally:
            file.write_bytes(right)


@pytest.fixture(scope="module")
def copy(opened: tuple[Path, Program]) -> Copy:
    return Copy(*opened)


def forward(program: Program) -> KernelFunction:
    return next(iter(forward_functions(program)))


def said(answer: CrossCheck) -> list[str]:
    return [problem.message for one in answer.checks for problem in one.problems]


def parameters(source: CppSource, node: Node) -> list[str]:
    """Return the names of the parameters of what a call means; none where that is not known."""
    callee = node.children[0] if node.children else node
    id = source.id(callee.targets[0]) if callee.targets else None
    return [parameter.text for parameter in source.tree(id)[:-1]] if id is not None else []


def exchange(source: CppSource, id: str, fits: Callable[[str], bool]) -> list[tuple[str, Node, str]]:
    """Exchange the first two arguments of a call that have the names of their parameters."""
    for node in walk(source.tree(id)[-1]):
        if node.kind == "call" and fits(node.children[0].text):
            names = parameters(source, node)
            alike = [a for a, name in zip(node.children[1:], names, strict=False) if _bare(a) == name]
            if len(alike) > 1:
                one, other = alike[-2:]
                return [(id, one, source.text(id, other)), (id, other, source.text(id, one))]
    return []


def test_exchanged_arguments_of_a_host_function_are_caught(copy: Copy) -> None:
    function = forward(copy.program)
    found = [exchange(function.source, id, lambda _: True) for id in function.host()]
    edits = next(edits for edits in found if edits)
    answer = copy.with_edits(function.source, edits, "forward")
    assert any("in each other's place" in message for message in said(answer))


def test_exchanged_flags_between_a_kernel_and_its_work_are_caught(copy: Copy) -> None:
    function = forward(copy.program)
    source, work = function.source, function.definition
    edits = []
    for site in source.call_sites(function.kernel.id):
        for target in site.targets:
            for node in walk(source.tree(target.id)[-1]):
                if node.kind == "name" and node.targets and source.id(node.targets[0]) == work.id:
                    named = [child for child in node.children if _bare(child) in work.template_parameters]
                    one, other = named[1:3]
                    edits += [
                        (target.id, one, source.text(target.id, other)),
                        (target.id, other, source.text(target.id, one)),
                    ]
    answer = copy.with_edits(source, edits, "forward")
    assert any("in each other's place" in message for message in said(answer))


def test_exchanged_arguments_inside_of_a_kernel_are_caught(copy: Copy) -> None:
    function = forward(copy.program)
    kernel = Kernel(function.source, function.definition.id, function.flags)
    edits = next(edits for c in kernel.followed.values() if (edits := exchange(function.source, c.id, lambda _: True)))
    answer = copy.with_edits(function.source, edits, "forward")
    assert any("in each other's place" in message for message in said(answer))


def host_that_fills(function: KernelFunction, field: str) -> tuple[str, list[Node]]:
    """Return the host function that assigns a member, and its assignments."""
    host = next(HostCode(function.source, function.host).filled([field]))
    body = function.source.tree(host.id)[-1]
    return host.id, [node for node in walk(body) if node.kind == "assign" and node.children[0].kind == "member"]


def field_of(copy: Copy, symbol: str) -> str:
    answer = check(copy.program, algorithm="forward")
    return dict(answer.checks[0].inputs)[symbol].rpartition(".")[2]


def test_tensors_that_the_host_exchanges_are_caught(copy: Copy) -> None:
    function = forward(copy.program)
    fields = [field_of(copy, symbol) for symbol in ("K", "V")]
    id, assignments = host_that_fills(function, fields[0])
    one, other = [next(n.children[1] for n in assignments if n.children[0].text == field) for field in fields]
    text = function.source.text
    answer = copy.with_edits(function.source, [(id, one, text(id, other)), (id, other, text(id, one))], "forward")
    assert any(message.startswith("K and V are exchanged") for message in said(answer))


def test_a_stride_of_another_tensor_is_caught(copy: Copy) -> None:
    function = forward(copy.program)
    id, assignments = host_that_fills(function, field_of(copy, "V"))
    strides = [
        n.children[1] for n in assignments if n.children[1].kind == "call" and "-3" in function.source.text(id, n)
    ]
    texts = [function.source.text(id, node) for node in strides]
    wrong = next(n for n, text in zip(strides, texts, strict=True) if text.startswith("v."))
    right = next(text for text in texts if text.startswith("k."))
    answer = copy.with_edits(function.source, [(id, wrong, right)], "forward")
    assert any("a stride of k" in message for message in said(answer))


def test_the_rows_of_all_tensors_are_along_one_dimension(copy: Copy) -> None:
    function = forward(copy.program)
    id, assignments = host_that_fills(function, field_of(copy, "V"))
    text = function.source.text
    wrong = next(n.children[1] for n in assignments if text(id, n.children[1]).startswith("v.") and "-3" in text(id, n))
    answer = copy.with_edits(function.source, [(id, wrong, text(id, wrong).replace("-3", "-2"))], "forward")
    assert any("rows of V are taken to be along dimension -2" in message for message in said(answer))


def test_a_stride_of_the_gradient_for_the_output_is_told_where_row_sums_are_made() -> None:
    """Release 2.0.0.post1 lays O out with the row stride of dO there, as its source shows; 2.1.0 does not."""
    for version, told in (("2.0.0.post1", True), ("2.1.0", False)):
        with Program(open_checkout(str(release(version)))) as program:
            answer = check(program, algorithm="backward")
        sums = next(one for one in answer.checks if one.role == "row sums")
        assert answer.ok and any("is addressed with" in note for note in sums.assumptions) == told


def test_a_backward_that_is_not_reached_is_a_problem(copy: Copy) -> None:
    function = backward_functions(copy.program)[0]
    source = function.source
    edits = []
    for id in function.host():
        for node in walk(source.tree(id)[-1]):
            if node.kind == "launch" and function.kernel.name in source.text(id, source.tree(id)[-1]):
                edits.append((id, node, "(void)0"))
    for id in function.host():
        body = source.tree(id)[-1]
        for node in walk(body):
            if node.kind == "name" and node.targets and source.id(node.targets[0]) == function.kernel.id:
                edits.append((id, node, "nullptr"))
    by_file = {source.location(id, node).file for id, node, _ in edits}
    edits = [edit for edit in edits if source.location(edit[0], edit[1]).file == sorted(by_file)[0]]
    answer = copy.with_edits(source, edits, "all")
    assert not answer.ok
    assert [p.kind for p in answer.problems] == ["missing"] and "backward" in answer.problems[0].message
    assert [one.role for one in answer.checks][0] == "forward"


def test_an_entry_without_a_backward_pass_says_so() -> None:
    with Program(open_checkout(str(release("2.8.3")))) as program:
        answer = check(program, entry="flash_attn_with_kvcache")
    assert answer.ok and answer.not_checked == ("no backward pass belongs to flash_attn_with_kvcache",)


# -- the rule alone ---------------------------------------------------------------------------------------------------
NOTHING = ((), ())


def name(text: str) -> Node:
    return Node("name", text)


@pytest.mark.parametrize(
    ("arguments", "found"),
    [("ab", False), ("ba", True), ("aa", False), ("bb", False), ("bc", False), ("ca", False)],
)
def test_only_a_true_exchange_is_one(arguments: str, found: bool) -> None:
    call = Node("call", "", (Node("name", "f", targets=("usr",)), *map(name, arguments)))
    assert bool(list(exchanged(call, NOTHING, {"usr": (("a", "b"), ())}.get))) == found


def test_a_launch_has_its_shape_before_its_arguments() -> None:
    kernel = Node("name", "f", targets=("usr",))
    launch = Node("launch", "2", (kernel, name("b"), name("a"), name("a"), name("b")))
    assert not list(exchanged(launch, NOTHING, {"usr": (("a", "b"), ())}.get))
    launch = Node("launch", "2", (kernel, name("a"), name("b"), name("b"), name("a")))
    assert list(exchanged(launch, NOTHING, {"usr": (("a", "b"), ())}.get))


def test_a_member_gets_the_argument_of_its_own_name() -> None:
    assign = Node("assign", "=", (Node("member", "a", (name("params"),)), name("b")))
    assert list(exchanged(assign, (("a", "b"), ()), {}.get))
    assert not list(exchanged(assign, (("b",), ()), {}.get))
    assert list(exchanged(Node("initialise", "a", (name("b"),)), (("a", "b"), ()), {}.get))
    assert not list(exchanged(Node("initialise", "a", (name("a"),)), (("a", "b"), ()), {}.get))


@pytest.mark.parametrize(
    ("argument", "found"),
    [
        (Node("literal", "1.f"), True),
        (Node("binary", "*", (Node("name", "scale"), Node("name", "factor"))), True),
        (Node("binary", "-", (Node("name", "scale"), Node("name", "factor"))), False),
        (Node("name", "scale_padded"), False),
        (Node("name", "scale"), False),
    ],
)
def test_a_constant_or_a_multiple_of_an_argument_is_not_that_argument(argument: Node, found: bool) -> None:
    callee = Node("name", "f", targets=("usr",))
    names = {"usr": (("scale",), ())}.get
    call = Node("call", "", (callee, argument))
    assert bool(list(exchanged(call, (("scale",), ()), names))) == found
    assert not list(exchanged(call, NOTHING, names))


def test_a_constant_flag_is_marked_as_one() -> None:
    written = Node("name", "f", (Node("literal", "false"),), targets=("usr",))
    found = list(exchanged(written, ((), ("flag",)), {"usr": ((), ("flag",))}.get))
    assert [is_flag for _, _, is_flag in found] == [True]


def test_another_scale_than_the_callers_is_caught(copy: Copy) -> None:
    function = forward(copy.program)
    source = function.source
    (scale,) = {HostCode(source, function.host).factor(name.rpartition(".")[2]).root for name in scalars(copy)}  # type: ignore[union-attr]
    for id in function.host():
        for node in walk(source.tree(id)[-1]):
            given = [a for a, name in zip(node.children[1:], parameters(source, node), strict=False) if name == scale]
            if node.kind == "call" and given and source.definition(id).location.file.endswith(".cpp"):
                for wrong, said_so in (("1.f", "gets 1.f as its"), (f"{scale} * 2", "gets a multiple of")):
                    answer = copy.with_edits(source, [(id, given[0], wrong)], "forward")
                    assert any(said_so in message for message in said(answer)), said(answer)
                return
    raise AssertionError("the edit was not located")


def scalars(copy: Copy) -> list[str]:
    """Return the members of the argument struct that the host makes of the softmax scale."""
    analysed = analyse(copy.program, algorithm="forward", entry="flash_attn_func", reference=Reference())
    confirmation = analysed.functions[0].side.confirmation
    assert confirmation is not None and confirmation.scalars
    return list(confirmation.scalars)
