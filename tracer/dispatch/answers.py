"""Questions and answers of the dispatch room, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from tracer.errors import TracerError
from tracer.model import Location
from tracer.records import dataclass


class Unsupported(TracerError):
    """The host code does something on this call that the interpreter does not know. It never guesses.

    Attributes:
        construct: what it is, by its name in the source.
        location: where it stands; None until the reader who knows the place adds it.
        reached: the functions of the checkout that the call is inside of, the innermost first.
        locals: numbers in the blocks of the innermost function that is not in ``reached`` yet.
    """

    def __init__(self, construct: str, location: Location | None = None) -> None:
        """Keep what and where."""
        self.construct, self.location = construct, location
        self.reached: list[Reached] = []
        self.locals: dict[str, int | float] = {}
        super().__init__(construct)

    def __str__(self) -> str:
        """Return the one line for a person."""
        where = f" at {self.location}" if self.location else ""
        return f"cannot follow the call{where}: {self.construct}; nothing is guessed beyond this place"


@dataclass(frozen=True, slots=True)
class Reached:
    """A function that a call entered before something in it was not known.

    Attributes:
        function: its name with template arguments.
        template_arguments: (parameter's name, argument), in order.
        values: the numbers that its local variables held, by name.
        location: of the function.
    """

    function: str
    template_arguments: tuple[tuple[str, str], ...]
    values: Mapping[str, int | float]
    location: Location


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor argument: everything of it that host code can see without reading the GPU's memory.

    Attributes:
        shape: its sizes.
        dtype: a scalar type by torch's C++ name: ``Half``, ``BFloat16``, ``Float``, ``Int``, ….
        stride: in elements, one per dimension; None for contiguous.
        device: ``cuda:0``, ``cpu``, ….
        contents: its numbers in row-major order where the call fixes them; None for not known.
    """

    shape: tuple[int, ...]
    dtype: str
    stride: tuple[int, ...] | None = None
    device: str = "cuda:0"
    contents: tuple[int, ...] | None = None


Argument = Tensor | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a function that the extension binds.

    Attributes:
        entry: name of the C++ function, or of what Python calls it.
        arguments: by the name of the C++ parameter. An optional parameter that is not named is absent.
    """

    entry: str
    arguments: Mapping[str, Argument]


@dataclass(frozen=True, slots=True)
class Device:
    """A GPU as host code sees it.

    Attributes:
        name: what people call it.
        major, minor: the compute capability.
        sm_count: streaming multiprocessors.
        shared_memory_per_sm: bytes.
        shared_memory_per_block_optin: bytes that one block can have after asking for it.
        l2_bytes: size of the L2 cache; 0 for not known.
        bandwidth_bytes_per_second: of the device memory; 0 for not known.
        sources: titles of the documents that the numbers are from.
        half_flops_per_second: of the tensor cores with 16-bit operands, dense; 0 for not known.
    """

    name: str
    major: int
    minor: int
    sm_count: int
    shared_memory_per_sm: int
    shared_memory_per_block_optin: int
    l2_bytes: int = 0
    bandwidth_bytes_per_second: int = 0
    sources: tuple[str, ...] = ()
    half_flops_per_second: int = 0


@dataclass(frozen=True, slots=True)
class Launch:
    """One kernel launch.

    Attributes:
        kernel: the kernel's name without namespaces.
        name: the whole name as a profiler shows it.
        symbol: the name in the object file.
        template_arguments: (parameter's name in the source, argument), in order.
        traits: the constants of the traits class that the kernel is made from, in the order of the source.
        grid, block: in blocks and threads.
        shared_memory_bytes: dynamic shared memory.
        location: of the launch.
        defined_at: where the kernel is defined.
    """

    kernel: str
    name: str
    symbol: str
    template_arguments: tuple[tuple[str, str], ...]
    traits: tuple[tuple[str, int], ...]
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_memory_bytes: int
    location: Location
    defined_at: Location

    def trait(self, name: str) -> int | None:
        """Return a constant of the traits class by its name, such as ``kBlockM``; None where it has none of it."""
        return dict(self.traits).get(name)

    def argument(self, name: str) -> str | None:
        """Return a template argument by its parameter's name; None where the kernel has no such parameter."""
        return dict(self.template_arguments).get(name)


@dataclass(frozen=True, slots=True)
class Operator:
    """A library operator that the host code calls on the way and that can launch a kernel of its own.

    Attributes:
        name: such as ``aten::fill_``.
        location: of the call.
        launches_before: how many kernels of the checkout were launched before it.
    """

    name: str
    location: Location
    launches_before: int = 0


@dataclass(frozen=True, slots=True)
class Decision:
    """One condition that was evaluated on the way.

    Attributes:
        kind: ``check`` where the other outcome refuses the call; ``switch`` where it makes a value a template argument;
            ``if`` and ``choice`` (``?:``); ``value`` for an assignment that decides the number of splits.
        condition: as the source has it, macros aside.
        value: how it came out; for a ``value`` what was assigned.
        operands: (operand, its value) of what the condition reads.
        location: where it stands.
        function: in which function.
        matters: a launch lies inside the branch that was taken, and the branch is more than a template argument.
    """

    kind: str
    condition: str
    value: str
    operands: tuple[tuple[str, str], ...]
    location: Location
    function: str
    matters: bool


@dataclass(frozen=True, slots=True)
class Refusal:
    """The call's own refusal: what the host code says, and where."""

    message: str
    location: Location


@dataclass(frozen=True, slots=True)
class Warned:
    """Something that the call does and probably should not.

    Attributes:
        message: what, with the numbers.
        location: where it stands.
    """

    message: str
    location: Location


@dataclass(frozen=True, slots=True)
class Prediction:
    """What one call does on one device.

    Attributes:
        call: the question, at the level of C++.
        device: on which GPU.
        error: the refusal; None when the call goes through.
        num_splits: how many parts of the keys are worked on at once; None where the version has no such choice.
        launches: in order; empty for a refused call, and for one that launches nothing.
        operators: library operators on the way.
        decisions: conditions on the way, in order; only where they were asked for.
        values: the numbers that the entry's local variables hold at its end, by name.
        note: a sentence where the answer needs one, such as for a call that launches nothing.
        warnings: what goes wrong inside of the kernels, as far as it was looked for; only with ``decisions``.
    """

    call: Call
    device: Device
    error: Refusal | None
    num_splits: int | None
    launches: tuple[Launch, ...]
    operators: tuple[Operator, ...] = ()
    decisions: tuple[Decision, ...] = ()
    values: Mapping[str, int | float | bool] = field(default_factory=dict)
    note: str = ""
    warnings: tuple[Warned, ...] = ()


@dataclass(frozen=True, slots=True)
class Assumption:
    """How a branch on a value that the question does not fix was taken.

    Attributes:
        condition: as written.
        value: how it was taken.
        reason: what the value is.
        location: where the branch stands.
    """

    condition: str
    value: bool
    reason: str
    location: Location


@dataclass(frozen=True, slots=True)
class Outcome:
    """One of several things that a call can do, and what has to hold for it."""

    assumptions: tuple[Assumption, ...]
    prediction: Prediction
