"""Lists that grow are stored once: what is written, what is read, and what happens when something is gone."""

from __future__ import annotations

import random
import re
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.base.id import uuid6
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from sqlalchemy import delete, event, func, select

from cpstore import (
    AESGCMSerializer,
    ConfigurationError,
    Serializer,
    SQLAlchemySaver,
    UnreadableValueError,
    UnstorableValueError,
)
from cpstore.appends import Appends, Place, grown, whole
from cpstore.models import MODELS
from cpstore.pieces import Piece, anonymous, pieces_before
from cpstore.serde.joining import header_bytes, joined
from tests.random_histories import EDITS
from tests.test_serializer import KEPT_BY_BOTH
from tests.values import same

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import CheckpointTuple
    from sqlalchemy import Engine

    from tests.ways import Dialect

BLOBS = MODELS.tables.blobs
LAW = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
KEY = b"k" * 32

EDIT = st.sampled_from([*["<append>"] * 8, *["<append two>"] * 2, *EDITS])


@pytest.fixture
def _any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short lists are stored in pieces too."""
    monkeypatch.setattr("cpstore.appends._SMALLEST_BYTES", 0)


def message(number: int, size: int = 1000) -> Any:
    chance = random.Random(number)  # noqa: S311 - a seed, no secret
    text = "".join(chance.choices("abcdefghij klmnop", k=size))
    return (AIMessage if number % 2 else HumanMessage)(text, id=f"{number:032x}")


class Chat:
    """One channel with a list, saved step by step."""

    def __init__(self, saver: SQLAlchemySaver, thread: str = "chat") -> None:
        self.saver = saver
        self.config: RunnableConfig = {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}
        self.version: Any = None

    def put(self, value: Any, version: Any = None) -> RunnableConfig:
        self.version = version or self.saver.get_next_version(self.version, None)
        made: Any = {
            **empty_checkpoint(),
            "v": 4,
            "id": str(uuid6()),
            "channel_values": {"messages": value},
            "channel_versions": {"messages": self.version},
        }
        metadata: Any = {"source": "loop", "step": 1, "run_id": "run"}
        self.config = self.saver.put(self.config, made, metadata, {"messages": self.version})
        return self.config

    def grow(self, count: int, size: int = 1000) -> list[Any]:
        """Save a conversation of so many messages."""
        said: list[Any] = []
        for number in range(count):
            said.append(message(number, size))
            self.put(list(said))
            self.saver.put_writes(self.config, [("messages", said[-1:])], f"task {number}")
        return said


def value_of(found: CheckpointTuple | None) -> Any:
    assert found is not None
    return found.checkpoint["channel_values"]["messages"]


def types(database: Engine) -> list[str]:
    with database.connect() as connection:
        return list(connection.execute(select(BLOBS.c.type).order_by(BLOBS.c.version)).scalars())


# What is computed


@given(steps=st.lists(st.tuples(EDIT, st.integers(0, 3)), max_size=80))
def test_any_edits_of_any_earlier_list(steps: list[tuple[str, int]]) -> None:
    """Each version is the concatenation of its pieces, there are few, and nothing is ever rewritten."""
    serializer = Serializer()
    stored: dict[str, tuple[str, bytes]] = {}
    seen: list[tuple[list[str], Any]] = [([], ())]
    for number, (edit, back) in enumerate(steps):
        old, line = seen[-1 - back % len(seen)]
        value = EDITS[edit](old, f"{number} " * 2000)
        found = grown(line, f"v{number}", serializer.dumps_list(value) or b"", len(value))
        if found is None:
            assert len(serializer.dumps_typed(value)[1]) < 5000
            continue
        line, own = found
        assert line[-1].version not in stored
        stored[line[-1].version] = line[-1].type, own
        seen.append((value, line))
        assert len(line) <= max(1, line[-1].piece.number).bit_length() + 2
        assert pieces_before(line[-1].type) == tuple(row.version for row in line[:-1])
    for value, line in seen[1:]:
        assert serializer.loads_typed(joined([stored[row.version] for row in line], 1 << 30)) == value


@pytest.mark.parametrize("items", [0, 15, 16, 65_535, 65_536])
def test_the_header_is_that_of_messagepack(items: int) -> None:
    data = Serializer().dumps_list([0] * items)
    assert data == header_bytes(items) + bytes(items)


def test_appends_are_bounded_and_so_are_the_blobs_of_a_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cpstore.appends._MOST_APPENDS", 7)
    line: Any = ()
    numbers, value = [], ["x" * 50_000]
    for number in range(20):
        value.append(str(number))
        line, _ = grown(line, f"v{number}", Serializer().dumps_list(value) or b"", len(value)) or (line, b"")
        numbers.append(line[-1].piece.number)
    assert numbers == [0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3]


def test_a_list_that_became_another_is_stored_whole_once() -> None:
    """When most of it is new, one blob is better than two."""
    (first,), _ = whole("1", Serializer().dumps_list(["a" * 5000]) or b"", 1)
    data = Serializer().dumps_list(["a" * 5000, "b" * 50_000]) or b""
    found = grown((first,), "2", data, 2)
    assert found is not None
    assert [row.version for row in found[0]] == ["2"]


@pytest.mark.parametrize("version", ["a,b", "a;b", "a:b", "a+b", 'a"b', "a b", "", "v" * 65, "ü"])
def test_versions_that_cannot_be_named_in_a_type(version: str) -> None:
    assert grown((), version, Serializer().dumps_list(["a" * 5000]) or b"", 1) is None


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cpstore.appends._REMEMBERED", 2)
    known = Appends()
    for name in ("a", "b", "a", "c"):
        known.remember({Place("t", "", name): whole("1", b"\x90", 0)[0]})
    assert [bool(known.line(Place("t", "", name))) for name in "abc"] == [True, False, True]


def test_the_type_of_a_piece() -> None:
    piece = Piece(5, 12, 3456, "0" * 32, ("1.5", "4"))
    assert piece.kind == f"items;1.5,4;5;12;3456;{'0' * 32};"
    assert Piece.of(f"{piece.kind}:zstd") == piece
    assert anonymous(f"{piece.kind}:zstd") == "items;1.5,4;5;12;3456;;:zstd"
    for other in (
        "msgpack",
        "items",
        "items;",
        "items;1;2;3;4;5;",
        "items;-1;1;1;;;",
        f"items;{'9' * 5000};1;1;;;",
    ):
        assert Piece.of(other) is None
        assert pieces_before(other) == ()


# What is stored and read


@pytest.mark.usefixtures("_any_size")
@LAW
@given(data=st.data())
def test_any_conversation_reads_back(database: Engine, data: st.DataObject) -> None:
    """Edits over forks, restarts, pruning, deleting and copying: what is there is what was put there."""
    savers = [SQLAlchemySaver(database), SQLAlchemySaver(database)]
    threads = [f"{uuid6()}"]
    model: dict[str, dict[str, list[str]]] = {threads[0]: {}}
    actions = st.sampled_from([*["put"] * 12, "restart", "prune", "retain", "copy", "delete run"])
    for number in range(data.draw(st.integers(5, 40))):
        thread = data.draw(st.sampled_from(threads))
        saver, there = savers[data.draw(st.integers(0, 1))], model[thread]
        action = data.draw(actions)
        if action == "put":
            step(saver, thread, there, data, number)
        elif action == "restart":
            savers[data.draw(st.integers(0, 1))] = SQLAlchemySaver(database)
        elif action == "copy" and there:
            threads.append(f"{thread} {number}")
            saver.copy_thread(thread, threads[-1])
            model[threads[-1]] = dict(there)
        else:
            delete_some(saver, thread, action, number)
        for seen in threads if action == "delete run" else [thread]:  # copies are of the same runs
            assert_reads(savers[0], seen, model[seen])
    for thread in threads:
        assert_reads(SQLAlchemySaver(database), thread, model[thread])
        savers[0].delete_thread(thread)


def delete_some(saver: SQLAlchemySaver, thread: str, action: str, number: int) -> None:
    if action == "prune":
        saver.prune([thread])
    elif action == "retain":
        saver.retention(keep=2, thread_ids=[thread])
    elif action == "delete run":
        saver.delete_for_runs([f"{thread} run {number % 3}"])


def step(
    saver: SQLAlchemySaver, thread: str, there: dict[str, list[str]], data: st.DataObject, number: int
) -> None:
    back = data.draw(st.sampled_from([0, 0, 0, 0, 0, 1, 2, 5]))
    parent = sorted(there)[-1 - back % len(there)] if there else None
    config: Any = {"configurable": {"thread_id": thread, "checkpoint_ns": "", "checkpoint_id": parent}}
    if data.draw(st.booleans()) and parent is not None:
        value_of(saver.get_tuple(config)).append("what the reader does to it")
    edit = data.draw(EDIT)
    value = EDITS[edit](there[parent] if parent else [], f"m{number}")
    version = saver.get_next_version(None, None)
    made: Any = {
        **empty_checkpoint(),
        "v": 4,
        "id": str(uuid6()),
        "channel_values": {"messages": value},
        "channel_versions": {"messages": version},
    }
    metadata: Any = {"source": "loop", "step": number, "run_id": f"{thread} run {number % 3}"}
    saver.put(config, made, metadata, {"messages": version})
    there[made["id"]] = value


def assert_reads(saver: SQLAlchemySaver, thread: str, there: dict[str, list[str]]) -> None:
    """All that is there reads as it was put; what was deleted is known no more."""
    found = {
        each.checkpoint["id"]: value_of(each) for each in saver.list({"configurable": {"thread_id": thread}})
    }
    for gone in there.keys() - found.keys():
        del there[gone]
    assert found == there


@pytest.mark.usefixtures("_any_size")
async def test_by_every_way(saver: SQLAlchemySaver) -> None:
    config: RunnableConfig = {"configurable": {"thread_id": "1", "checkpoint_ns": ""}}
    version, said = None, []
    for number in range(12):
        said.append(message(number, 100))
        version = saver.get_next_version(version, None)
        made: Any = {
            **empty_checkpoint(),
            "id": str(uuid6()),
            "channel_values": {"messages": list(said)},
            "channel_versions": {"messages": version},
        }
        config = await saver.aput(config, made, {}, {"messages": version})
        assert value_of(await saver.aget_tuple(config)) == said
    lengths = [
        len(value_of(each)) async for each in saver.alist(config | {"configurable": {"thread_id": "1"}})
    ]
    assert lengths == [*range(12, 0, -1)]


def test_a_message_changed_in_place_is_noticed(keeper: SQLAlchemySaver, stranger: SQLAlchemySaver) -> None:
    chat = Chat(keeper)
    said = chat.grow(20)
    said[3].content = "changed in place"
    chat.put(said)
    assert value_of(stranger.get_tuple(chat.config)) == said
    assert value_of(stranger.get_tuple(chat.config))[3].content == "changed in place"


def test_a_process_goes_on_where_another_stopped(database: Engine) -> None:
    """What it reads first tells it where the list is; without that it stores the list whole, once."""
    first = Chat(SQLAlchemySaver(database))
    said = first.grow(20)
    first.saver = SQLAlchemySaver(database)
    stopped = _number(types(database)[-1])
    assert value_of(first.saver.get_tuple(first.config)) == said
    for saver, number in ((first.saver, stopped + 1), (SQLAlchemySaver(database), 0), (None, 1)):
        first.saver = saver or first.saver
        said.append(message(len(said)))
        first.put(said)
        assert _number(types(database)[-1]) == number
    assert value_of(SQLAlchemySaver(database).get_tuple(first.config)) == said


def _number(kind: str) -> int:
    piece = Piece.of(kind)
    assert piece is not None
    return piece.number


def test_two_forks_with_one_version_number_share_no_list(database: Engine) -> None:
    """The first blob of a version stays, as ever; nobody continues what is not there."""
    saver = SQLAlchemySaver(database)
    one, two = Chat(saver), Chat(saver)
    base = [message(0, 5000)]
    one.put(base, 1)
    two.config = one.config
    one.put([*base, "one"], 2)
    two.put([*base, "two"], 2)
    config = two.put([*base, "two", "three"], 3)
    assert value_of(SQLAlchemySaver(database).get_tuple(config)) == [*base, "two", "three"]


@pytest.mark.parametrize("method", ["zlib", "zstd"])
def test_pieces_are_compressed(database: Engine, method: str) -> None:
    chat = Chat(SQLAlchemySaver(database, serde=Serializer(compression=method)))
    said = chat.grow(12)
    assert all(kind.endswith(f":{method}") for kind in types(database))
    assert any(pieces_before(kind) for kind in types(database))
    assert value_of(SQLAlchemySaver(database).get_tuple(chat.config)) == said
    small = SQLAlchemySaver(database, serde=Serializer(max_bytes=8000))
    with pytest.raises(UnreadableValueError, match="max_bytes"):
        small.get_tuple(chat.config)


# When something is gone


def without_blob(database: Engine, version: str) -> None:
    with database.begin() as connection:
        assert connection.execute(delete(BLOBS).where(BLOBS.c.version == version)).rowcount == 1


def beginnings(database: Engine) -> tuple[str, ...]:
    """The versions that the newest list needs."""
    return pieces_before(types(database)[-1])


def test_a_beginning_that_is_gone_is_not_continued(database: Engine) -> None:
    chat = Chat(SQLAlchemySaver(database))
    said = chat.grow(21)
    without_blob(database, beginnings(database)[0])
    said.append("next")
    chat.put(said)
    assert beginnings(database) == ()
    assert value_of(SQLAlchemySaver(database).get_tuple(chat.config)) == said
    chat.put([*said, "and on"])
    assert len(beginnings(database)) == 1


def test_a_beginning_that_became_another_is_not_continued(database: Engine) -> None:
    chat = Chat(SQLAlchemySaver(database))
    said = chat.grow(21)
    with database.begin() as connection:
        here = BLOBS.c.version == beginnings(database)[0]
        connection.execute(BLOBS.update().where(here).values(type="msgpack", blob=b"\x90"))
    said.append("next")
    chat.put(said)
    assert value_of(SQLAlchemySaver(database).get_tuple(chat.config)) == said


def test_nothing_is_stored_when_a_beginning_is_gone(
    database: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first statement of the fallback finds all as it was."""
    chat = Chat(SQLAlchemySaver(database))
    said = chat.grow(21)
    without_blob(database, beginnings(database)[0])
    tables = [select(func.count()).select_from(table) for table in MODELS.tables]
    counts: list[int] = []

    def counted(*_: Any) -> Any:
        with database.connect() as connection:
            counts.extend(connection.execute(each).scalar_one() for each in tables)
        raise InterruptedError

    monkeypatch.setattr("cpstore.lists.without_pieces", counted)
    with pytest.raises(InterruptedError):
        chat.put([*said, "next"])
    assert counts == [21, 20, 21]


