"""Pictures of the figures, as SVG. This is the only module that needs matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Picture

from benchmarks.databases import DIALECTS
from benchmarks.figures import Curve, Figure, Results
from benchmarks.report import curves_of
from benchmarks.targets import target_of

COLOURS = {"cpstore": "#1f6f8b", "official": "#c8763c"}
TITLES = {"postgresql": "PostgreSQL", "sqlite": "SQLite"}
WAYS_OF_A_ROW = 3

NOTHING = {"Date": None, "Creator": None, "Format": None, "Type": None}
"""Metadata that would change with each run or version."""

mpl.rcParams["svg.hashsalt"] = "cpstore"  # else ids inside the file are random


def draw(results: Results, folder: Path) -> None:
    """All pictures that there are figures for."""
    folder.mkdir(parents=True, exist_ok=True)
    if results.curves:
        grow(curves_of(results, "storage"), "MB", 1e6, folder / "growth-storage.svg")
        grow(curves_of(results, "put"), "ms", 1e3, folder / "growth-put.svg")
    compared = [figure for figure in results.figures if figure.suite == "operations"]
    if compared:
        bars(compared, folder / "ratios.svg")


def grow(curves: Sequence[Curve], unit: str, scale: float, path: Path) -> None:
    """Curves over the length of a conversation, one picture for each database."""
    picture = Picture(figsize=(9, 3.4), layout="constrained")
    for place, dialect in enumerate(DIALECTS, 1):
        axes = picture.add_subplot(1, len(DIALECTS), place)
        for curve in curves:
            if curve.backend == dialect:
                lengths, values = zip(*curve.points, strict=True)
                shown = [value / scale for value in values]
                axes.plot(lengths, shown, label=curve.contender, color=COLOURS[curve.contender])
        axes.set(title=TITLES[dialect], xlabel="messages of 1 kB", ylabel=f"{curves[0].what}, {unit}")
        axes.set_ylim(bottom=0)
        dressed(axes)
    save(picture, path)


def bars(figures: Sequence[Figure], path: Path) -> None:
    """Ratios to the official saver, with the targets as marks."""
    ways = list(dict.fromkeys(figure.backend for figure in figures))
    rows = -(-len(ways) // WAYS_OF_A_ROW)
    picture = Picture(figsize=(11, 3.3 * rows), layout="constrained")
    for place, way in enumerate(ways, 1):
        axes = picture.add_subplot(rows, WAYS_OF_A_ROW, place)
        bars_of([figure for figure in figures if figure.backend == way], axes)
        axes.set(title=way, xlabel="cpstore / official")
    save(picture, path)


def bars_of(figures: Sequence[Figure], axes: Axes) -> None:
    """The bars of one way; what is left of the line is faster than the official saver."""
    names = [f"{figure.case} {figure.operation}" for figure in figures]
    axes.barh(names, [figure.ratio for figure in figures], color=COLOURS["cpstore"])
    for number, figure in enumerate(figures):
        target = target_of(figure)
        if target is not None:
            axes.plot([target.bound] * 2, [number - 0.4, number + 0.4], color="black", linewidth=1.5)
    axes.axvline(1, color=COLOURS["official"], linewidth=1)
    axes.invert_yaxis()
    axes.tick_params(labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)


def dressed(axes: Axes) -> None:
    """A legend, and no more lines than are needed."""
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)


def save(picture: Picture, path: Path) -> None:
    """An SVG that is the same for the same figures."""
    picture.savefig(path, format="svg", metadata=NOTHING)
