"""Which tile runs when: every specialization that the host code can reach, and whether Python's copy agrees.

Nothing is read off the templates: the table is made of answers. Each row is what the host code does for calls of one
head dimension, dtype, mask and dropout on one class of GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from tracer.dispatch.answers import Device, Launch, Unsupported
from tracer.dispatch.gpus import devices
from tracer.dispatch.python_side import PythonRefusal, PythonRunner
from tracer.dispatch.query import Dispatcher
from tracer.dispatch.questions import Question, ask
from tracer.errors import NameNotFound, TracerError
from tracer.graph import Program
from tracer.model import Location
from tracer.records import dataclass

_STEP, _LARGEST = 8, 512  # head dimensions that are tried: torch tensors of 16-bit numbers come in multiples of 8
_MASKS: tuple[tuple[str, dict[str, object]], ...] = (
    ("none", {}),
    ("causal", {"causal": True}),
    ("window", {"window": (128, 128)}),
)
# Lengths that fill every GPU, so that nothing is split, and divide by every tile.
_ORDINARY = Question(entry="mha_fwd", batch=64, heads=16, seqlen_q=2048)
_FORMS: tuple[tuple[str, Question], ...] = (
    ("forward", _ORDINARY),
    ("split", replace(_ORDINARY, entry="mha_fwd_kvcache", num_splits=2)),
    ("backward", replace(_ORDINARY, entry="mha_bwd")),
)


@dataclass(frozen=True, slots=True)
class TileRow:
    """What runs for calls of one kind.

    Attributes:
        form: ``forward``, ``split`` or ``backward``.
        head_dims: the head dimensions of the calls, smallest and largest.
        dtypes, masks: of the calls that share the row.
        dropout: with dropout.
        gpus: representatives of the GPU classes that share the row.
        kernel: the main kernel; empty where nothing is launched.
        head_dim, block_m, block_n, warps: the kernel's traits; 0 where it has none of that name.
        threads: of a block.
        shared_memory_bytes: dynamic shared memory of a block.
        location: of the launch, or of the refusal.
        refusal: what the host code says instead; empty for none.
    """

    form: str
    head_dims: tuple[int, int]
    dtypes: tuple[str, ...]
    masks: tuple[str, ...]
    dropout: bool
    gpus: tuple[str, ...]
    kernel: str
    head_dim: int
    block_m: int
    block_n: int
    warps: int
    threads: int
    shared_memory_bytes: int
    location: Location | None
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class Drift:
    """A place where Python's copy of the block sizes is not what the C++ code runs.

    Attributes:
        head_dim, causal, dropout, gpu: for which calls.
        python: the copy's block sizes.
        cpp: (kBlockM, kBlockN) of the kernel.
        python_location: the copy.
        cpp_location: the launch.
    """

    head_dim: int
    causal: bool
    dropout: bool
    gpu: str
    python: tuple[int, ...]
    cpp: tuple[int, int]
    python_location: Location
    cpp_location: Location


@dataclass(frozen=True, slots=True)
class TileTable:
    """All rows, and what could not be asked.

    Attributes:
        rows: in the order of forms, head dimensions and GPUs.
        missing: forms that the version does not have, and why.
        drift: differences to Python's copy of the block sizes.
        drift_checked: Python's copy; None where there is none.
    """

    rows: tuple[TileRow, ...]
    missing: tuple[tuple[str, str], ...]
    drift: tuple[Drift, ...]
    drift_checked: Location | None


def gpu_classes() -> tuple[Device, ...]:
    """Return one GPU for each compute capability from 8.0 on, the first in the list."""
    found: dict[tuple[int, int], Device] = {}
    for device in devices():
        if device.major >= 8:
            found.setdefault((device.major, device.minor), device)
    return tuple(found.values())


def all_specializations(
    program: Program,
    *,
    dtypes: Sequence[str] = ("fp16", "bf16"),
    forms: Sequence[str] = ("forward", "split", "backward"),
    defines: Iterable[str] = (),
) -> TileTable:
    """Ask for every kind of call and return what runs.

    Args:
        program: the checkout.
        dtypes: to ask for; the tile does not depend on the dtype in any release, but nothing here knows that.
        forms: ``forward``, ``split``, ``backward``.
        defines: macros of another build than setup.py's.

    Raises:
        TracerError: the checkout builds no extension with CUDA kernels.
        Unsupported: the host code does something on the way of one of the calls that is not known.
    """
    dispatcher = Dispatcher(program, defines=defines)
    rows: list[TileRow] = []
    missing: list[tuple[str, str]] = []
    for form, question in _FORMS:
        if form not in forms:
            continue
        try:
            ranges = _head_dims(dispatcher, replace(question, dtype=dtypes[0]))
        except NameNotFound as error:
            missing.append((form, str(error)))
            continue
        rows += _merged(_asked(dispatcher, form, question, ranges, dtypes))
    drift, checked = _drift(dispatcher, program)
    dispatcher.close()
    return TileTable(tuple(rows), tuple(missing), drift, checked)


def _head_dims(dispatcher: Dispatcher, question: Question) -> list[tuple[int, int]]:
    """Return the ranges of head dimensions that run one kernel head dimension each, and one that is refused."""
    device = gpu_classes()[0]
    ranges: list[tuple[int, int]] = []
    kernel_dim: int | None = None
    for head_dim in range(_STEP, _LARGEST + 1, _STEP):
        prediction = ask(dispatcher, replace(question, head_dim=head_dim), device).prediction
        if prediction.error is not None:
            break
        found = _named(_main(prediction.launches), "HeadDim")
        if ranges and found == kernel_dim:
            ranges[-1] = (ranges[-1][0], head_dim)
        else:
            ranges.append((head_dim, head_dim))
            kernel_dim = found
    return ranges


def _asked(
    dispatcher: Dispatcher, form: str, question: Question, ranges: list[tuple[int, int]], dtypes: Sequence[str]
) -> Iterator[TileRow]:
    for head_dims in ranges:
        for dropout in (False, True) if form != "split" else (False,):
            for device in gpu_classes():
                for mask, fields in _MASKS:
                    for dtype in dtypes:
                        asked = replace(
                            question, head_dim=head_dims[1], dtype=dtype, dropout=0.1 if dropout else 0.0, **fields  # type: ignore[arg-type]
                        )  # fmt: skip
                        try:
                            yield _row(dispatcher, form, asked, device, head_dims, mask)
                        except Unsupported:
                            raise
                        except TracerError:
                            continue  # this version has no such mask


def _row(
    dispatcher: Dispatcher, form: str, question: Question, device: Device, head_dims: tuple[int, int], mask: str
) -> TileRow:
    prediction = ask(dispatcher, question, device).prediction
    launch = _main(prediction.launches)
    error = prediction.error
    location = error.location if error else launch.location if launch else None
    return TileRow(
        form, head_dims, (question.dtype,), (mask,), bool(question.dropout), (device.name,),
        launch.kernel if launch else "", _named(launch, "HeadDim"), _named(launch, "BlockM"), _named(launch, "BlockN"),
        _named(launch, "NWarps"), launch.block[0] if launch else 0, launch.shared_memory_bytes if launch else 0,
        location, error.message if error else prediction.note,
    )  # fmt: skip


def _main(launches: Sequence[Launch]) -> Launch | None:
    """Return the launch that does the work: the one with most shared memory."""
    return max(launches, key=lambda launch: launch.shared_memory_bytes, default=None)


def _named(launch: Launch | None, ending: str) -> int:
    if launch is None:
        return 0
    return next((value for name, value in launch.traits if name.endswith(ending)), 0)


def _merged(rows: Iterable[TileRow]) -> list[TileRow]:
    """Join rows that differ only in dtype, then in mask, then in GPU."""
    found = list(rows)
    for blank, joined in _JOINS:
        kept: dict[TileRow, TileRow] = {}
        for row in found:
            key = blank(row)
            kept[key] = joined(kept[key], row) if key in kept else row
        found = list(kept.values())
    return _refusals_once(found)


def _refusals_once(rows: list[TileRow]) -> list[TileRow]:
    """Give a GPU that refuses everything one row of its form instead of one for each head dimension."""
    forms: dict[str, list[TileRow]] = {}
    for row in rows:
        forms.setdefault(row.form, []).append(row)
    kept: list[TileRow] = []
    for found in forms.values():
        refusing = {row.refusal for row in found if row.refusal}
        for refusal in sorted(refusing):
            same = [row for row in found if row.refusal == refusal]
            dims = (min(row.head_dims[0] for row in same), max(row.head_dims[1] for row in same))
            every = {row.head_dims for row in found} == {row.head_dims for row in same}
            if every and len({row.gpus for row in same}) == 1:
                found = [row for row in found if row.refusal != refusal] + [replace(same[0], head_dims=dims)]
        kept += found
    return kept


_Blank = Callable[[TileRow], TileRow]
_Joined = Callable[[TileRow, TileRow], TileRow]
_JOINS: tuple[tuple[_Blank, _Joined], ...] = (
    (lambda row: replace(row, dtypes=()), lambda a, b: replace(a, dtypes=(*a.dtypes, *b.dtypes))),
    (lambda row: replace(row, masks=()), lambda a, b: replace(a, masks=(*a.masks, *b.masks))),
    (lambda row: replace(row, gpus=()), lambda a, b: replace(a, gpus=(*a.gpus, *b.gpus))),
)


# -- Python's copy ----------------------------------------------------------------------------------------------------
def _drift(dispatcher: Dispatcher, program: Program) -> tuple[tuple[Drift, ...], Location | None]:
    """Compare Python's copy of the block sizes, where there is one, with what the C++ code runs."""
    copy = next((name for name in program.python.names() if "get_block_size" in name and "." not in name), None)
    if copy is None:
        return (), None
    definition = program.python.entry(copy)
    found: list[Drift] = []
    for _, head_dim in _head_dims(dispatcher, _ORDINARY):
        for device in gpu_classes():
            for dropout in (False, True):
                for causal in (False, True):
                    runner = PythonRunner(program, device, dispatcher.python_modules)
                    try:
                        value = runner.call(definition.id, ("cuda:0", head_dim, dropout, causal), {}, None)
                    except PythonRefusal:
                        continue
                    question = replace(_ORDINARY, head_dim=head_dim, causal=causal, dropout=0.1 if dropout else 0.0)
                    prediction = ask(dispatcher, question, device).prediction
                    launch = _main(prediction.launches)
                    sizes = value if isinstance(value, tuple) else (value,)
                    if launch is None or not all(isinstance(size, int) for size in sizes):
                        continue
                    cpp = (_named(launch, "BlockM"), _named(launch, "BlockN"))
                    if tuple(sizes) != cpp[-len(sizes) :]:
                        found.append(
                            Drift(
                                head_dim, causal, dropout, device.name, tuple(sizes), cpp, definition.location,
                                launch.location,
                            )
                        )  # fmt: skip
    return tuple(found), definition.location


__all__ = ["Drift", "TileRow", "TileTable", "all_specializations", "gpu_classes"]