def test_a_put_that_needs_a_beginning_is_all_or_nothing(database: Engine) -> None:
    chat = Chat(SQLAlchemySaver(database))
    said = chat.grow(21)

    def fail(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if "INTO checkpoint_blobs" in statement and statement.startswith("INSERT"):
            raise InterruptedError

    event.listen(database, "before_cursor_execute", fail)
    before = len(types(database))
    if database.dialect.name == "sqlite":
        with pytest.raises(InterruptedError):
            chat.put([*said, "next"])
        assert len(list(chat.saver.list(None))) == 21
    assert len(types(database)) == before


def test_a_read_without_a_beginning_is_an_error_and_no_shorter_list(database: Engine) -> None:
    saver = SQLAlchemySaver(database)
    chat = Chat(saver)
    chat.grow(21)
    newest = chat.config
    without_blob(database, beginnings(database)[0])
    with pytest.raises(UnreadableValueError, match=r"messages.*chat.*part of the list"):
        saver.get_tuple(newest)
    with pytest.raises(UnreadableValueError, match="part of the list"):
        list(saver.list(None))
    made: Any = {**empty_checkpoint(), "id": str(uuid6())}
    child = saver.put(newest, made, {}, {})
    with pytest.raises(UnreadableValueError, match="part of the list"):
        saver.get_delta_channel_history(config=child, channels=["messages"])
    errors: list[Exception] = []
    assert len(list(saver.list(None, on_error=lambda _, error: errors.append(error)))) + len(errors) == 22
    assert errors


@pytest.mark.parametrize("damage", ["shorter", "other type", "other length", "no bytes"])
def test_a_damaged_beginning_is_an_error(database: Engine, damage: str) -> None:
    saver = SQLAlchemySaver(database)
    chat = Chat(saver)
    chat.grow(21)
    here = BLOBS.c.version == beginnings(database)[0]
    with database.begin() as connection:
        kind, blob = connection.execute(select(BLOBS.c.type, BLOBS.c.blob).where(here)).one()
        changed: dict[str, Any] = {
            "shorter": {"blob": blob[:-10]},
            "other type": {"type": "msgpack"},
            "other length": {"type": re.sub(r"^(items;[^;]*;\d+;\d+;)", r"\g<1>9", kind)},
            "no bytes": {"blob": None},
        }[damage]
        connection.execute(BLOBS.update().where(here).values(changed))
    with pytest.raises(UnreadableValueError, match="channel 'messages' of thread 'chat'"):
        saver.get_tuple(chat.config)


@pytest.mark.parametrize(
    "kind", ["items;", "items;x;", "items;;0;1;9;;", 'items;a",b;1;1;1;;', "items;,,;1;1;1;;", "items;v;;;;;"]
)
def test_any_type_that_looks_like_a_piece(database: Engine, kind: str) -> None:
    saver = SQLAlchemySaver(database)
    config = Chat(saver).put(["short"])
    with database.begin() as connection:
        connection.execute(BLOBS.update().values(type=kind))
    with pytest.raises(UnreadableValueError, match="channel 'messages' of thread 'chat'"):
        saver.get_tuple(config)
    saver.prune(["chat"])
    saver.delete_thread("chat")


def test_a_transaction_that_was_rolled_back_is_not_continued(database: Engine) -> None:
    saver = SQLAlchemySaver(database)
    chat = Chat(saver)
    said = chat.grow(20)
    with database.connect() as connection, saver.within(connection) as inside:
        chat.saver = inside
        before = chat.config
        chat.put([*said, "rolled back"])
    chat.saver, chat.config = saver, before
    chat.put([*said, "rolled back", "next"])
    assert value_of(SQLAlchemySaver(database).get_tuple(chat.config)) == [*said, "rolled back", "next"]


# Who does not


class Subclass(Serializer):
    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        kind, data = super().dumps_typed(obj)
        return kind, data[::-1]

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        return super().loads_typed((data[0], data[1][::-1]))


STRANGERS: dict[str, Callable[[], Any]] = {
    "AES-GCM": lambda: AESGCMSerializer({"1": KEY}),
    "langgraph's": JsonPlusSerializer,
    "langgraph's encrypted": lambda: EncryptedSerializer.from_pycryptodome_aes(key=KEY),
    "a subclass": Subclass,
    "compatible": lambda: Serializer(compatible=True),
}


@pytest.mark.parametrize("name", [name for name in STRANGERS if name != "langgraph's encrypted"])
def test_lists_are_stored_whole(database: Engine, name: str) -> None:
    chat = Chat(SQLAlchemySaver(database, serde=STRANGERS[name]()))
    said = chat.grow(10)
    assert {kind.partition("+")[0] for kind in types(database)} == {"msgpack"}
    assert value_of(chat.saver.get_tuple(chat.config)) == said


@pytest.mark.parametrize("name", ["langgraph's", "compatible"])
def test_everyone_reads_pieces(database: Engine, name: str) -> None:
    chat = Chat(SQLAlchemySaver(database))
    said = chat.grow(10)
    reader = SQLAlchemySaver(database, serde=STRANGERS[name]())
    assert value_of(reader.get_tuple(chat.config)) == said
    chat.saver = reader
    chat.put([*said, "whole"])
    assert types(database)[-1] == "msgpack"


def test_plain_pieces_are_read_while_a_database_moves_to_encryption(database: Engine) -> None:
    chat = Chat(SQLAlchemySaver(database))
    said = chat.grow(10)
    moving = SQLAlchemySaver(database, serde=AESGCMSerializer({"1": KEY}, plain_rows=True))
    assert value_of(moving.get_tuple(chat.config)) == said
    moving.copy_thread("chat", "sealed")
    strict = SQLAlchemySaver(database, serde=AESGCMSerializer({"1": KEY}))
    assert value_of(strict.get_tuple({"configurable": {"thread_id": "sealed"}})) == said
    with pytest.raises(UnreadableValueError, match="not encrypted"):
        strict.get_tuple(chat.config)
    with database.connect() as connection:
        sealed = connection.execute(select(BLOBS.c.type).where(BLOBS.c.thread_id == "sealed")).scalars().all()
    in_pieces = [kind for kind in sealed if kind.startswith("items")]
    assert in_pieces
    assert all(Piece.of(kind).digest == "" for kind in in_pieces), "a digest is a hint"  # type: ignore[union-attr]
    assert all(kind.endswith("+aesgcm.1") for kind in sealed)


# compatible=True


@pytest.fixture
def official(dialect: Dialect, dialect_url: str) -> Iterator[PostgresSaver]:
    with PostgresSaver.from_conn_string(dialect_url.replace("+psycopg", "")) as saver:
        yield saver


@pytest.mark.parametrize("dialect", ["postgresql"], indirect=True)
@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_the_official_saver_reads_what_a_compatible_one_writes(
    database: Engine, official: PostgresSaver
) -> None:
    official.serde = JsonPlusSerializer(allowed_msgpack_modules=True)
    chat = Chat(SQLAlchemySaver(database, compatible=True))
    said = chat.grow(12)
    assert value_of(official.get_tuple(chat.config)) == said
    for number, value in enumerate(KEPT_BY_BOTH):
        config = Chat(chat.saver, f"value {number}").put([value] * 3)
        assert same(value_of(official.get_tuple(config)), [value] * 3)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
        lambda some: (
            st.lists(some) | st.tuples(some, some) | st.dictionaries(st.text() | st.integers(), some)
        ),
        max_leaves=8,
    )
)
@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_what_is_compatible_is_read_by_langgraph_or_refused(value: Any) -> None:
    if is_compatible(value):
        stored = Serializer(compatible=True).dumps_typed(value)
        assert same(JsonPlusSerializer(allowed_msgpack_modules=True).loads_typed(stored), value)
        return
    with pytest.raises(TypeError, match="compatible"):
        Serializer(compatible=True).dumps_typed(value)


