"""The colours of every picture, for light and for dark viewers."""

from __future__ import annotations

from tracer.model import Language
from tracer.records import dataclass


@dataclass(frozen=True, slots=True)
class Tint:
    """The colours of one language: its area, its files, their outlines and its name."""

    name: str
    wash: str
    fill: str
    line: str
    border: str
    dark_wash: str
    dark_fill: str
    dark_border: str


LANGUAGE = {
    Language.PYTHON: Tint("python", "#eef4fb", "#e0ebf7", "#b9cfe6", "#2c5f93", "#10202f", "#182c40", "#8ab8e6"),
    Language.BINDING: Tint("binding", "#f7f1fb", "#eee3f6", "#d3bfe2", "#6f4393", "#22172b", "#2f203b", "#c9a5e6"),
    Language.CPP: Tint("cpp", "#f1f7ee", "#e3efdd", "#bfd7b4", "#3b6e2b", "#15230f", "#1e3217", "#a0d48c"),
    Language.CUDA: Tint("cuda", "#fcf5e8", "#f7ead0", "#e3cd9d", "#80590c", "#271e0b", "#382b10", "#e6c068"),
}

PAPER = "#ffffff"
TEXT = "#1b1f24"
SMALL_TEXT = "#57606a"
CLUSTER_TEXT = "#3c434b"
LINE = "#8c959f"
FADED = "#a3abb5"
ROUTE = "#c0392b"

DARK_PAPER = "#0d1117"
DARK_BOX = "#161b22"
DARK_TEXT = "#e6edf3"
DARK_SMALL_TEXT = "#9da7b1"
DARK_FADED = "#6e7681"
DARK_ROUTE = "#ff7b72"
