"""A process that dies loses nothing that was saved, and leaves nothing half saved.

This module is also the program that gets killed: `python -m tests.test_kill put URL`.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections import defaultdict
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.base.id import uuid6
from sqlalchemy.engine import make_url

from cpstore import SQLAlchemySaver

if TYPE_CHECKING:
    from collections.abc import Iterator

    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import ChannelVersions, Checkpoint
    from sqlalchemy.engine import URL

THREAD: RunnableConfig = {"configurable": {"thread_id": "killed", "checkpoint_ns": ""}}
BATCH = 300  # writes of one task: so many that a kill falls within a batch, not between two
FRACTIONS = (0.3, 0.6, 0.9)  # of the time that a put takes: when in its midst the kill comes


def values_of(step: int) -> dict[str, Any]:
    """What the checkpoint of a step holds: a small value and a large one."""
    return {"number": step, "text": f"{step} " * 5000}


def checkpoint_of(step: int, versions: ChannelVersions) -> Checkpoint:
    return {
        **empty_checkpoint(),
        "v": 4,
        "id": str(uuid6(clock_seq=step)),
        "channel_values": values_of(step),
        "channel_versions": versions,
    }


# The process that gets killed.


def put_for_ever(saver: SQLAlchemySaver) -> Iterator[str]:
    """Put checkpoints, each the child of the last; yields each id after `put` returned."""
    config = THREAD
    for step in count():
        versions: ChannelVersions = {
            channel: saver.get_next_version(None, None) for channel in values_of(step)
        }
        metadata: Any = {"source": "loop", "step": step, "parents": {}}
        config = saver.put(config, checkpoint_of(step, versions), metadata, versions)
        yield config["configurable"]["checkpoint_id"]


def put_writes_for_ever(saver: SQLAlchemySaver) -> Iterator[str]:
    """Put one batch of writes per task; yields each task's id after `put_writes` returned."""
    config = saver.put(THREAD, checkpoint_of(0, {}), {"source": "input", "step": -1, "parents": {}}, {})
    for number in count():
        task_id = f"task-{number}"
        saver.put_writes(config, [("channel", [task_id, position]) for position in range(BATCH)], task_id)
        yield task_id


def main(what: str, url: str) -> None:
    with SQLAlchemySaver.from_url(url) as saver:
        for saved in {"put": put_for_ever, "put_writes": put_writes_for_ever}[what](saver):
            print(saved, flush=True)  # noqa: T201 - the killer reads it


# The killer.


def saved_before_kill(what: str, url: URL | str, after: int, fraction: float = 0.0) -> list[str]:
    """What the process reported as saved.

    It is killed after so many reports, and a fraction of the time that it took from one to the next.
    """
    text = make_url(url).render_as_string(hide_password=False)
    with subprocess.Popen(
        [sys.executable, "-m", "tests.test_kill", what, text],
        cwd=Path(__file__).parent.parent,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        reports = [process.stdout.readline()]
        began = time.perf_counter()
        reports += [process.stdout.readline() for _ in range(after - 1)]
        time.sleep(fraction * (time.perf_counter() - began) / max(1, after - 1))
        assert process.poll() is None
        process.kill()
        reports += process.stdout.readlines()
    return [line.strip() for line in reports if line.endswith("\n")]


@pytest.mark.parametrize("after", [1, 40])
def test_nothing_is_lost_that_put_returned(dialect_url: URL | str, after: int) -> None:
    saved = saved_before_kill("put", dialect_url, after)
    assert len(saved) >= after
    with SQLAlchemySaver.from_url(dialect_url) as saver:
        for step, checkpoint_id in enumerate(saved):
            one = saver.get_tuple(
                {"configurable": {**THREAD["configurable"], "checkpoint_id": checkpoint_id}}
            )
            assert one is not None
            assert one.checkpoint["channel_values"] == values_of(step)
            assert one.metadata["step"] == step


@pytest.mark.parametrize("fraction", FRACTIONS)
def test_no_checkpoint_is_half_saved(dialect_url: URL | str, fraction: float) -> None:
    saved = saved_before_kill("put", dialect_url, 20, fraction)
    with SQLAlchemySaver.from_url(dialect_url) as saver:
        found = list(saver.list(THREAD))
    assert len(saved) <= len(found) <= len(saved) + 1  # the last may be saved and not yet reported
    for one in found:
        assert one.checkpoint["channel_values"] == values_of(one.metadata["step"])


@pytest.mark.parametrize("fraction", FRACTIONS)
def test_each_batch_of_writes_is_there_whole_or_not_at_all(dialect_url: URL | str, fraction: float) -> None:
    saved = saved_before_kill("put_writes", dialect_url, 7, fraction)
    with SQLAlchemySaver.from_url(dialect_url) as saver:
        one = saver.get_tuple(THREAD)
    assert one is not None
    batches: dict[str, list[Any]] = defaultdict(list)
    for task_id, _, value in one.pending_writes or []:
        batches[task_id].append(value)
    assert set(saved) <= set(batches)
    for task_id, batch in batches.items():
        assert batch == [[task_id, position] for position in range(BATCH)]


if __name__ == "__main__":
    main(*sys.argv[1:])
