"""An application around the saver: its engine, every operation on it, and what others see of that."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from langgraph.checkpoint.base import empty_checkpoint
from sqlalchemy import Connection, Engine, NullPool, create_engine, make_url
from sqlalchemy.engine.default import DefaultDialect
from sqlalchemy.ext.asyncio import AsyncEngine

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import Checkpoint

    from cpstore import SQLAlchemySaver

Make = Callable[..., Engine | AsyncEngine]
"""Makes the application's engine with options of its own (fixture `make_engine`)."""

THREAD: RunnableConfig = {"configurable": {"thread_id": "thread", "checkpoint_ns": ""}}

ONE = {"pool_size": 1, "max_overflow": 0, "pool_timeout": 5}
"""Whoever takes a connection gets the one that the others had, and waits in vain for a second."""

NEW_OPTIONS: dict[str, dict[str, Any]] = {
    name: {name: True}
    for name in ("skip_autocommit_rollback",)
    if name in inspect.signature(DefaultDialect.__init__).parameters
}
"""Options of SQLAlchemy that its oldest supported version does not know."""


def sync_of(engine: Engine | AsyncEngine) -> Engine:
    """The engine that has the pool and the events."""
    return engine.sync_engine if isinstance(engine, AsyncEngine) else engine


async def ask(engine: Engine | AsyncEngine, question: Callable[[Connection], Any]) -> Any:
    """What a connection of the application answers."""
    if isinstance(engine, AsyncEngine):
        async with engine.connect() as connection:
            return await connection.run_sync(question)
    with engine.connect() as connected:
        return question(connected)


def checkpoint(**values: Any) -> Checkpoint:
    """A new checkpoint with channels at version 1."""
    return {
        **empty_checkpoint(),
        "v": 4,
        "channel_values": values,
        "channel_versions": dict.fromkeys(values, "1"),
    }


async def use(saver: SQLAlchemySaver, url: str) -> None:
    """Run every operation; what `put` returned for is there for everybody else."""
    await saver.asetup()
    stored = await saver.aput(THREAD, checkpoint(words=["a"]), {"run_id": "1"}, {"words": "1"})
    assert rows(url) == [1, 1, 0]
    await saver.aput_writes(stored, [("words", "b")], "task")
    assert rows(url) == [1, 1, 1]
    again = await saver.aput(stored, checkpoint(words=["c"]), {"step": 1}, {"words": "1"})
    found = await saver.aget_tuple(stored)
    assert found is not None
    assert found.checkpoint["channel_values"] == {"words": ["a"]}
    assert found.metadata["run_id"] == "1"
    assert [one.config async for one in saver.alist(None, filter={"step": 1})] == [again]
    assert [one.thread_id for one in await saver.alist_threads()] == ["thread"]
    assert len([one async for one in saver.ahistory("thread")]) == 2
    histories = await saver.aget_delta_channel_history(config=again, channels=["words"])
    assert histories["words"]["writes"] == [("task", "words", "b")]
    await saver.acopy_thread("thread", "copy")
    assert rows(url) == [4, 2, 2]
    await saver.aprune(["copy"])
    await saver.adelete_for_runs(["1"])
    assert rows(url)[0] == 2
    await saver.adelete_thread("thread")
    await saver.adelete_thread("copy")
    assert rows(url) == [0, 0, 0]
    await saver.areclaim_space()


def rows(url: str) -> list[int]:
    """The rows of the three tables, as a connection sees them that is not the application's."""
    parsed = make_url(url)
    question = "SELECT " + ", ".join(
        f"(SELECT count(*) FROM {table})"
        for table in ("checkpoints", "checkpoint_blobs", "checkpoint_writes")
    )
    name = "sqlite" if parsed.get_backend_name() == "sqlite" else "postgresql+psycopg"
    engine = create_engine(parsed.set(drivername=name), poolclass=NullPool)
    with engine.connect() as connection:
        return list(connection.exec_driver_sql(question).one())


def of(number: int) -> RunnableConfig:
    """The root graph of a thread."""
    return {"configurable": {"thread_id": str(number), "checkpoint_ns": ""}}
