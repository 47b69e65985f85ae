"""A tour of all that a saver can do, each operation at least once, with what must come of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langgraph.checkpoint.base import empty_checkpoint

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

    from cpstore import SQLAlchemySaver


async def tour(saver: SQLAlchemySaver, thread: str = "tour", word: str = "word") -> None:
    """Store, read, search, copy, prune and delete, in a database whose other threads nobody touches."""
    root: RunnableConfig = {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}
    at = root
    for step in range(3):
        at = await put(saver, at, step, word)
        await saver.aput_writes(at, [("log", [step]), ("__error__", "e")], f"task {step}", "path")
    await put(saver, {"configurable": {"thread_id": thread, "checkpoint_ns": "node:1"}}, 0, word)
    await _reads(saver, root, word)
    await _changes(saver, thread)
    assert [one async for one in saver.alist(root)] == []


async def put(saver: SQLAlchemySaver, at: RunnableConfig, step: int, word: str) -> RunnableConfig:
    """Store a checkpoint below another one, of a run of its own."""
    made: Any = {**empty_checkpoint(), "v": 4}
    made["channel_values"] = {"word": word, "list": [word] * step}
    made["channel_versions"] = {"word": f"{step + 1}", "list": f"{step + 1}"}
    metadata: Any = {"step": step, "run_id": f"run {step}", "word": word}
    return await saver.aput(at, made, metadata, made["channel_versions"])


async def _reads(saver: SQLAlchemySaver, root: RunnableConfig, word: str) -> None:
    thread = root["configurable"]["thread_id"]
    found = await saver.aget_tuple(root)
    assert found is not None
    assert found.checkpoint["channel_values"] == {"word": word, "list": [word] * 2}
    assert [(write[1], write[2]) for write in found.pending_writes or []] == [
        ("__error__", "e"),
        ("log", [2]),
    ]
    assert len([one async for one in saver.alist(root)]) == 3
    everywhere: RunnableConfig = {"configurable": {"thread_id": thread}}
    assert len([one async for one in saver.alist(everywhere, filter={"step": 0, "word": word})]) == 2
    assert len([one async for one in saver.ahistory(thread)]) == 4
    assert thread in [one.thread_id for one in await saver.alist_threads(filter={"word": word})]
    history = await saver.aget_delta_channel_history(config=root, channels=["list"])
    assert history["list"]["seed"] == [word]


async def _length(saver: SQLAlchemySaver, thread: str) -> int:
    return len([one async for one in saver.ahistory(thread)])


async def _changes(saver: SQLAlchemySaver, thread: str) -> None:
    copies = [f"{thread} copy", f"{thread} branch"]
    newest = [one.checkpoint_id async for one in saver.ahistory(thread, checkpoint_ns="")]
    await saver.acopy_thread(thread, copies[0])
    await saver.acopy_thread(thread, copies[1], checkpoint_id=newest[1])
    assert (await _length(saver, copies[0]), await _length(saver, copies[1])) == (4, 2)
    await saver.adelete_for_runs(["run 0"])
    assert await _length(saver, copies[0]) == 2
    await saver.aprune([copies[0]])
    assert await _length(saver, copies[0]) == 1
    await saver.aretention(thread_ids=copies, keep=1)
    for each in (*copies, thread):
        await saver.adelete_thread(each)
