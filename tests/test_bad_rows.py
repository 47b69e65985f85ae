"""One bad row does not lock a thread: lists go on, and what reads no values never notices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from cpstore import AESGCMSerializer, UnreadableValueError
from tests.test_values import THREAD, checkpoint

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from sqlalchemy import Engine

    from cpstore import SQLAlchemySaver
    from tests.ways import Way

BAD = {
    "undecodable": "UPDATE checkpoint_blobs SET type = 'tomorrow' WHERE channel LIKE 'c1%'",
    "damaged": "UPDATE checkpoint_blobs SET blob = CAST('damaged' AS {bytes}) WHERE channel LIKE 'c1%'",
    "damaged write": "UPDATE checkpoint_writes SET blob = CAST('damaged' AS {bytes}) WHERE channel = 'w1'",
    "document": "UPDATE checkpoints SET checkpoint = '[1]' WHERE checkpoint_id = '00001'",
}
BYTES = {"sqlite": "BLOB", "postgresql": "BYTEA"}


async def fill(saver: SQLAlchemySaver, thread: str = "thread") -> list[RunnableConfig]:
    """Four checkpoints, each with a blob of its own and a write."""
    config: Any = {"configurable": {**THREAD["configurable"], "thread_id": thread}}
    stored = []
    for number in range(4):
        made: Any = {**checkpoint({f"c{number}": [number]}), "id": f"{number:05}"}
        config = await saver.aput(config, made, {"step": number}, made["channel_versions"])
        await saver.aput_writes(config, [(f"w{number}", [number])], "task")
        stored.append(config)
    return stored


async def execute(way: Way, engine: Engine | AsyncEngine, statement: str) -> None:
    made = text(statement.format(bytes=BYTES[way.dialect]))
    if isinstance(engine, AsyncEngine):
        async with engine.begin() as connection:
            await connection.execute(made)
    else:
        with engine.begin() as connection:
            connection.execute(made)


@pytest.mark.parametrize("bad", BAD)
async def test_a_list_goes_on_and_tells_which(
    way: Way, saver: SQLAlchemySaver, engine: Engine | AsyncEngine, bad: str
) -> None:
    stored = await fill(saver)
    await execute(way, engine, BAD[bad])
    told: list[tuple[RunnableConfig, Exception]] = []
    found = [one async for one in list_with(way, saver, lambda *what: told.append(what))]
    assert [one.metadata["step"] for one in found] == [3, 2, 0]
    assert [config for config, _ in told] == [stored[1]]
    assert isinstance(told[0][1], UnreadableValueError)
    assert "00001" in str(told[0][1])
    with pytest.raises(UnreadableValueError):
        [one async for one in saver.alist(THREAD)]
    with pytest.raises(UnreadableValueError):
        await saver.aget_tuple(stored[1])
    assert await saver.aget_tuple(THREAD) is not None


async def list_with(way: Way, saver: SQLAlchemySaver, on_error: Any) -> Any:
    if way.sync:
        for found in saver.list(THREAD, on_error=on_error):
            yield found
    else:
        async for found in saver.alist(THREAD, on_error=on_error):
            yield found


@pytest.mark.parametrize("bad", BAD)
async def test_whole_threads_are_handled_all_the_same(
    way: Way, saver: SQLAlchemySaver, engine: Engine | AsyncEngine, bad: str
) -> None:
    stored = await fill(saver)
    await execute(way, engine, BAD[bad])
    history = [one.checkpoint_id async for one in _history(way, saver)]
    assert history == ["00003", "00002", "00001", "00000"]
    (thread,) = saver.list_threads() if way.sync else await saver.alist_threads()
    assert (thread.thread_id, thread.checkpoints) == ("thread", 4)
    await saver.acopy_thread("thread", "copy")
    await saver.acopy_thread("thread", "chain", checkpoint_id="00002")
    await saver.aprune(["thread"])
    assert [one.metadata["step"] async for one in saver.alist(THREAD)] == [3]
    copied: RunnableConfig = {"configurable": {**stored[1]["configurable"], "thread_id": "copy"}}
    with pytest.raises(UnreadableValueError, match="copy"):
        await saver.aget_tuple(copied)
    for name in ("thread", "copy", "chain"):
        await saver.adelete_thread(name)
    assert [one.checkpoint_id async for one in _history(way, saver)] == []


async def _history(way: Way, saver: SQLAlchemySaver) -> Any:
    if way.sync:
        for found in saver.history("thread"):
            yield found
    else:
        async for found in saver.ahistory("thread"):
            yield found


async def test_an_encrypted_row_that_is_damaged_is_in_the_way_of_a_copy_only(
    way: Way, saver: SQLAlchemySaver, engine: Engine | AsyncEngine
) -> None:
    """It cannot be bound to another thread without being opened."""
    saver.serde = AESGCMSerializer({"k": b"k" * 32})
    await fill(saver)
    await execute(way, engine, BAD["damaged"])
    with pytest.raises(UnreadableValueError):
        await saver.acopy_thread("thread", "copy")
    assert [one async for one in saver.alist({"configurable": {"thread_id": "copy"}})] == []
    await saver.aprune(["thread"])
    assert len([one async for one in saver.alist(THREAD)]) == 1
