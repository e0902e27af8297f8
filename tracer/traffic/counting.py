"""What a count counts: conventions, each with a name, because two honest counts of one algorithm differ by them."""

from __future__ import annotations

from tracer.errors import NameNotFound
from tracer.records import dataclass


@dataclass(frozen=True, slots=True)
class Convention:
    """How to count. A field that an algorithm has no use for changes nothing there.

    Attributes:
        name: what to call it.
        meaning: one sentence for a reader of the numbers.
        mask_pass: naive forward reads S and writes the masked S, as an operator of its own.
        dropout: naive attention drops probabilities in operators of their own, with a mask of one byte per score.
        accumulator_bytes: of one element of what is summed up in memory (O of FlashAttention-1, dQ); 0 for the dtype's.
        vector_bytes: of one row statistic (l, m, LSE, D); 0 leaves them out.
        initial_write: setting the accumulators to zero counts.
        first_read: the first read of an accumulator, known to be zero, counts.
        output_once: the backward pass of FlashAttention-1 reads O once, for D, and not at every step.
        helpers: the launches beside the backward kernel count: zeroing and converting dQ, summing dK and dV of the
            query heads that share a key head.
    """

    name: str
    meaning: str
    mask_pass: bool = False
    dropout: bool = False
    accumulator_bytes: int = 0
    vector_bytes: int = 4
    initial_write: bool = False
    first_read: bool = True
    output_once: bool = False
    helpers: bool = False


_CONVENTIONS = (
    Convention(
        "algorithm",
        "the algorithms as printed, line by line; sums in memory as wide as Q, row statistics 4 bytes, setting to zero "
        "not counted",
    ),
    Convention("mask", "as 'algorithm', and naive attention masks S in an operator of its own", mask_pass=True),
    Convention(
        "dropout", "as 'algorithm', and naive attention applies dropout with a mask of one byte per score", dropout=True
    ),
    Convention(
        "mask-and-dropout", "'mask' and 'dropout' together: how unfused PyTorch runs", mask_pass=True, dropout=True
    ),
    Convention(
        "first-read-skipped",
        "as 'algorithm', but sums are not read before they hold something, O is read once in the backward pass, and "
        "row statistics do not count",
        vector_bytes=0,
        first_read=False,
        output_once=True,
    ),
    Convention(
        "kernel",
        "as the reference kernels do it: sums in memory in fp32, and FlashAttention-1 sets O, l and m to zero first",
        accumulator_bytes=4,
        initial_write=True,
    ),
    Convention(
        "launches",
        "as a release's backward call does it: dQ summed in fp32, which other launches set to zero and convert, dK and "
        "dV written per query head and then summed",
        accumulator_bytes=4,
        initial_write=True,
        helpers=True,
    ),
)


def conventions() -> tuple[Convention, ...]:
    """Return all conventions that have a name, the default first."""
    return _CONVENTIONS


def convention(name: str) -> Convention:
    """Return the convention of a name.

    Raises:
        NameNotFound: there is none.
    """
    for candidate in _CONVENTIONS:
        if candidate.name == name:
            return candidate
    raise NameNotFound("convention", name, "tracer.traffic", [known.name for known in _CONVENTIONS])
