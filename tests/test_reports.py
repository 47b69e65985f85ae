"""Documents of threads, states, differences and sizes; and what a saver tells of its storage."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpstore import InvalidConfigError, PlainSerializer, SQLAlchemySaver
from cpstore.reports import (
    StorageSum,
    channel_document,
    checkpoint_document,
    difference_document,
    interrupts_document,
    one_line,
    printable,
    size_text,
    state_document,
    storage_document,
    thread_document,
    unified,
)
from cpstore.reports.texts import json_text
from tests.looked_at import SUBGRAPH, THREAD, id_of, put, tell
from tests.test_views import put as put_small

if TYPE_CHECKING:
    from langgraph.checkpoint.base import CheckpointTuple
    from sqlalchemy import Engine
    from sqlalchemy.ext.asyncio import AsyncEngine


@pytest.fixture
def looking(keeper: SQLAlchemySaver, database: Engine) -> SQLAlchemySaver:
    tell(keeper)
    return SQLAlchemySaver(database, serde=PlainSerializer())


def at(saver: SQLAlchemySaver, number: int, namespace: str = "") -> CheckpointTuple:
    place = {"thread_id": THREAD, "checkpoint_ns": namespace, "checkpoint_id": id_of(number)}
    found = saver.get_tuple({"configurable": place})
    assert found is not None
    return found


def test_threads(looking: SQLAlchemySaver) -> None:
    (*_, trip) = map(thread_document, looking.list_threads())
    assert trip == {
        "thread_id": THREAD,
        "checkpoints": 7,
        "namespaces": ["", SUBGRAPH],
        "created_at": trip["created_at"],
        "updated_at": trip["updated_at"],
        "first_checkpoint_id": id_of(1),
        "last_checkpoint_id": id_of(7),
    }
    assert trip["created_at"] < trip["updated_at"]


def test_checkpoints_without_values(looking: SQLAlchemySaver) -> None:
    found = [checkpoint_document(one) for one in looking.history(THREAD)]
    assert [(one["step"], one["source"], one["interrupts"], one["errors"]) for one in found] == [
        (2, "loop", 0, 1),
        (0, "fork", 0, 0),
        (1, "loop", 1, 0),
        (0, "loop", 0, 0),
        (-1, "input", 0, 0),
        (0, "loop", 0, 0),
        (-1, "input", 0, 0),
    ]
    assert found[3]["updated_channels"] == ["hits"]
    assert list(found[3]["metadata"]) == sorted(found[3]["metadata"])
    json.dumps(found)


def test_a_state(looking: SQLAlchemySaver) -> None:
    state = state_document(at(looking, 7))
    assert [message["content"] for message in state["values"]["messages"]] == [f"word {n}" for n in range(4)]
    assert list(state["values"]) == ["hotel", "messages"]
    assert [(write["kind"], write["value"]) for write in state["writes"]] == [
        ("error", "ValueError('no')"),
        ("write", "more"),
    ]
    assert (state["parent_checkpoint_id"], state["step"]) == (id_of(5), 2)
    inner = state_document(at(looking, 4, SUBGRAPH))
    assert inner["values"] == {"hits": ["a" * 300], "query": "Bern"}
    assert inner["metadata"]["parents"] == {"": id_of(2)}


def test_interrupts(looking: SQLAlchemySaver) -> None:
    (asked,) = interrupts_document(at(looking, 5))
    assert asked == {"task_id": "task-2", "id": "i1", "value": "Book it?"}
    assert interrupts_document(at(looking, 7)) == []


def test_interrupts_of_another_form(keeper: SQLAlchemySaver, database: Engine) -> None:
    config = put(keeper, 1, None, {})
    keeper.put_writes(config, [("__interrupt__", ["bare"])], "task")
    found = SQLAlchemySaver(database, serde=PlainSerializer()).get_tuple(config)
    assert found is not None
    assert interrupts_document(found) == [{"task_id": "task", "id": None, "value": "bare"}]


def test_a_difference(looking: SQLAlchemySaver) -> None:
    found = difference_document(at(looking, 5), at(looking, 7))
    assert [(one["channel"], one["change"], one["items"]) for one in found["channels"]] == [
        ("city", "removed", None),
        ("hotel", "added", None),
        ("messages", "changed", {"same": 3, "changed": 0, "appended": 1, "removed": 0}),
    ]
    assert found["channels"][0]["diff"] == ["@@ -1,1 +0,0 @@", '-"Bern"']
    assert '+    "content": "word 3",' in found["channels"][2]["diff"]
    assert (found["before"]["step"], found["after"]["step"]) == (1, 2)
    same = difference_document(at(looking, 5), at(looking, 5))
    assert (same["channels"], same["unchanged"]) == ([], ["city", "messages"])


def test_a_true_is_no_one(keeper: SQLAlchemySaver) -> None:
    pair = [
        keeper.get_tuple(put(keeper, number, None, {"a": value})) for number, value in ((1, True), (2, 1))
    ]
    assert [one["channel"] for one in difference_document(*pair)["channels"]] == ["a"]  # type: ignore[arg-type]


def test_items_of_lists(keeper: SQLAlchemySaver) -> None:
    def items(number: int, old: list[Any], new: list[Any]) -> dict[str, int]:
        pair = [
            keeper.get_tuple(put(keeper, number + n, None, {"a": value}))
            for n, value in enumerate((old, new))
        ]
        items: dict[str, int] = difference_document(*pair)["channels"][0]["items"]  # type: ignore[arg-type]
        return items

    assert items(1, [1, 2, 3], [1, 5, 3, 4]) == {"same": 1, "changed": 1, "appended": 1, "removed": 0}
    assert items(3, [1, 2, 3], [1]) == {"same": 1, "changed": 0, "appended": 0, "removed": 2}


LINES = st.lists(st.sampled_from("abc"), max_size=30)


def patched(before: list[str], hunks: list[str]) -> list[str]:
    """A patch that is applied by hand."""
    made: list[str] = []
    position = 0
    for line in hunks:
        if line.startswith("@@"):
            start, length = map(int, line.split()[1][1:].split(","))
            made += before[position : start - 1 if length else start]
            position = start - 1 if length else start
        elif line[0] == "+":
            made.append(line[1:])
        else:
            assert before[position] == line[1:]
            made += [line[1:]] if line[0] == " " else []
            position += 1
    return made + before[position:]


@given(LINES, LINES)
def test_a_unified_difference_leads_from_one_to_the_other(before: list[str], after: list[str]) -> None:
    hunks = list(unified(before, after))
    assert patched(before, hunks) == after
    assert bool(hunks) == (before != after)


def test_a_large_difference_is_told_in_one_piece() -> None:
    before = [str(n) for n in range(5000)]
    after = ["0", *(str(-n) for n in range(1, 5000)), "end"]
    hunks = list(unified(before, after))
    assert patched(before, hunks) == after
    assert hunks[0] == "@@ -1,5000 +1,5001 @@"


# Storage


async def test_storage_through_every_way(saver: SQLAlchemySaver, engine: Engine | AsyncEngine) -> None:
    saver.serde = Sized()
    for thread_id, namespace in [("b", ""), ("a", ""), ("a", "sub")]:
        at = await put_small(saver, thread_id, namespace)
    await saver.aput_writes(at, [("words", "b")], "task")
    found = [one async for one in saver.astorage()]
    assert [(one.thread_id, one.checkpoints, one.blobs, one.writes) for one in found] == [
        ("a", 2, 4, 1),
        ("b", 1, 2, 0),
    ]
    a = found[0]
    assert (a.blob_bytes, a.write_bytes, a.unshared_bytes) == (20, 5, 20)
    assert a.bytes == a.document_bytes + 25
    assert [(one.channel, one.blobs, one.bytes, one.references) for one in a.channels] == [
        ("number", 2, 10, 2),
        ("words", 2, 10, 2),
    ]
    assert [one.thread_id async for one in saver.astorage(thread_ids=["b", "unknown"])] == ["b", "unknown"]
    with pytest.raises(TypeError):
        await anext(aiter(saver.astorage(thread_ids="b")))
    with pytest.raises(InvalidConfigError):
        await anext(aiter(saver.astorage(thread_ids=["nul\0"])))


class Sized:
    """A serializer whose values have five bytes, and are never read."""

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        return "sized", b"12345"

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        raise AssertionError("a value was decoded")


def test_a_value_that_many_point_at_is_stored_once(keeper: SQLAlchemySaver) -> None:
    keeper.serde = Sized()
    put(keeper, 1, None, {"large": "x"})
    for number in range(2, 11):
        put(keeper, number, number - 1, {"large": "x"}, versions={"large": 1}, new=[])
    (found,) = keeper.storage()
    assert (found.blob_bytes, found.unshared_bytes) == (5, 50)
    assert storage_document(found)["ratio"] == 10.0


def test_a_list_in_pieces_counts_whole_for_each_that_points_at_it(keeper: SQLAlchemySaver) -> None:
    items = ["x" * 3000 + str(number) for number in range(40)]
    for number in range(1, 41):
        put(keeper, number, number - 1 or None, {"items": items[:number]})
    (found,) = keeper.storage()
    (channel,) = found.channels
    whole = sum(len("".join(items[:number])) for number in range(1, 41))
    assert whole < channel.unshared_bytes < whole * 1.02
    assert channel_document(channel)["ratio"] > 3
    sum_ = StorageSum()
    sum_.add(found)
    sum_.add(found)
    assert sum_.document()["bytes"] == 2 * found.bytes
    assert sum_.channels[0].blobs == 2 * channel.blobs
    assert StorageSum().document()["ratio"] is None


async def test_a_sweep_through_every_way(saver: SQLAlchemySaver) -> None:
    saver.serde = Sized()
    at = await put_small(saver, "a")
    early = {"configurable": {**at["configurable"], "checkpoint_id": "0"}}
    late = {"configurable": {**at["configurable"], "checkpoint_id": "9"}}
    unborn: Any = {"configurable": {"thread_id": "b", "checkpoint_ns": "", "checkpoint_id": "1"}}
    places: list[Any] = [early, at, late, unborn]
    for place in places:
        await saver.aput_writes(place, [("words", 1)], "task")
    before = [one async for one in saver.astorage()]
    removed = await saver.asweep(dry_run=True)
    assert (removed.checkpoints, removed.blobs, removed.writes, removed.bytes) == (0, 0, 1, 5)
    assert [one async for one in saver.astorage()] == before
    assert await saver.asweep(thread_ids=["b", "unknown"]) == type(removed)()
    assert (await saver.asweep()).writes == 1
    assert [one.writes async for one in saver.astorage()] == [2, 1]
    assert (await saver.asweep()).writes == 0


# Texts


def test_texts_are_harmless() -> None:
    assert printable("a\x1b[2J\x9b\u202e\ud800\n\t") == "a\\x1b[2J\\x9b\\u202e\\ud800\n\t"
    assert one_line("a\nb\tc\r") == "a\\nb\\tc\\x0d"
    assert one_line("abcdef", 4) == "abc…"
    assert one_line("abcd", 4) == "abcd"
    assert json_text({"a": "\x1b\x9b\u202eü"}) == '{"a": "\\u001b\\u009b\\u202eü"}'


@given(st.text())
def test_json_is_still_the_same(text: str) -> None:
    assert json.loads(json_text([text])) == [text]
    json_text([text]).encode()


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (999_949, "999.9 kB"),
        (999_950, "1.0 MB"),
        (5 * 10**15, "5000.0 TB"),
    ],
)
def test_sizes(size: int, text: str) -> None:
    assert size_text(size) == text
