"""The benchmark suite says what it found, and measures the same data each time. Nothing is timed here."""

from __future__ import annotations

import json
import pickle
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks import report, workloads
from benchmarks.figures import Curve, Figure, Results, Sample, percentile
from benchmarks.rounds import at_once, in_turns
from benchmarks.targets import TARGETS, Target, target_of
from cpstore import Serializer, SQLAlchemySaver

if TYPE_CHECKING:
    from pathlib import Path

FACTS: dict[str, Any] = {
    "date": "2026-01-01",
    "quick": False,
    "seed": 1,
    "cpus": 2,
    "machine": "Linux x86_64",
    "python": "3.11.0",
    "packages": {"cpstore": "0.1.0", "sqlalchemy": "2.0.38"},
    "postgresql": {"server_version": "18.0", "fsync": "on"},
    "sqlite": "3.40.1",
    "microseconds of an fsync": 200,
}


def figure(ours: float, other: float, **names: Any) -> Figure:
    known = {"suite": "operations", "backend": "postgres sync", "case": "chat", "operation": "put"}
    return Figure(ours=Sample(ours, ours * 2, 9), other=Sample(other, other * 2, 9), **{**known, **names})


# Figures and targets


def test_a_sample_of_times_is_in_microseconds() -> None:
    assert Sample.of_seconds([0.001, 0.003, 0.002]) == Sample(2000, 3000, 3)


def test_of_rates_the_low_ones_are_the_bad_ones() -> None:
    assert Sample.of_rates([300, 100, 200]) == Sample(200, 100, 3)


@pytest.mark.parametrize(("count", "expected"), [(1, 1), (10, 10), (20, 19), (100, 95), (101, 96)])
def test_of_a_sample_95_in_100_are_not_above_its_p95(count: int, expected: int) -> None:
    assert percentile(list(range(count, 0, -1)), 0.95) == expected


def test_the_first_target_that_covers_a_figure_counts() -> None:
    assert target_of(figure(1, 1)) == Target("operations", "postgres sync", "*", "put", 0.95)
    wide = target_of(figure(1, 1, backend="sqlite sync", case="wide"))
    assert wide is not None
    assert wide.bound == 0.5
    assert target_of(figure(1, 1, backend="sqlite sync", case="tiny")) is None


def test_a_figure_against_something_else_has_another_target() -> None:
    long = {"suite": "long", "operation": "put at 400"}
    bounds = [
        target_of(figure(1, 1, **long, backend="sqlite sync")),
        target_of(figure(1, 1, **long, backend="postgres sync")),
        target_of(figure(1, 1, **long, backend="sqlite sync", against="put at 20")),
    ]
    assert [target and target.bound for target in bounds] == [0.6, 0.3, 4.0]


@pytest.mark.parametrize(
    ("ours", "other", "names", "met"),
    [
        (95, 100, {}, True),
        (96, 100, {}, False),
        (130, 100, {"suite": "concurrent", "operation": "throughput", "unit": "ops/s"}, True),
        (129, 100, {"suite": "concurrent", "operation": "throughput", "unit": "ops/s"}, False),
        (4e6, 1, {"suite": "long", "operation": "storage at 400", "unit": "bytes"}, True),
        (4.1e6, 100e6, {"suite": "long", "operation": "storage at 400", "unit": "bytes"}, False),
        (135, 100, {"suite": "floor", "against": "floor"}, True),
    ],
)
def test_a_target_is_met_or_not(ours: float, other: float, names: dict[str, Any], met: bool) -> None:
    found = figure(ours, other, **names)
    target = target_of(found)
    assert target is not None
    assert target.is_met(found) is met


def test_targets_are_said_as_people_write_them() -> None:
    said = {str(target) for target in TARGETS}
    assert {"≤ 0.95", "≥ 1.30", "≤ 4 MB", "≤ 1.35"} <= said


# Reports

FIGURES = [
    figure(500, 1000),
    figure(1000, 500, operation="list 20"),
    figure(20, 10, suite="big", case="8 MiB"),
    Figure(
        "long", "sqlite sync", "1 kB", "storage at 100", Sample.of_one(2e6), Sample.of_one(4e6), unit="bytes"
    ),
]


def test_the_table_on_the_terminal_is_aligned() -> None:
    lines = report.as_text(FIGURES[:2]).splitlines()
    assert lines[0] == "Operations one by one"
    assert lines[2].split() == [
        *("postgres", "sync", "chat", "put", "500", "us", "1,000", "us", "1,000", "us", "2,000", "us"),
        *("0.50", "≤", "0.95", "yes"),
    ]
    assert lines[2].index("500 us") + 6 == lines[3].index("1,000 us") + 8
    assert lines[3].endswith("≤ 0.60   NO")