def is_compatible(value: Any) -> bool:
    """Whether MessagePack has everything in it: all texts are Unicode, and so is no key a big int."""
    if isinstance(value, str):
        return not any("\ud800" <= character <= "\udfff" for character in value)
    if isinstance(value, dict):
        keys = [key for key in value if isinstance(key, int) and not -(2**63) <= key < 2**64]
        return not keys and all(map(is_compatible, [*value, *value.values()]))
    return not isinstance(value, (list, tuple)) or all(map(is_compatible, value))


@pytest.mark.parametrize("value", ["\ud800", {2**70: 1}, {(1, "\ud800"): 1}])
def test_what_only_cpstore_reads_is_refused(database: Engine, value: Any) -> None:
    chat = Chat(SQLAlchemySaver(database, compatible=True))
    with pytest.raises(UnstorableValueError, match="compatible"):
        chat.put([value])
    assert types(database) == []


@pytest.mark.parametrize(
    "made",
    [
        lambda: Serializer(compatible=True, compression="zlib"),
        lambda: Serializer(compatible=True, pickle=True),
        lambda: SQLAlchemySaver.from_url("sqlite://", compatible=True, serde=Serializer()),
        lambda: SQLAlchemySaver.from_url("sqlite://", compatible=True, serde=AESGCMSerializer({"1": KEY})),
    ],
)
def test_what_cannot_be_compatible(made: Callable[[], Any]) -> None:
    with pytest.raises(ConfigurationError, match="compatible"):
        made()


# How much is stored


@pytest.mark.parametrize(("messages", "most"), [(100, 0.9e6), (200, 1.9e6)])
def test_a_long_conversation_is_stored_about_once(database: Engine, messages: int, most: float) -> None:
    """In bytes of all rows, with 1 kB a message. Lists that are stored whole would be 5 and 21 MB."""
    Chat(SQLAlchemySaver(database)).grow(messages)
    assert stored_bytes(database) <= most
    assert len(beginnings(database)) <= messages.bit_length() + 1


def stored_bytes(database: Engine) -> int:
    total = 0
    with database.connect() as connection:
        for table in MODELS.tables:
            for row in connection.execute(select(table)):
                total += sum(
                    len(str(column)) if not isinstance(column, bytes) else len(column) for column in row
                )
    return total
