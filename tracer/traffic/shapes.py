"""An attention call by its sizes, a tile by its sizes, and which tiles of scores a mask leaves to be computed."""

from __future__ import annotations

from dataclasses import replace

from tracer.errors import TracerError
from tracer.records import dataclass

#: Bytes of one element of Q, K and V.
ELEMENT_BYTES = {"fp16": 2, "bf16": 2, "fp32": 4}

#: The largest head dimension that a flash kernel of any release takes.
MAX_HEAD_DIM = 256

#: Bytes of one accumulator or row statistic that is kept in single precision.
FLOAT_BYTES = 4

_LARGEST = 1 << 40  # elements; beyond it a number is a slip of the finger


class InvalidShape(TracerError):
    """Sizes that no attention call or no tile can have."""


@dataclass(frozen=True, slots=True)
class Shape:
    """One attention call by its sizes.

    The mask is aligned to the bottom right: row i of Q sees column j of K where
    ``i + shift - left <= j <= i + shift + right`` with ``shift = seqlen_k - seqlen_q``.

    Attributes:
        seqlen_q: query rows of every sequence.
        seqlen_k: key rows of every sequence.
        head_dim: elements per head, 1 to 256.
        batch: sequences.
        heads: query heads.
        heads_k: key and value heads, a divisor of ``heads``; 0 for as many as ``heads``.
        dtype: of Q, K, V: ``fp16``, ``bf16`` or ``fp32``.
        causal: hide the columns right of the diagonal.
        window: (left, right) columns seen beside the diagonal, -1 for no limit.
        lengths: (query rows, key rows) of every sequence where they differ; ``batch``, ``seqlen_q`` and ``seqlen_k``
            are then taken from it.

    Raises:
        InvalidShape: on construction, for sizes that no call can have.
    """

    seqlen_q: int
    seqlen_k: int
    head_dim: int
    batch: int = 1
    heads: int = 1
    heads_k: int = 0
    dtype: str = "fp16"
    causal: bool = False
    window: tuple[int, int] = (-1, -1)
    lengths: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        """Check the sizes, and fill in those that follow from others."""
        if not self.heads_k:
            object.__setattr__(self, "heads_k", self.heads)
        if self.lengths:
            _check_lengths(self.lengths)
            object.__setattr__(self, "batch", len(self.lengths))
            object.__setattr__(self, "seqlen_q", max(q for q, _ in self.lengths))
            object.__setattr__(self, "seqlen_k", max(k for _, k in self.lengths))
        named = {
            "seqlen_q": self.seqlen_q,
            "seqlen_k": self.seqlen_k,
            "head_dim": self.head_dim,
            "batch": self.batch,
            "heads": self.heads,
            "heads_k": self.heads_k,
        }
        for name, value in named.items():
            check_positive(name, value)
        if self.head_dim > MAX_HEAD_DIM:
            raise InvalidShape(f"head_dim is {self.head_dim}; flash kernels take 1 to {MAX_HEAD_DIM}")
        if self.heads % self.heads_k:
            raise InvalidShape(f"heads is {self.heads} and heads_k {self.heads_k}; the first must be a multiple of it")
        if self.dtype not in ELEMENT_BYTES:
            raise InvalidShape(f"dtype is '{self.dtype}'; known are {', '.join(ELEMENT_BYTES)}")
        if min(self.window) < -1:
            raise InvalidShape(f"window is {self.window}; a side is a number of columns, or -1 for no limit")

    @property
    def element_bytes(self) -> int:
        """Bytes of one element of Q, K and V."""
        return ELEMENT_BYTES[self.dtype]

    @property
    def sequences(self) -> tuple[tuple[int, int, int], ...]:
        """Each different pair of (query rows, key rows), and how many sequences have it."""
        if not self.lengths:
            return ((self.seqlen_q, self.seqlen_k, self.batch),)
        counts: dict[tuple[int, int], int] = {}
        for pair in self.lengths:
            counts[pair] = counts.get(pair, 0) + 1
        return tuple((q, k, count) for (q, k), count in counts.items())

    @property
    def rows_q(self) -> int:
        """Query rows over all sequences, of one head."""
        return sum(q * count for q, _, count in self.sequences)

    @property
    def rows_k(self) -> int:
        """Key rows over all sequences, of one head."""
        return sum(k * count for _, k, count in self.sequences)

    @property
    def scores(self) -> int:
        """Elements of S over all sequences and query heads, masked ones too."""
        return self.heads * sum(q * k * count for q, k, count in self.sequences)

    @property
    def visible_scores(self) -> int:
        """Elements of S that the mask leaves, over all sequences and query heads."""
        return self.heads * sum(visible_pairs(self, q, k) * count for q, k, count in self.sequences)

    def limits(self) -> tuple[int | None, int | None]:
        """Return how many columns a row sees left and right of its diagonal; None for no limit."""
        left, right = (None if side < 0 else side for side in self.window)
        return left, 0 if self.causal else right


