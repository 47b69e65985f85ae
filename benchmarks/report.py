"""What was found, for people and for programs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import Any

from benchmarks.figures import Curve, Figure, Results, Sample, Unit
from benchmarks.targets import target_of

Facts = dict[str, Any]

HEADINGS = ("way", "data", "operation", "cpstore", "p95", "other", "p95", "ratio", "target", "met")
LEFT = 3
"""So many columns are words; the others are figures."""

TITLES = {
    "operations": "Operations one by one",
    "history": "A thread of 200 checkpoints",
    "graph": "A LangGraph agent of 20 super-steps",
    "concurrent": "Callers at the same time",
    "big": "One large value",
    "long": "A conversation that grows",
    "many": "Many checkpoints in the tables",
    "floor": "The same SQL through psycopg alone",
}

INTRODUCTION = """\
# Benchmarks

cpstore beside the official savers, in one process, in short rounds taken in turns. `cpstore` and `other`
are medians; `other` is the official saver, unless the operation says what else. The ratio is cpstore's
median to the other's: below 1, cpstore is faster or smaller; of a throughput, above 1. A target is for the
ratio, or for cpstore's own bytes. Commits are durable, as databases and savers have it by default; the
settings of the server and the price of waiting for the disk stand below.
"""

QUICK = """\
**A quick run: few rounds on little data. It shows that all works, and its figures are rough.**
"""


def row(figure: Figure) -> list[str]:
    """A figure's line."""
    against = "" if figure.against == "official" else f", to {figure.against}"
    target = target_of(figure)
    return [
        figure.backend,
        figure.case,
        figure.operation + against,
        *cells(figure.ours, figure.unit),
        *cells(figure.other, figure.unit),
        f"{figure.ratio:.2f}",
        str(target or ""),
        "" if target is None else "yes" if target.is_met(figure) else "NO",
    ]


def cells(sample: Sample, unit: Unit) -> list[str]:
    """A median, and what 95 in 100 are not worse than; of what is counted there is no such."""
    return [shown(sample.median, unit), shown(sample.p95, unit) if sample.count > 1 else ""]


def shown(value: float, unit: Unit) -> str:
    """A value with a unit that a person can read."""
    if unit == "bytes":
        return f"{value / 1e6:.2f} MB" if value >= 1e5 else f"{value / 1e3:.1f} kB"
    if unit == "ops/s":
        return f"{value:,.0f}/s"
    return f"{value / 1e3:,.1f} ms" if value >= 1e4 else f"{value:,.0f} us"


def by_suite(figures: Iterable[Figure]) -> list[tuple[str, list[list[str]]]]:
    """The lines of each suite, in the order in which the suites ran."""
    return [(suite, [row(one) for one in found]) for suite, found in groupby(figures, lambda one: one.suite)]


def as_text(figures: Sequence[Figure]) -> str:
    """Tables for a terminal."""
    return "\n\n".join(
        "\n".join([TITLES[suite], *aligned([list(HEADINGS), *rows])]) for suite, rows in by_suite(figures)
    )


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of columns as wide as their widest cell."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if number < LEFT else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ).rstrip()
        for cells in rows
    ]


def as_markdown(figures: Sequence[Figure], facts: Facts) -> str:
    """The page `results.md`."""
    parts = [INTRODUCTION, *([QUICK] if facts["quick"] else []), *about(facts), met_in_all(figures)]
    for suite, rows in by_suite(figures):
        rule = ["---"] * LEFT + ["--:"] * (len(HEADINGS) - LEFT)
        lines = [f"| {' | '.join(cells)} |" for cells in (HEADINGS, rule, *rows)]
        parts.append("\n".join([f"## {TITLES[suite]}\n", *lines, ""]))
    return "\n".join(parts)


def met_in_all(figures: Iterable[Figure]) -> str:
    """How many targets are met."""
    bound = [(figure, target) for figure in figures if (target := target_of(figure))]
    met = sum(target.is_met(figure) for figure, target in bound)
    return f"{met} of {len(bound)} figures that have a target meet it.\n"


def about(facts: Facts) -> list[str]:
    """The machine and the versions, as a list."""
    packages = ", ".join(f"{name} {version}" for name, version in facts["packages"].items())
    server = facts["postgresql"]
    settings = server and ", ".join(f"{name} {value}" for name, value in list(server.items())[1:])
    lines = [
        f"- {facts['date']}, {facts['machine']}, {facts['cpus']} CPUs, Python {facts['python']}",
        f"- an fsync of 8 kB takes {facts['microseconds of an fsync']} us on the disk of the databases",
        f"- SQLite {facts['sqlite']}",
        *([f"- PostgreSQL {server['server_version']}: {settings}"] if server else []),
        f"- {packages}",
        f"- the seed of the data is {facts['seed']}",
    ]
    return ["\n".join([*lines, ""])]


def as_json(results: Results, facts: Facts) -> str:
    """The file `results.json`: times in microseconds, sizes in bytes, throughput in operations a second."""
    figures = [{**figure.as_json(), **judged(figure)} for figure in results.figures]
    curves = [asdict(curve) for curve in results.curves]
    return json.dumps({"facts": facts, "figures": figures, "curves": curves}, indent=1) + "\n"


def judged(figure: Figure) -> dict[str, Any]:
    """The target of a figure, for programs."""
    target = target_of(figure)
    return {
        "target": None if target is None else asdict(target),
        "met": None if target is None else target.is_met(figure),
    }


def write(results: Results, facts: Facts, folder: Path) -> None:
    """Both files."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results.json").write_text(as_json(results, facts), encoding="utf-8")
    (folder / "results.md").write_text(as_markdown(results.figures, facts), encoding="utf-8")


def curves_of(results: Results, what: str) -> list[Curve]:
    """The curves of one kind."""
    return [curve for curve in results.curves if curve.what == what]
