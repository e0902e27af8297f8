"""The tile of a call, taken from what the checkout's own host code picks for it on a GPU."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tracer.errors import TracerError
from tracer.traffic.shapes import Shape, Tile

if TYPE_CHECKING:
    from types import TracebackType

    from tracer.dispatch import Device, Dispatcher, Launch, Prediction
    from tracer.graph import Program

_BLOCK_M = re.compile(r"k?_?(block|tile)_?m", re.IGNORECASE)
_BLOCK_N = re.compile(r"k?_?(block|tile)_?n", re.IGNORECASE)


class NoTile(TracerError):
    """The checkout runs nothing for this call whose tile could be told."""


class CheckoutTiles:
    """Asks a checkout for the tile of each call; a ``TileSource``. Close it when done."""

    def __init__(
        self, program: Program, device: Device, *, entry: str = "flash_attn_func", backward_entry: str = "mha_bwd"
    ) -> None:
        """Choose checkout and GPU.

        Args:
            program: the checkout.
            device: on which GPU the call runs.
            entry: the function that is called.
            backward_entry: the function that a backward pass calls.
        """
        self._program, self._device = program, device
        self._entries = {False: entry, True: backward_entry}
        self._dispatcher: Dispatcher | None = None
        self.predictions: dict[tuple[Shape, bool], Prediction] = {}

    def __call__(self, shape: Shape, algorithm: str) -> Tile:
        """Return the tile that runs.

        Raises:
            NoTile: the call is refused, or what it launches has no tile.
            TracerError: the checkout's code cannot be followed.
        """
        return tile_of(self.prediction(shape, algorithm), shape)

    def prediction(self, shape: Shape, algorithm: str) -> Prediction:
        """Return what the checkout does for a call. Raises TracerError where that cannot be told."""
        from tracer.dispatch import Dispatcher, Question, ask

        backward = algorithm.endswith("backward")
        if (shape, backward) not in self.predictions:
            if self._dispatcher is None:
                self._dispatcher = Dispatcher(self._program)
            question = Question(
                entry=self._entries[backward],
                dtype=shape.dtype,
                batch=shape.batch,
                heads=shape.heads,
                heads_k=shape.heads_k,
                seqlen_q=shape.seqlen_q,
                seqlen_k=shape.seqlen_k,
                head_dim=shape.head_dim,
                causal=shape.causal,
                window=shape.window,
            )
            self.predictions[shape, backward] = ask(self._dispatcher, question, self._device).prediction
        return self.predictions[shape, backward]

    def close(self) -> None:
        """Keep what was read for the next run."""
        if self._dispatcher is not None:
            self._dispatcher.close()
            self._dispatcher = None

    def __enter__(self) -> CheckoutTiles:
        """Return this object."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()


def tile_of(prediction: Prediction, shape: Shape) -> Tile:
    """Return the tile of the kernel that does the work of a call.

    Args:
        prediction: what the checkout launches.
        shape: the call.

    Raises:
        NoTile: the call is refused, or none of the launches has a tile.
    """
    if prediction.error is not None:
        raise NoTile(f"the checkout refuses this call at {prediction.error.location}: {prediction.error.message}")
    for launch in prediction.launches:
        block_m, block_n = _constant(launch, _BLOCK_M), _constant(launch, _BLOCK_N)
        if block_m and block_n:
            splits = max(1, prediction.num_splits or 1)
            return Tile(
                block_m,
                block_n,
                warps=max(1, launch.block[0] * launch.block[1] * launch.block[2] // 32),
                shared_memory_bytes=launch.shared_memory_bytes,
                num_splits=splits,
                packed=_packed(launch, shape, splits),
                source=f"{launch.kernel} at {launch.location}",
            )
    launched = ", ".join(launch.kernel for launch in prediction.launches) or "nothing"
    more = f" ({prediction.note})" if prediction.note else ""
    raise NoTile(f"the call launches {launched}{more}, which has no tile; give --block-m and --block-n")


def _constant(launch: Launch, pattern: re.Pattern[str]) -> int | None:
    return next((value for name, value in launch.traits if pattern.fullmatch(name)), None)


def _packed(launch: Launch, shape: Shape, splits: int) -> int:
    """Tell how many query heads the host code lays side by side as rows of one: its grid then has fewer heads."""
    _, y, z = launch.grid
    heads = y * z // splits
    if shape.seqlen_q > 1 or not heads or shape.batch * shape.heads % heads:
        return 1
    packed = shape.batch * shape.heads // heads
    return packed if (shape.heads // shape.heads_k) % packed == 0 else 1