@dataclass(frozen=True, slots=True)
class Tile:
    """The tile that a kernel works with, and what a thread block of it takes.

    Attributes:
        block_m: B_r, rows of a Q tile.
        block_n: B_c, rows of a K and of a V tile.
        warps: of a thread block.
        shared_memory_bytes: of a thread block; 0 for not known.
        num_splits: parts that the keys are split into; 1 for kernels that do not split.
        packed: query heads that the host code lays side by side as rows of one head, when there is one row each.
        source: who chose it, in words.
    """

    block_m: int
    block_n: int
    warps: int = 4
    shared_memory_bytes: int = 0
    num_splits: int = 1
    packed: int = 1
    source: str = "given"

    def __post_init__(self) -> None:
        """Check the sizes."""
        for name, value in (("block_m", self.block_m), ("block_n", self.block_n), ("warps", self.warps)):
            check_positive(name, value)
        check_positive("num_splits", self.num_splits)
        check_positive("packed", self.packed)


def check_positive(name: str, value: int) -> None:
    """Refuse a size that is not a positive number of a sane order.

    Raises:
        InvalidShape: it is not.
    """
    if value < 1:
        raise InvalidShape(f"{name} is {value}; it must be at least 1")
    if value > _LARGEST:
        raise InvalidShape(f"{name} is {value}; that is more than any GPU holds")


def _check_lengths(lengths: tuple[tuple[int, int], ...]) -> None:
    for number, (q, k) in enumerate(lengths):
        if min(q, k) < 0:
            raise InvalidShape(f"sequence {number} has {q} query and {k} key rows; neither can be negative")


def as_launched(shape: Shape, tile: Tile) -> Shape:
    """Return the call as the kernel sees it: packed query heads are rows, and a single row needs no causal mask."""
    if tile.packed == 1:
        return shape
    return replace(
        shape,
        heads=shape.heads // tile.packed,
        seqlen_q=shape.seqlen_q * tile.packed,
        causal=False,
    )


def check_tile(tile: Tile, shape: Shape, tensors_m: int, tensors_n: int, limit: int, where: str) -> None:
    """Refuse a tile that does not fit into shared memory.

    Args:
        tile: the tile.
        shape: the call.
        tensors_m: how many tensors have a tile of ``block_m`` rows on chip.
        tensors_n: how many have one of ``block_n`` rows.
        limit: bytes that a thread block can have; 0 for not known, and then nothing is checked.
        where: whose limit that is, in words.

    Raises:
        InvalidShape: it does not fit.
    """
    needed = tile.shared_memory_bytes or tile_bytes_on_chip(tile, shape, tensors_m, tensors_n)
    if limit and needed > limit:
        raise InvalidShape(
            f"a {tile.block_m} × {tile.block_n} tile of head dim {shape.head_dim} in {shape.dtype} needs {needed:,} "
            f"bytes of shared memory; {where} gives a thread block {limit:,}: take a smaller block_m or block_n"
        )


def tile_bytes_on_chip(tile: Tile, shape: Shape, tensors_m: int, tensors_n: int) -> int:
    """Return the shared memory that the tiles alone take, in bytes."""
    rows = tensors_m * tile.block_m + tensors_n * tile.block_n
    return rows * shape.head_dim * shape.element_bytes


def key_tiles(shape: Shape, seqlen_q: int, seqlen_k: int, tile: Tile) -> list[tuple[int, int]]:
    """Return for each row tile i which column tiles hold a column that one of its rows sees: from first to end - 1.

    That is what a kernel with its outer loop over Q walks through; FlashAttention-2 (arXiv 2307.08691, section 3.1.1,
    "causal masking") skips whole tiles, and masks inside those that it visits.
    """
    return _tiles(seqlen_q, seqlen_k, seqlen_k - seqlen_q, shape.limits(), tile.block_m, tile.block_n)


def query_tiles(shape: Shape, seqlen_q: int, seqlen_k: int, tile: Tile) -> list[tuple[int, int]]:
    """Return for each column tile j which row tiles hold a row that sees one of its columns: from first to end - 1."""
    left, right = shape.limits()
    return _tiles(seqlen_k, seqlen_q, seqlen_q - seqlen_k, (right, left), tile.block_n, tile.block_m)


def _tiles(
    own: int, other: int, shift: int, limits: tuple[int | None, int | None], block: int, other_block: int
) -> list[tuple[int, int]]:
    before, after = limits
    ranges = []
    for start in range(0, own, block):
        first = 0 if before is None else max(0, start + shift - before)
        end = other if after is None else min(other, start + block + shift + after)
        first_tile, end_tile = first // other_block, -(-max(end, 0) // other_block)
        ranges.append((first_tile, end_tile) if first_tile < end_tile else (0, 0))
    return ranges


def rows_in(tiles: tuple[int, int], block: int, length: int) -> int:
    """Return how many rows of a sequence lie in tiles first to end - 1."""
    first, end = tiles
    return max(0, min(end * block, length) - first * block)


def visible_pairs(shape: Shape, seqlen_q: int, seqlen_k: int) -> int:
    """Return how many pairs (row, column) of one head of one sequence the mask leaves."""
    left, right = shape.limits()
    shift = seqlen_k - seqlen_q
    ends = seqlen_q * seqlen_k if right is None else _clipped_sum(shift + right + 1, seqlen_q, seqlen_k)
    firsts = 0 if left is None else _clipped_sum(shift - left, seqlen_q, seqlen_k)
    return ends - firsts


def _clipped_sum(start: int, count: int, limit: int) -> int:
    """Return the sum of min(max(start + r, 0), limit) for r = 0 … count - 1."""
    rising_from = min(max(-start, 0), count)
    rising_to = min(max(limit - start, rising_from), count)
    rising = rising_to - rising_from
    return rising * (2 * start + rising_from + rising_to - 1) // 2 + (count - rising_to) * limit
