"""What ``flashtracer validate`` tries: every feature of every kernel, and the inputs that break attention kernels.

A case is data. Quick cases touch every kernel and dtype; the full set goes through tiles, head dimensions, masks and
edge cases.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from refkernel.build import BACKWARD_2, FORWARD_1, FORWARD_2, FORWARD_2_MMA

#: How inputs are drawn. ``normal``: standard normal. ``large``: small integers whose scores are exact and reach 1e4.
#: ``late``: every score is near -1e4, also exactly; with a window, rows first meet a block of which they see nothing.
INPUTS = ("normal", "large", "late")


@dataclass(frozen=True)
class Case:
    """One comparison of a kernel with float64.

    Attributes:
        kernel: one of ``build.KERNELS``.
        dtype: ``fp32``, ``fp16`` or ``bf16``.
        batch: sequences.
        seqlen_q: query rows; with ``lengths_q`` unused.
        seqlen_k: key rows; with ``lengths_k`` unused.
        heads_q: query heads.
        heads_k: key heads.
        head_dim: elements per head.
        block_m: B_r.
        block_n: B_c.
        causal: causal mask.
        window_size: (left, right), -1 for no limit.
        softcap: 0 for none.
        alibi: with ALiBi slopes.
        lengths_q: query rows of each sequence, for a call with cu_seqlens.
        lengths_k: key rows of each sequence.
        inputs: one of ``INPUTS``.
    """

    kernel: str
    dtype: str = "fp32"
    batch: int = 1
    seqlen_q: int = 200
    seqlen_k: int = 200
    heads_q: int = 2
    heads_k: int = 2
    head_dim: int = 64
    block_m: int = 64
    block_n: int = 64
    causal: bool = False
    window_size: tuple[int, int] = (-1, -1)
    softcap: float = 0.0
    alibi: bool = False
    lengths_q: tuple[int, ...] = ()
    lengths_k: tuple[int, ...] = ()
    inputs: str = "normal"

    @property
    def mask(self) -> str:
        """What is done to the scores, in words."""
        left, right = self.window_size
        parts = [
            "causal" if self.causal else "",
            f"window {left},{right}" if (left, right) != (-1, -1) else "",
            f"softcap {self.softcap:g}" if self.softcap else "",
            "alibi" if self.alibi else "",
            f"varlen {len(self.lengths_q)}" if self.lengths_q else "",
            f"{self.inputs} scores" if self.inputs != "normal" else "",
        ]
        return ", ".join(part for part in parts if part) or "none"


def quick_cases() -> list[Case]:
    """Return one or two cases per kernel and dtype."""
    cases = []
    for kernel, dtype in _kernels_and_dtypes():
        base = _tiled(Case(kernel, dtype))
        cases.append(replace(base, seqlen_q=256, seqlen_k=256, causal=True))
        cases.append(replace(base, seqlen_q=113, seqlen_k=203, heads_q=4, window_size=(70, 20), head_dim=40))
    return cases


def full_cases() -> list[Case]:
    """Return the quick cases and everything else."""
    cases = quick_cases()
    for kernel, dtype in _kernels_and_dtypes():
        base = _tiled(Case(kernel, dtype))
        cases += _shapes_and_masks(base)
        cases += _features(base)
        cases += _head_dims(base)
        cases += _tiles(base)
    return list(dict.fromkeys(cases))


def _kernels_and_dtypes() -> Iterator[tuple[str, str]]:
    for kernel in (FORWARD_1, FORWARD_2, BACKWARD_2):
        for dtype in ("fp32", "fp16", "bf16"):
            yield kernel, dtype
    for dtype in ("fp16", "bf16"):
        yield FORWARD_2_MMA, dtype


def _tiled(case: Case) -> Case:
    return replace(case, block_m=128) if case.kernel == FORWARD_2_MMA else case


def _shapes_and_masks(base: Case) -> Iterator[Case]:
    """Cases that need no kernel of their own: lengths, masks, heads, and values."""
    yield replace(base, seqlen_q=1, seqlen_k=1)
    yield replace(base, seqlen_q=1, seqlen_k=130, causal=True)
    yield replace(base, seqlen_q=7, seqlen_k=5)
    yield replace(base, seqlen_q=64, seqlen_k=64, causal=True)
    yield replace(base, seqlen_q=65, seqlen_k=63, causal=True)
    yield replace(base, seqlen_q=190, seqlen_k=70, causal=True)  # the first 120 rows see nothing
    yield replace(base, seqlen_q=70, seqlen_k=190, causal=True)
    yield replace(base, seqlen_q=20, seqlen_k=0)  # nobody sees anything
    yield replace(base, seqlen_q=100, seqlen_k=20, causal=True, window_size=(0, -1))
    yield replace(base, seqlen_q=150, seqlen_k=150, window_size=(0, 0))
    yield replace(base, seqlen_q=150, seqlen_k=180, window_size=(30, -1))
    yield replace(base, seqlen_q=180, seqlen_k=150, window_size=(-1, 30))
    yield replace(base, seqlen_q=200, seqlen_k=200, window_size=(10, 0), inputs="late")
    yield replace(base, inputs="large")
    yield replace(base, inputs="large", causal=True)
    yield replace(base, batch=2, heads_q=6, heads_k=2, seqlen_q=90, seqlen_k=110)
    yield replace(base, heads_q=4, heads_k=1, causal=True)
    yield replace(base, lengths_q=(70, 0, 129, 1), lengths_k=(130, 40, 64, 0), causal=True)
    yield replace(base, lengths_q=(33, 100), lengths_k=(33, 65), heads_q=4, window_size=(40, 3))
    if base.dtype == "fp32":
        yield replace(base, seqlen_q=512, seqlen_k=512, causal=True)


def _features(base: Case) -> Iterator[Case]:
    yield replace(base, softcap=5.0, alibi=True, causal=True, lengths_q=(100, 30), lengths_k=(120, 20))
    yield replace(base, softcap=5.0, alibi=True, batch=2, heads_q=4, seqlen_q=100, seqlen_k=150)
    if base.dtype == "fp32":
        yield replace(base, softcap=2.0, causal=True)
        yield replace(base, alibi=True, batch=2, seqlen_q=100, seqlen_k=150)


def _head_dims(base: Case) -> Iterator[Case]:
    """Rung 2 through all compiled sizes in fp32; the others, which load and store rows the same way, at a few."""
    if base.kernel == FORWARD_2 and base.dtype == "fp32":
        sizes: tuple[int, ...] = (1, 32, 72, 111, 160, 192, 224, 256)
    elif base.dtype == "bf16":
        sizes = (128,)
    else:
        sizes = (9, 111, 256)
    for head_dim in sizes:
        case = replace(base, head_dim=head_dim, seqlen_q=130, seqlen_k=130, heads_q=1, heads_k=1, causal=True)
        yield replace(case, block_m=64) if head_dim > 128 else case


def _tiles(base: Case) -> Iterator[Case]:
    """Rung 2 through all pairs in fp32; the others at pairs that differ in every way."""
    base = replace(base, causal=True)
    pairs: list[tuple[int, int]] = []
    if base.kernel == FORWARD_2_MMA:
        pairs = [(64, 64), (64, 128), (128, 32), (128, 128)] if base.dtype == "fp16" else []
    elif base.kernel == FORWARD_2 and base.dtype == "fp32":
        pairs = [(m, n) for m in (32, 64, 128) for n in (32, 64, 128, 256) if n < 256 or m == 64]
    elif base.dtype == "fp32":
        pairs = [(32, 32), (32, 128), (128, 64), (128, 128)]
    elif base.dtype == "fp16":
        pairs = [(128, 32)]
    for block_m, block_n in pairs:
        yield replace(base, block_m=block_m, block_n=block_n)
