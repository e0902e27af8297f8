"""Explains kernel names by a checkout's own source: argument by argument, with the tile and a call that makes it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import field, replace

from tracer.dispatch.answers import Device, Unsupported
from tracer.dispatch.gpus import devices
from tracer.dispatch.kernel_name import KernelName, KernelNameError, NameArgument, parse_kernel_name
from tracer.dispatch.numbers import boolean, integer
from tracer.dispatch.query import Dispatcher
from tracer.dispatch.questions import Question, ask
from tracer.dispatch.types import ClassType
from tracer.dispatch.values import NamedType, Value
from tracer.errors import TracerError
from tracer.graph import Program
from tracer.model import Location
from tracer.records import dataclass

_ELEMENTS = {"half_t": "fp16", "bfloat16_t": "bf16", "float_e4m3_t": "fp8", "float_e5m2_t": "fp8 e5m2", "float": "fp32"}


@dataclass(frozen=True, slots=True)
class ExampleCall:
    """A call that the checkout's host code turns into this kernel: found by predicting it.

    Attributes:
        question: the call.
        device: on which GPU.
        launched_at: the launch.
    """

    question: Question
    device: Device
    launched_at: Location


@dataclass(frozen=True, slots=True)
class DecodedName:
    """A kernel name explained.

    Attributes:
        given: as it came.
        demangled: the same for every spelling.
        namespace: such as ``flash`` or ``pytorch_flash``.
        kernel: the last component of the name.
        arguments: (parameter's name in the source, argument); names are empty where the checkout does not tell.
        traits: the constants of the traits class among the arguments.
        element: ``fp16``, ``bf16``, …; empty where no argument tells.
        location: where the checkout defines it.
        problem: why it does not fit the checkout; empty where it does.
        fits: the releases that it fits, where it does not fit the checkout and others are at hand.
        example: a call that runs it; None where none was looked for or found.
    """

    given: str
    demangled: str
    namespace: str
    kernel: str
    arguments: tuple[tuple[str, str], ...] = ()
    traits: tuple[tuple[str, int], ...] = ()
    element: str = ""
    location: Location | None = None
    problem: str = ""
    fits: tuple[str, ...] = ()
    example: ExampleCall | None = None


@dataclass(slots=True)
class Decoder:
    """Explains names by one checkout, and dates those that do not fit it by others.

    Attributes:
        dispatcher: the checkout; None to take names apart only.
        others: gives (version, dispatcher) of other releases, newest last; asked for once a name does not fit.
        examples: look for a call that runs the kernel.
    """

    dispatcher: Dispatcher | None
    others: Callable[[], Iterable[tuple[str, Dispatcher]]] = tuple
    examples: bool = True
    _known: dict[str, DecodedName] = field(default_factory=dict)

    def decode(self, given: str) -> DecodedName:
        """Explain one name.

        Raises:
            KernelNameError: it is cut off or no name.
        """
        name = parse_kernel_name(given)
        if name.demangled not in self._known:
            self._known[name.demangled] = self._explained(name)
        return replace(self._known[name.demangled], given=given)

    def _explained(self, name: KernelName) -> DecodedName:
        bare = DecodedName(
            name.given, name.demangled, name.namespace, name.name, tuple(("", str(a)) for a in name.arguments),
            element=_element(name.arguments),
        )  # fmt: skip
        if self.dispatcher is None:
            return bare
        found = _explain(self.dispatcher, name, bare)
        if found.problem:
            versions = [v for v, other in self.others() if not _explain(other, name, bare).problem]
            return replace(found, fits=tuple(versions))
        if self.examples:
            return replace(found, example=_example(self.dispatcher, found))
        return found


def _explain(dispatcher: Dispatcher, name: KernelName, bare: DecodedName) -> DecodedName:
    host, types = dispatcher.host, dispatcher.engine.types
    ids = host.functions_named(name.name)
    for id in ids:
        host.code(id)  # reads the unit that knows the classes
    if not ids:
        return replace(bare, problem=f"{dispatcher.program.where()} has no function {name.name}")
    problem = ""
    bare = replace(bare, traits=_traits(dispatcher, name.arguments))
    for id in ids:
        code = host.code(id)
        names = [parameter.text for parameter in code.template_parameters]
        place = code.definition.location
        if len(names) != len(name.arguments):
            problem = (
                f"{len(name.arguments)} template arguments, but {dispatcher.program.where()} declares {len(names)}: "
                f"{', '.join(names) or 'none'} ({place})"
            )
            continue
        try:
            with dispatcher.engine.inside(id):
                values = [_value(dispatcher, argument) for argument in name.arguments]
                full = types.bound(code.template_parameters, tuple(values), name.name)
        except Unsupported as error:
            problem = f"{error.construct} ({place})"
            continue
        return replace(bare, arguments=tuple(zip(names, map(str, full), strict=True)), location=place)
    return replace(bare, problem=problem)


def _traits(dispatcher: Dispatcher, arguments: Iterable[NameArgument]) -> tuple[tuple[str, int], ...]:
    """Return the constants of the first argument that is a class of the checkout, whatever else does not fit."""
    for argument in arguments:
        if argument.name:
            try:
                value = _value(dispatcher, argument)
            except Unsupported:
                continue
            if isinstance(value, ClassType):
                return tuple(value.numbers())
    return ()


def _value(dispatcher: Dispatcher, argument: NameArgument) -> Value:
    if isinstance(argument.value, bool):
        return boolean(argument.value)
    if argument.value is not None:
        return integer(argument.value)
    arguments = tuple(_value(dispatcher, part) for part in argument.arguments or ())
    usr = dispatcher.host.class_named(argument.name.rpartition("::")[2])
    if usr:
        return dispatcher.engine.types.class_type(usr, arguments)
    return NamedType(argument.name, arguments if argument.arguments is not None else None)


def _element(arguments: Iterable[NameArgument]) -> str:
    """Return the element type: the first argument, however deep, that is one."""
    for argument in arguments:
        known = _ELEMENTS.get(argument.name.rpartition("::")[2])
        found = known or _element(argument.arguments or ())
        if found:
            return found
    return ""


# -- the way back: which call runs it --------------------------------------------------------------------------------
def _example(dispatcher: Dispatcher, name: DecodedName) -> ExampleCall | None:
    """Return a call that runs the kernel, found by asking likely ones what they run."""
    wanted = _flat(name.demangled)
    for question, device in _likely(name):
        try:
            prediction = ask(dispatcher, question, device).prediction
        except TracerError:
            continue
        for launch in prediction.launches:
            if _flat(parse_kernel_name(launch.name).demangled) == wanted:
                return ExampleCall(question, device, launch.location)
    return None


def _flat(name: str) -> str:
    """Return a demangled name without what copies of the code change: namespaces and spaces."""
    kept = [part.rpartition("::")[2] for part in name.replace(" ", "").replace("<", "\0<\0").split("\0")]
    return "".join(",".join(word.rpartition("::")[2] for word in part.split(",")) for part in kept)


def _likely(name: DecodedName) -> Iterator[tuple[Question, Device]]:
    """Yield questions whose answer may be the kernel, most ordinary first: its arguments say what to ask for."""
    flags = {key: value == "true" for key, value in name.arguments if value in ("true", "false")}
    traits = dict(name.traits)
    head_dim = next((value for key, value in traits.items() if key.endswith("HeadDim")), 64)
    backward = "_bwd_" in name.kernel
    base = Question(
        dtype=name.element or "fp16",
        head_dim=head_dim if flags.get("Is_even_K", True) else head_dim - 8,
        causal=flags.get("Is_causal", False),
        window=(64, 64) if flags.get("Is_local") else (-1, -1),
        alibi=flags.get("Has_alibi", False),
        softcap=30.0 if flags.get("Is_softcap") else 0.0,
        dropout=0.1 if flags.get("Is_dropout") else 0.0,
        return_softmax=flags.get("Return_softmax", False),
    )
    representatives = [d for d in devices() if d.name in ("A100", "RTX 3090", "RTX 4090", "H100", "RTX 5090")]
    for device in representatives:
        for question in _forms(base, name, flags, backward):
            yield question, device


def _forms(base: Question, name: DecodedName, flags: dict[str, bool], backward: bool) -> Iterator[Question]:
    """Yield a question in the forms that lead to different kernels: entries, lengths, numbers of heads."""
    if backward:
        for length in (1024, 1000):
            for deterministic in (False, True):
                yield replace(base, entry="mha_bwd", seqlen_q=length, deterministic=deterministic)
        return
    lengths = (1024, 1000) if flags.get("Is_even_MN", True) else (1000, 1024)
    if "split" in name.kernel:
        for length in (4096, 512, 32768, 4000, 500):
            for splits in (0, 1, 2, 3, 5, 9, 17, 33, 65):
                question = replace(
                    base, entry="flash_attn_with_kvcache", batch=1, seqlen_q=64, seqlen_k=length, num_splits=splits,
                    new_tokens=64 if flags.get("Append_KV") else 0,
                )  # fmt: skip
                if flags.get("Append_KV") or splits:
                    yield question
                if not flags.get("Split", True) and splits == 1:
                    yield replace(question, page_size=256, seqlen_k=4096)  # pages force the kernel without a split
                if not splits and flags.get("Is_even_MN", False):
                    yield replace(base, batch=1, seqlen_q=512, heads=4, seqlen_k=length)
        return
    for length in lengths:
        yield replace(base, batch=32, heads=32, seqlen_q=length)
    yield replace(base, entry="flash_attn_varlen_func", batch=32, heads=32, seqlen_q=1024)


def decode(
    program: Program | None,
    names: Iterable[str],
    *,
    others: Callable[[], Iterable[tuple[str, Dispatcher]]] = tuple,
    examples: bool = True,
) -> tuple[DecodedName, ...]:
    """Explain kernel names.

    Args:
        program: the checkout that should know them; None to take the names apart only.
        names: mangled or demangled.
        others: gives other releases, to date a name that does not fit.
        examples: look for a call that runs each kernel.

    Raises:
        KernelNameError: a name is cut off or no name.
        TracerError: the checkout builds no extension with CUDA kernels.
    """
    dispatcher = Dispatcher(program) if program is not None else None
    decoder = Decoder(dispatcher, others, examples)
    return tuple(decoder.decode(name) for name in names)


__all__ = ["DecodedName", "Decoder", "ExampleCall", "KernelNameError", "decode"]