def test_the_page_has_a_table_for_each_suite() -> None:
    page = report.as_markdown(FIGURES, FACTS)
    rows = [line for line in page.splitlines() if line.startswith("| ")]
    assert {row.count("|") for row in rows} == {len(report.HEADINGS) + 1}
    assert [line for line in page.splitlines() if line.startswith("## ")] == [
        "## Operations one by one",
        "## One large value",
        "## A conversation that grows",
    ]
    assert "1 of 2 figures that have a target meet it." in page
    assert "| sqlite sync | 1 kB | storage at 100 | 2.00 MB |  | 4.00 MB |  | 0.50 |  |  |" in rows


def test_the_page_says_if_the_run_was_quick_or_without_a_server() -> None:
    assert report.QUICK not in report.as_markdown(FIGURES, FACTS)
    page = report.as_markdown(FIGURES, {**FACTS, "quick": True, "postgresql": None})
    assert report.QUICK in page
    assert "PostgreSQL 18" not in page


def test_the_file_for_programs_has_everything(tmp_path: Path) -> None:
    curve = Curve("sqlite", "cpstore", "put", "us", [(10, 1.5), (20, 2.5)])
    report.write(Results(FIGURES, [curve]), FACTS, tmp_path / "new" / "folder")
    found = json.loads((tmp_path / "new" / "folder" / "results.json").read_text())
    assert found["facts"] == FACTS
    assert found["figures"][0]["ours"] == {"median": 500, "p95": 1000, "count": 9}
    assert found["figures"][0]["ratio"] == 0.5
    assert [one["met"] for one in found["figures"]] == [True, False, None, None]
    assert found["curves"][0]["points"] == [[10, 1.5], [20, 2.5]]
    assert (tmp_path / "new" / "folder" / "results.md").read_text().startswith("# Benchmarks")


# Data

MAKERS = {**workloads.WORKLOADS, "long": workloads.long}


@pytest.mark.parametrize("name", MAKERS)
def test_a_workload_is_the_same_each_time(name: str) -> None:
    first, second = (pickle.dumps(MAKERS[name](45)) for _ in range(2))
    assert first == second


@pytest.mark.parametrize("name", MAKERS)
def test_a_workload_begins_as_its_longer_self(name: str) -> None:
    short, long = MAKERS[name](7), MAKERS[name](12)
    assert short == long[:7]


@pytest.mark.parametrize("name", MAKERS)
def test_steps_are_what_langgraph_gives_a_saver(name: str, keeper: SQLAlchemySaver) -> None:
    config: Any = {"configurable": {"thread_id": name, "checkpoint_ns": ""}}
    steps = MAKERS[name](3)
    for step in steps:
        config = keeper.put(config, step.checkpoint, step.metadata, step.new_versions)
        keeper.put_writes(config, step.writes, step.task_id)
    found = list(keeper.list({"configurable": {"thread_id": name}}))
    assert [one.checkpoint for one in found] == [step.checkpoint for step in steps[::-1]]
    assert all(len(one.pending_writes or ()) == 2 for one in found)


def test_ids_and_versions_grow() -> None:
    ids = [workloads.checkpoint_id(number) for number in range(1000)]
    assert ids == sorted(set(ids))
    versions = [workloads.version(number) for number in range(1000)]
    assert versions == sorted(set(versions))


def test_the_sizes_are_those_that_are_said() -> None:
    chat, wide = workloads.chat(41), workloads.wide(2)
    assert len(chat[39].checkpoint["channel_values"]["messages"]) == 40
    assert len(chat[40].checkpoint["channel_values"]["messages"]) == 40
    assert all(200 <= len(one.content) <= 400 for one in chat[40].checkpoint["channel_values"]["messages"])
    values = [Serializer().dumps_typed(value)[1] for value in wide[1].checkpoint["channel_values"].values()]
    assert len(values) == 30
    assert all(1_800 <= len(value) <= 2_200 for value in values)
    assert len(wide[1].new_versions) == 2
    big = workloads.big(1000)
    assert list(map(len, big.checkpoint["channel_values"].values())) == [1000]


# Turns


async def test_contenders_begin_in_turn() -> None:
    seen: list[str] = []

    async def work(name: str) -> None:
        seen.append(name)

    await in_turns(["ours", "theirs"], 3, work)
    assert seen == ["ours", "theirs", "theirs", "ours", "ours", "theirs"]


def test_what_never_waits_needs_no_event_loop() -> None:
    async def work() -> int:
        return 7

    assert at_once(work()) == 7
