"""A question as a person asks it — dtype, head dimension, mask, lengths — made into the arguments of an entry.

Entries of different releases and levels name the same thing differently; the table of names is here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from tracer.dispatch.answers import Argument, Call, Device, Outcome, Prediction, Tensor
from tracer.dispatch.models.torch import Tensor as TensorObject
from tracer.dispatch.python_side import BoundCall, PythonRefusal, PythonRunner
from tracer.dispatch.query import Dispatcher
from tracer.errors import NameNotFound, TracerError
from tracer.graph import Program
from tracer.records import dataclass

DTYPES = {
    "fp16": "Half", "half": "Half", "float16": "Half", "bf16": "BFloat16", "bfloat16": "BFloat16", "fp32": "Float",
    "float32": "Float", "fp8": "Float8_e4m3fn", "fp64": "Double",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Question:
    """One attention call in a person's words.

    Attributes:
        entry: a Python function, or a C++ function of the extension.
        dtype: ``fp16``, ``bf16``, ….
        batch, heads, seqlen_q, head_dim: sizes.
        heads_k: heads of keys and values; None for as many as ``heads``.
        seqlen_k: length of keys and values; None for ``seqlen_q``.
        causal: masked to the past.
        window: sliding window, to the left and to the right; -1 for no limit.
        dropout: probability that an element is dropped.
        softcap: 0 for none.
        alibi: with ALiBi slopes.
        return_softmax: ask for the attention probabilities.
        page_size: length of a page where keys and values lie in pages, given by a block table; 0 for none.
        new_tokens: with a KV cache, the number of tokens appended to it; 0 for none.
        rotary_dim: with a KV cache, the dimension of the rotary embedding; 0 for none.
        num_splits: with a KV cache; 0 leaves it to the heuristic.
        deterministic: of the backward.
    """

    entry: str = "flash_attn_func"
    dtype: str = "fp16"
    batch: int = 1
    heads: int = 8
    heads_k: int | None = None
    seqlen_q: int = 1024
    seqlen_k: int | None = None
    head_dim: int = 128
    causal: bool = False
    window: tuple[int, int] = (-1, -1)
    dropout: float = 0.0
    softcap: float = 0.0
    alibi: bool = False
    return_softmax: bool = False
    page_size: int = 0
    new_tokens: int = 0
    rotary_dim: int = 0
    num_splits: int = 0
    deterministic: bool = False


class _Shapes:
    """The tensors of a question, in the layout that an entry takes."""

    def __init__(self, question: Question, parameters: Iterable[str], optional: set[str]) -> None:
        """Tell the layout from the entry's parameters.

        Raises:
            TracerError: no such dtype.
        """
        needed = {name for name in parameters if name not in optional}
        names = {name.rstrip("_") for name in parameters}
        self.q = question
        self.heads_k = question.heads if question.heads_k is None else question.heads_k
        self.seqlen_k = question.seqlen_q if question.seqlen_k is None else question.seqlen_k
        self.varlen = any(name.startswith("cu_seqlens") for name in needed)
        # Where lengths can be given instead of bounds, pages need the lengths.
        self.lengths_of_pages = bool(question.page_size) and "seqused_k" in names and "cu_seqlens_k" not in needed
        self.cached = bool(names & {"k_cache", "kcache"})
        self.dtype = DTYPES.get(question.dtype.lower(), "")
        if not self.dtype:
            raise NameNotFound("dtype", question.dtype, "the dtypes of a question", DTYPES)

    def query(self) -> Tensor:
        q = self.q
        if self.varlen:
            return Tensor((q.batch * q.seqlen_q, q.heads, q.head_dim), self.dtype)
        return Tensor((q.batch, q.seqlen_q, q.heads, q.head_dim), self.dtype)

    def key(self) -> Tensor | None:
        if self.cached:
            if not self.q.new_tokens:
                return None
            return Tensor((self.q.batch, self.q.new_tokens, self.heads_k, self.q.head_dim), self.dtype)
        return self.cache()

    def cache(self) -> Tensor:
        q = self.q
        if q.page_size:
            return Tensor((q.batch * self.pages(), q.page_size, self.heads_k, q.head_dim), self.dtype)
        if self.varlen:
            return Tensor((q.batch * self.seqlen_k, self.heads_k, q.head_dim), self.dtype)
        return Tensor((q.batch, self.seqlen_k, self.heads_k, q.head_dim), self.dtype)

    def packed(self, count: int, keys: bool) -> Tensor:
        q = self.q
        length = self.seqlen_k if keys else q.seqlen_q
        rows = (q.batch * length,) if self.varlen else (q.batch, length)
        return Tensor((*rows, count, self.heads_k if keys else q.heads, q.head_dim), self.dtype)

    def pages(self) -> int:
        return -(-self.seqlen_k // self.q.page_size)

    def lse(self) -> Tensor:
        return Tensor((self.q.batch, self.q.heads, self.q.seqlen_q), "Float")

    def rotary(self) -> Tensor | None:
        return Tensor((self.seqlen_k, self.q.rotary_dim // 2), self.dtype) if self.q.rotary_dim else None

    def bounds(self) -> Tensor | None:
        return Tensor((self.q.batch + 1,), "Int") if self.varlen else None

    def per_batch(self) -> Tensor:
        return Tensor((self.q.batch,), "Int")


_Make = Callable[[_Shapes], object]

# Parameter of an entry, a trailing underscore aside, to what the question says about it.
_MEANING: dict[str, _Make] = {
    "q": lambda s: s.query(), "k": lambda s: s.key(), "v": lambda s: s.key(),
    "dout": lambda s: s.query(), "out": lambda s: s.query(),
    "qkv": lambda s: s.packed(3, False), "kv": lambda s: s.packed(2, True),
    "k_cache": lambda s: s.cache(), "v_cache": lambda s: s.cache(), "kcache": lambda s: s.cache(),
    "vcache": lambda s: s.cache(), "softmax_lse": lambda s: s.lse(),
    "cu_seqlens": lambda s: s.bounds(), "cu_seqlens_q": lambda s: s.bounds(),
    "cu_seqlens_k": lambda s: None if s.lengths_of_pages else s.bounds(), "max_seqlen": lambda s: s.q.seqlen_q,
    "seqused_k": lambda s: s.per_batch() if s.lengths_of_pages else None,
    "max_seqlen_q": lambda s: s.q.seqlen_q if s.varlen else None,
    "max_seqlen_k": lambda s: s.seqlen_k if s.varlen else None,
    "cache_seqlens": lambda s: s.per_batch(), "seqlens_k": lambda s: s.per_batch(),
    "block_table": lambda s: Tensor((s.q.batch, s.pages()), "Int") if s.q.page_size else None,
    "rotary_cos": lambda s: s.rotary(), "rotary_sin": lambda s: s.rotary(),
    "alibi_slopes": lambda s: Tensor((s.q.heads,), "Float") if s.q.alibi else None,
    "dropout_p": lambda s: float(s.q.dropout), "p_dropout": lambda s: float(s.q.dropout),
    "softmax_scale": lambda s: s.q.head_dim**-0.5 if s.q.head_dim > 0 else 1.0, "causal": lambda s: s.q.causal,
    "is_causal": lambda s: s.q.causal, "window_size": lambda s: s.q.window,
    "window_size_left": lambda s: s.q.window[0], "window_size_right": lambda s: s.q.window[1],
    "softcap": lambda s: float(s.q.softcap), "return_softmax": lambda s: s.q.return_softmax,
    "return_attn_probs": lambda s: s.q.return_softmax, "num_splits": lambda s: s.q.num_splits,
    "attention_chunk": lambda s: 0, "sm_margin": lambda s: 0,
    "deterministic": lambda s: s.q.deterministic, "zero_tensors": lambda s: False,
    "rotary_interleaved": lambda s: True, "is_rotary_interleaved": lambda s: True,
    "rng_state": lambda s: Tensor((2,), "Long") if s.q.dropout else None,
}  # fmt: skip

# What a question can ask for, and the parameters that can carry it: asked for and not there is an error.
_CARRIERS: dict[str, tuple[str, ...]] = {
    "window": ("window_size", "window_size_left"), "softcap": ("softcap",), "alibi": ("alibi_slopes",),
    "dropout": ("dropout_p", "p_dropout"), "page_size": ("block_table",), "causal": ("causal", "is_causal"),
    "return_softmax": ("return_softmax", "return_attn_probs"), "num_splits": ("num_splits",),
    "new_tokens": ("k_cache", "kcache"), "rotary_dim": ("rotary_cos",), "deterministic": ("deterministic",),
}  # fmt: skip


def arguments(question: Question, parameters: list[str], optional: set[str], where: str) -> dict[str, object]:
    """Return the arguments that a question means for an entry.

    Args:
        question: what is asked.
        parameters: the entry's parameters.
        optional: those that need not be given.
        where: the entry, for a message.

    Raises:
        TracerError: the question asks for what the entry has no parameter for, or a parameter means nothing here.
    """
    shapes = _Shapes(question, parameters, optional)
    names = {name.rstrip("_") for name in parameters}
    blank = Question()
    for asked, carriers in _CARRIERS.items():
        if getattr(question, asked) != getattr(blank, asked) and not names & set(carriers):
            raise TracerError(
                f"{where} has no parameter for {asked.replace('_', ' ')}; its parameters: {', '.join(parameters)}"
            )
    found: dict[str, object] = {}
    for name in parameters:
        make = _MEANING.get(name.rstrip("_"))
        if make is not None and not (name in optional and name.rstrip("_") in ("out", "softmax_scale")):
            found[name] = make(shapes)
        elif name not in optional:
            raise TracerError(f"{where} needs {name}, which no question can give; ask its C++ function with --calls")
    return found


@dataclass(frozen=True, slots=True)
class Answer:
    """A prediction, and what Python did before it.

    Attributes:
        question: what was asked.
        prediction: what happens from the C++ entry on; refused by Python where ``python_error`` says so.
        bound: the call that Python makes; None for a question about a C++ function.
        outcomes: what else can happen, where the question does not decide it; the prediction is the first of them.
            Empty unless asked for.
    """

    question: Question
    prediction: Prediction
    bound: BoundCall | None
    outcomes: tuple[Outcome, ...] = ()


def ask(
    dispatcher: Dispatcher, question: Question, device: Device, *, explain: bool = False, outcomes: bool = False
) -> Answer:
    """Answer a question.

    Args:
        dispatcher: the extension.
        question: what is asked.
        device: on which GPU.
        explain: keep every decision on the way.
        outcomes: at a branch on what the question does not fix, list all that can happen instead of stopping.

    Raises:
        NameNotFound: no such entry or dtype.
        TracerError: the entry has no parameter for what is asked.
        Unsupported: host code or Python code does something that is not known.
    """
    program = dispatcher.program
    definition = dispatcher.python_entry(question.entry)
    if definition is None:
        code = dispatcher.entry(question.entry)
        optional = {p.text for p in code.parameters if p.type is not None and "optional" in p.type.canonical}
        given = arguments(question, [p.text for p in code.parameters], optional, question.entry)
        call = Call(question.entry, {name: _argument(value) for name, value in given.items()})
        return _answered(dispatcher, question, call, device, None, explain, outcomes)
    runner = PythonRunner(program, device, dispatcher.python_modules)
    names, defaults = runner.parameters(definition)
    given = arguments(question, names, defaults, question.entry)
    objects = {k: TensorObject.of(v) if isinstance(v, Tensor) else v for k, v in given.items()}
    try:
        bound = runner.follow(definition, objects)
    except PythonRefusal as refused:
        call = Call(question.entry, {name: _argument(value) for name, value in given.items() if _fits(value)})
        return Answer(question, Prediction(call, device, refused.refusal, None, ()), None)
    call = dispatcher.bound_call(bound.function, bound.binding.name, bound.arguments)
    answer = _answered(dispatcher, question, call, device, bound, explain, outcomes)
    if explain:
        decisions = (*runner.decisions, *answer.prediction.decisions)
        answer = replace(answer, prediction=replace(answer.prediction, decisions=decisions))
    return answer


def _answered(
    dispatcher: Dispatcher, question: Question, call: Call, device: Device, bound: BoundCall | None, explain: bool,
    outcomes: bool,
) -> Answer:  # fmt: skip
    if not outcomes:
        return Answer(question, dispatcher.predict(call, device, explain=explain), bound)
    found = dispatcher.outcomes(call, device, explain=explain)
    return Answer(question, found[0].prediction, bound, found if len(found) > 1 else ())


def _fits(value: object) -> bool:
    return value is None or isinstance(value, Tensor | int | float)


def _argument(value: object) -> Argument:
    assert value is None or isinstance(value, Tensor | int | float)
    return value


def predict_question(
    program: Program, question: Question, device: Device, *, defines: Iterable[str] = (), explain: bool = False
) -> Answer:
    """Answer one question about a checkout; see :func:`ask`."""
    dispatcher = Dispatcher(program, defines=defines)
    try:
        return ask(dispatcher, question, device, explain=explain)
    finally:
        dispatcher.close()
