"""Measure cpstore beside the official savers.

The figures go to the terminal, and with pictures of them to the files results.json, results.md and *.svg.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from benchmarks import floor, graph, history, large, long, machine, many, operations, report, throughput
from benchmarks.bench import Bench
from benchmarks.databases import Databases, databases
from benchmarks.figures import Results
from benchmarks.report import Facts

OUT = Path(__file__).parent.parent / "docs" / "benchmarks"

SUITES: dict[str, Callable[[Bench], Awaitable[None]]] = {
    "chat": partial(operations.measure, case="chat"),
    "wide": partial(operations.measure, case="wide"),
    "tiny": partial(operations.measure, case="tiny"),
    "history": history.measure,
    "graph": graph.measure,
    "concurrent": throughput.measure,
    "long": long.measure,
    "many": many.measure,
    "floor": floor.measure,
    "big": large.measure,  # last: it leaves the largest files behind
}


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="under a minute: does it run at all?")
    parser.add_argument("--only", nargs="+", choices=SUITES, metavar="NAME", help=", ".join(SUITES))
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="where files go: docs/benchmarks, and with --only nowhere"
    )
    chosen = parser.parse_args(given)
    if chosen.out is None and not chosen.only:  # a part must not take the place of the whole
        chosen.out = OUT
    return chosen


async def run(places: Databases, names: Sequence[str], quick: bool) -> tuple[Results, Facts]:
    """The suites one after the other, in one event loop."""
    async with AsyncExitStack() as stack:
        bench = Bench(places, stack, quick)
        gc.freeze()  # what was imported is not looked through again and again
        for name in names:
            await SUITES[name](bench)
        bench.say("done")
        return bench.results, machine.facts(bench)


def main() -> None:
    """Run what the command line asks for, and report it."""
    chosen = arguments()
    with databases() as places:
        results, facts = asyncio.run(run(places, chosen.only or list(SUITES), chosen.quick))
    print(report.as_text(results.figures))
    print(f"\n{report.met_in_all(results.figures)}")
    if chosen.out is not None:
        report.write(results, facts, chosen.out)
        draw(results, chosen.out)


def draw(results: Results, folder: Path) -> None:
    """Pictures, where matplotlib is there to draw them."""
    if find_spec("matplotlib") is None:
        print("No pictures without matplotlib, which the dependency group `bench` brings.")
        return
    from benchmarks import plots

    plots.draw(results, folder)


if __name__ == "__main__":
    main()
