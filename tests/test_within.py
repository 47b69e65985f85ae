"""A saver in the application's transaction: both commit, or neither does."""

from __future__ import annotations

import asyncio
import operator
import sqlite3
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

import pytest
from langgraph.graph import START, StateGraph
from sqlalchemy import Connection, Engine, Integer, create_engine, event, func, make_url, select, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, AsyncSession, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, scoped_session, sessionmaker

from cpstore import (
    AESGCMSerializer,
    AsyncOnlyError,
    BrokenTransactionError,
    ConfigurationError,
    DatabaseBusyError,
    NotMigratedError,
    Serializer,
    SQLAlchemySaver,
    TransactionError,
    TransactionOverError,
    UnstorableValueError,
    migrations,
)
from cpstore.migrations import State
from tests.conftest import connections_in_use, dispose
from tests.tour import put, tour
from tests.ways import WAYS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from langchain_core.runnables import RunnableConfig
    from langgraph.types import Durability

    from tests.ways import Way

    Holder = Connection | Session | AsyncConnection | AsyncSession

ROOT: RunnableConfig = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
DURABILITIES: list[Durability] = ["sync", "async", "exit"]


class Base(DeclarativeBase):
    pass


class Order(Base):
    """The application's own table."""

    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(Integer, primary_key=True)


class Shop(TypedDict, total=False):
    done: Annotated[list[str], operator.add]


def shop() -> StateGraph[Any]:
    """Parallel nodes, one of which is a graph: the saver is called from several threads or tasks at once."""
    inner = StateGraph(Shop).add_node("inner", lambda _: {"done": ["inner"]}).add_edge(START, "inner")
    builder: StateGraph[Any] = StateGraph(Shop).add_node("graph", inner.compile())
    builder.add_edge(START, "graph")
    for name in ("one", "two", "three"):
        builder.add_node(name, lambda _, name=name: {"done": [name]})
        builder.add_edge(START, name)
    return builder


@pytest.fixture
async def app(way: Way, database_url: str) -> AsyncIterator[Engine | AsyncEngine]:
    """The application's engine, with a pool of one: nobody takes a second connection."""
    create: Any = create_async_engine if way.async_engine else create_engine
    made = create(way.url(database_url), **pool_of_one(way))
    if isinstance(made, AsyncEngine):
        async with made.begin() as connection:
            await connection.run_sync(Base.metadata.create_all)
    else:
        Base.metadata.create_all(made)
    yield made
    assert await connections_in_use(made) == 0
    await dispose(made)


def pool_of_one(way: Way) -> dict[str, Any]:
    from sqlalchemy import AsyncAdaptedQueuePool, QueuePool

    pool = AsyncAdaptedQueuePool if way.async_engine else QueuePool
    return {"poolclass": pool, "pool_size": 1, "max_overflow": 0, "pool_timeout": 5}


KINDS = ["connection", "session"]


@asynccontextmanager
async def opened(engine: Engine | AsyncEngine, kind: str) -> AsyncIterator[Any]:
    """What an application opens, and closes."""
    if isinstance(engine, AsyncEngine):
        async with AsyncSession(engine) if kind == "session" else engine.connect() as holder:
            yield holder
    else:
        with Session(engine) if kind == "session" else engine.connect() as holder_:
            yield holder_


async def of(holder: Any, name: str, *arguments: Any) -> Any:
    """Call a method that is async on an async holder."""
    result = getattr(holder, name)(*arguments)
    return await result if asyncio.iscoroutine(result) else result


async def place_order(holder: Any) -> None:
    if isinstance(holder, (Session, AsyncSession)):
        holder.add(Order())
    else:
        await of(holder, "execute", Order.__table__.insert().values())  # type: ignore[attr-defined]


async def number_of_orders(engine: Engine | AsyncEngine) -> int:
    async with opened(engine, "connection") as connection:
        result = await of(connection, "execute", select(func.count()).select_from(Order))
        return int(result.scalar_one())


async def invoke(way: Way, saver: SQLAlchemySaver, durability: Durability, thread: str = "t") -> list[str]:
    graph = shop().compile(checkpointer=saver)
    config: RunnableConfig = {"configurable": {"thread_id": thread}}
    given: Any = {"done": ["start"]}
    if way.sync:
        result = graph.invoke(given, config, durability=durability)
    else:
        result = await graph.ainvoke(given, config, durability=durability)
    done: list[str] = result["done"]
    return done


async def kept(engine: Engine | AsyncEngine, way: Way) -> int:
    return len([one async for one in way.saver(engine).alist(None)])


# Both or neither


@pytest.mark.parametrize("commits", [True, False])
@pytest.mark.parametrize("durability", DURABILITIES)
@pytest.mark.parametrize("kind", KINDS)
async def test_rows_and_checkpoints_go_together(
    way: Way, app: Engine | AsyncEngine, kind: str, durability: Durability, commits: bool
) -> None:
    saver = way.saver(app)
    async with opened(app, kind) as holder:
        await place_order(holder)
        async with saver.within(holder) as tx:
            assert set(await invoke(way, tx, durability)) == {"inner", "one", "start", "three", "two"}
            assert await invoke(way, tx, durability)
            await place_order(holder)
            assert len([one async for one in tx.alist(None)]) >= 2
        await of(holder, "commit" if commits else "rollback")
    assert await number_of_orders(app) == (2 if commits else 0)
    assert (await kept(app, way) > 0) == commits


async def test_an_error_of_the_application_takes_both_back(way: Way, app: Engine | AsyncEngine) -> None:
    saver = way.saver(app)
    with pytest.raises(ZeroDivisionError):  # noqa: PT012 - the block is what is tested
        async with opened(app, "session") as session, saver.within(session) as tx:
            await place_order(session)
            await invoke(way, tx, "async")
            raise ZeroDivisionError
    assert (await number_of_orders(app), await kept(app, way)) == (0, 0)


async def test_a_thread_goes_with_its_own_row(way: Way, app: Engine | AsyncEngine) -> None:
    saver = way.saver(app)
    async with opened(app, "session") as session:
        await place_order(session)
        await of(session, "commit")
    await put(saver, ROOT, 0, "word")
    for commits in (False, True):
        async with opened(app, "session") as session:
            order = await of(session, "get", Order, 1)
            await of(session, "delete", order)
            async with saver.within(session) as tx:
                await tx.adelete_thread("t")
            await of(session, "commit" if commits else "rollback")
        left = 0 if commits else 1
        assert (await number_of_orders(app), await kept(app, way)) == (left, left)


@pytest.mark.parametrize("kind", KINDS)
async def test_every_operation_works_there(way: Way, app: Engine | AsyncEngine, kind: str) -> None:
    saver = way.saver(app)
    async with opened(app, kind) as holder:
        async with saver.within(holder) as tx:
            await tour(tx)
            await put(tx, ROOT, 0, "word")
        await of(holder, "rollback")
    assert await kept(app, way) == 0


async def test_it_can_be_migrated_in_the_transaction(way: Way, empty_database_url: str) -> None:
    engine = way.engine(empty_database_url)
    saver = way.saver(engine)
    for commits in (False, True):
        async with opened(engine, "connection") as connection:
            async with saver.within(connection) as tx:
                with pytest.raises(NotMigratedError):
                    await tx.aget_tuple(ROOT)
                await tx.asetup()
                await put(tx, ROOT, 0, "word")
            await of(connection, "commit" if commits else "rollback")
        state = (await migrations.acheck(empty_database_url)).state
        assert state is (State.CURRENT if commits else State.EMPTY)
    assert await kept(engine, way) == 1
    await dispose(engine)


# What fails spoils nothing


@pytest.mark.parametrize("kind", KINDS)
async def test_an_operation_that_fails_takes_back_only_itself(
    way: Way, app: Engine | AsyncEngine, kind: str
) -> None:
    saver = way.saver(app)
    async with opened(app, kind) as holder:
        await place_order(holder)
        async with saver.within(holder) as tx:
            stored = await put(tx, ROOT, 1, "kept")
            with pytest.raises(UnstorableValueError):
                await tx.aput_writes(stored, [("c", threading.Lock())], "task")
            failing = list(fail_after_work(way, app))
            with pytest.raises(Exception, match="made to fail"):
                await put(tx, ROOT, 2, "lost")
            failing[0]()
            await tx.aput_writes(stored, [("c", 1)], "task")
        await of(holder, "commit")
    found = [one async for one in saver.alist(None)]
    assert [one.checkpoint["channel_values"]["word"] for one in found] == ["kept"]
    assert [write[2] for write in found[0].pending_writes or []] == [1]
    assert await number_of_orders(app) == 1


def fail_after_work(way: Way, engine: Engine | AsyncEngine) -> list[Callable[[], None]]:
    """Let the statement that stores a checkpoint fail once it has been done."""
    target = getattr(engine, "sync_engine", engine)

    def fail(*given: Any) -> None:
        if "INSERT INTO checkpoints" in given[2]:
            raise RuntimeError("made to fail")

    event.listen(target, "after_cursor_execute", fail)
    return [lambda: event.remove(target, "after_cursor_execute", fail)]


async def test_missing_tables_are_told_and_spoil_nothing(way: Way, empty_database_url: str) -> None:
    engine = way.engine(empty_database_url)
    saver = way.saver(engine)
    async with opened(engine, "connection") as connection:
        async with saver.within(connection) as tx:
            for call in (
                lambda: put(tx, ROOT, 0, "w"),
                lambda: tx.aget_tuple(ROOT),
                lambda: tx.adelete_thread("t"),
            ):
                with pytest.raises(NotMigratedError):
                    await call()
        assert (await of(connection, "execute", text("SELECT 1"))).scalar() == 1
        await of(connection, "commit")
    await dispose(engine)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", [way for way in WAYS if not way.sync], indirect=True)
async def test_a_cancelled_operation_ends_and_spoils_nothing(
    way: Way, app: Engine | AsyncEngine, kind: str
) -> None:
    saver = way.saver(app)
    async with opened(app, kind) as holder:
        await place_order(holder)
        async with saver.within(holder) as tx:
            stored = await put(tx, ROOT, 0, "kept")
            for pause in range(12):
                task = asyncio.create_task(tx.aput_writes(stored, [("c", pause)] * 20, f"task {pause}"))
                for _ in range(pause):
                    await asyncio.sleep(0)
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
            await put(tx, stored, 1, "kept too")
        await of(holder, "commit")
    found = [one async for one in saver.alist(None)]
    assert len(found) == 2
    writes = Counter(write[0] for write in found[1].pending_writes or [])
    assert set(writes.values()) <= {20}
    assert await number_of_orders(app) == 1


@pytest.mark.parametrize("way", [way for way in WAYS if way.dialect == "postgresql"], indirect=True)
@pytest.mark.parametrize("kind", KINDS)
async def test_a_dead_connection_is_told_and_nothing_is_kept(
    way: Way, app: Engine | AsyncEngine, database_url: str, kind: str
) -> None:
    saver, killer = way.saver(app), create_engine(make_url(database_url).set(drivername="postgresql+psycopg"))
    async with opened(app, kind) as holder:
        await place_order(holder)
        async with saver.within(holder) as tx:
            await put(tx, ROOT, 0, "word")
            with killer.begin() as connection:
                connection.execute(text(KILL))
            with pytest.raises(DBAPIError):
                await put(tx, ROOT, 1, "word")
            for _ in range(2):
                with pytest.raises(BrokenTransactionError, match="Roll it back"):
                    await put(tx, ROOT, 1, "word")
        await of(holder, "rollback")
    killer.dispose()
    assert (await number_of_orders(app), await kept(app, way)) == (0, 0)


@pytest.mark.parametrize("way", [way for way in WAYS if way.dialect == "sqlite"], indirect=True)
async def test_a_transaction_that_sqlite_rolled_back_is_broken(way: Way, app: Engine | AsyncEngine) -> None:
    """As it does when the disk is full: what came before is gone, so nothing may come after."""
    saver = way.saver(app)
    async with opened(app, "connection") as connection:
        await of(connection, "execute", text(ROLLBACK))
        await of(connection, "commit")
        await place_order(connection)
        async with saver.within(connection) as tx:
            with pytest.raises(DBAPIError, match="disk is full"):
                await put(tx, ROOT, 1, "lost")
            for _ in range(2):
                with pytest.raises(BrokenTransactionError):
                    await tx.adelete_thread("t")
        await of(connection, "rollback")
    assert (await number_of_orders(app), await kept(app, way)) == (0, 0)


KILL = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
)
ROLLBACK = (
    "CREATE TRIGGER full BEFORE INSERT ON checkpoint_blobs BEGIN SELECT RAISE(ROLLBACK, 'disk is full'); END"
)


@pytest.mark.parametrize("way", [way for way in WAYS if way.name == "psycopg"], indirect=True)
@pytest.mark.parametrize("sealed", [False, True], ids=["inside the database", "value by value"])
def test_whatever_checkpoint_is_copied_has_its_values(database_url: str, sealed: bool) -> None:
    """In a caller's READ COMMITTED each statement sees what others have committed meanwhile."""
    serde = AESGCMSerializer({"k": b"k" * 32}) if sealed else None
    engine, other = create_engine(database_url), create_engine(database_url)
    saver, runs = SQLAlchemySaver(engine, serde=serde), SQLAlchemySaver(other, serde=serde)
    steps = iter(range(100))

    def go_on(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if "checkpoint_" in statement:
            step = next(steps)
            made: Any = {"v": 4, "id": f"{step:05}", "channel_values": {"a": [step]}}
            made["channel_versions"] = {"a": str(step)}
            runs.put(ROOT, made, {}, made["channel_versions"])

    go_on(None, None, "checkpoint_")
    event.listen(engine, "after_cursor_execute", go_on)
    with engine.connect() as connection:
        with saver.within(connection) as tx:
            tx.copy_thread("t", "copy")
        connection.commit()
    event.remove(engine, "after_cursor_execute", go_on)
    copied = list(saver.list({"configurable": {"thread_id": "copy"}}))
    assert next(steps) > 2
    assert copied
    for found in copied:
        assert found.checkpoint["channel_values"] == {"a": [int(found.checkpoint["id"])]}
    engine.dispose()
    other.dispose()


# What is not possible is told


@pytest.mark.parametrize("kind", KINDS)
async def test_a_saver_ends_with_its_block(way: Way, app: Engine | AsyncEngine, kind: str) -> None:
    saver = way.saver(app)
    async with opened(app, kind) as holder:
        async with saver.within(holder) as tx:
            clone = tx.with_allowlist([("a", "b")])
        for used in (tx, clone):
            for call in (partial(put, used, ROOT, 0, "w"), partial(used.aget_tuple, ROOT), used.asetup):
                with pytest.raises(TransactionOverError, match="block has ended"):
                    await call()
        await used.aclose()
        await place_order(holder)
        await of(holder, "commit")
    assert await number_of_orders(app) == 1


async def test_what_no_transaction_may_hold(way: Way, app: Engine | AsyncEngine) -> None:
    async with opened(app, "connection") as connection, way.saver(app).within(connection) as tx:
        with pytest.raises(TransactionError, match="outside of it"):
            await tx.areclaim_space()


async def test_autocommit_has_no_transaction(way: Way, app: Engine | AsyncEngine) -> None:
    saver = way.saver(app)
    committing = app.execution_options(isolation_level="AUTOCOMMIT")
    async with opened(committing, "connection") as connection, saver.within(connection) as tx:
        for call in (lambda: put(tx, ROOT, 0, "w"), tx.asetup):
            with pytest.raises(ConfigurationError, match="autocommit"):
                await call()


@pytest.mark.parametrize("way", [way for way in WAYS if way.async_engine], indirect=True)
async def test_sync_calls_need_another_thread(way: Way, app: AsyncEngine) -> None:
    async with app.connect() as connection:
        async with way.saver(app).within(connection) as tx:
            await put(tx, ROOT, 0, "word")
            with pytest.raises(AsyncOnlyError):
                tx.get_tuple(ROOT)
            found = await asyncio.to_thread(tx.get_tuple, ROOT)
            assert found is not None
            assert await asyncio.to_thread(lambda: len(list(tx.list(None)))) == 1
            with pytest.raises(TransactionError, match="event loop"):
                await asyncio.to_thread(lambda: asyncio.run(tx.aget_tuple(ROOT)))
        await connection.rollback()


@pytest.mark.parametrize("holder", [None, 1, "sqlite://", object(), create_engine("sqlite://")], ids=repr)
def test_what_has_no_transaction_is_refused(holder: Any) -> None:
    saver = SQLAlchemySaver.from_url("sqlite://")
    with pytest.raises(ConfigurationError, match="Pass a Session, Connection"):
        saver.within(holder)
    saver.close()


def test_a_connection_of_another_thread_is_told(tmp_path: Path, sqlite_template: Path) -> None:
    path = tmp_path / "thread.db"
    path.write_bytes(sqlite_template.read_bytes())
    engine = create_engine(f"sqlite:///{path}", connect_args={"check_same_thread": True})
    saver = SQLAlchemySaver(engine)
    with engine.connect() as connection, saver.within(connection) as tx:
        tx.delete_thread("t")
        with ThreadPoolExecutor(1) as pool, pytest.raises(ConfigurationError, match="check_same_thread"):
            pool.submit(tx.delete_thread, "t").result()
        tx.delete_thread("t")
    engine.dispose()


# Applications of many kinds


def test_with_in_a_sync_application(database: Engine, dialect_url: str) -> None:
    Base.metadata.create_all(database)
    saver = SQLAlchemySaver(database, serde=Serializer(compression="zlib"))
    sessions = scoped_session(sessionmaker(database))
    with sessions.begin():
        sessions.add(Order())
        with saver.within(sessions) as tx:
            assert tx.serde is saver.serde
            shop().compile(checkpointer=tx).invoke({"done": []}, ROOT)
    sessions.remove()
    assert len(list(saver.list(None))) >= 2
    nested = Session(database)
    with nested.begin():
        with pytest.raises(ZeroDivisionError), nested.begin_nested(), saver.within(nested) as tx:  # noqa: PT012
            tx.delete_thread("t")
            raise ZeroDivisionError
        with nested.begin_nested(), saver.within(nested) as tx:
            tx.copy_thread("t", "copy")
    nested.close()
    assert {one.thread_id for one in saver.list_threads()} == {"t", "copy"}


def test_a_session_with_several_binds(dialect_url: str, tmp_path: Path) -> None:
    from cpstore import Base as Ours

    ours, theirs = create_engine(dialect_url), create_engine(f"sqlite:///{tmp_path}/theirs.db")
    Base.metadata.create_all(theirs)
    saver = SQLAlchemySaver(ours)
    with Session(binds={Base: theirs, Ours: ours}) as session, session.begin():
        session.add(Order())
        with saver.within(session) as tx:
            shop().compile(checkpointer=tx).invoke({"done": []}, ROOT)
    assert len(list(saver.list(None))) >= 2
    ours.dispose()
    theirs.dispose()


def test_the_recipe_that_begins_by_an_event(tmp_path: Path, sqlite_template: Path) -> None:
    """SQLAlchemy's documented way to have SQLite's transactions begin when they should."""
    path = tmp_path / "recipe.db"
    path.write_bytes(sqlite_template.read_bytes())
    engine = create_engine(f"sqlite:///{path}")

    @event.listens_for(engine, "connect")
    def connect(connection: sqlite3.Connection, _record: Any) -> None:
        connection.isolation_level = None

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN")

    Base.metadata.create_all(engine)
    saver = SQLAlchemySaver(engine)
    for commits in (False, True):
        with Session(engine) as session:
            session.add(Order())
            session.flush()
            with saver.within(session) as tx:
                shop().compile(checkpointer=tx).invoke({"done": []}, ROOT)
            (session.commit if commits else session.rollback)()
        assert (len(list(saver.list(None))) > 0) == commits
    engine.dispose()


def test_a_block_on_sqlite_waits_for_its_turn_to_write(tmp_path: Path, sqlite_template: Path) -> None:
    path = tmp_path / "busy.db"
    path.write_bytes(sqlite_template.read_bytes())
    engine = create_engine(f"sqlite:///{path}", connect_args={"timeout": 0.1})
    saver = SQLAlchemySaver(engine)
    with engine.connect() as writer, engine.connect() as waiting, saver.within(waiting) as tx:
        writer.exec_driver_sql("BEGIN IMMEDIATE")
        with pytest.raises(DatabaseBusyError):
            tx.get_tuple(ROOT)
        writer.rollback()
        assert tx.get_tuple(ROOT) is None
    engine.dispose()


def test_the_url_says_nothing_here(dialect_url: str) -> None:
    """The saver's own engine may be another database: the block is where it was opened."""
    saver = SQLAlchemySaver.from_url("sqlite://")
    engine = create_engine(make_url(dialect_url))
    with engine.begin() as connection, saver.within(connection) as tx:
        stored = tx.put(ROOT, {"v": 4, "id": "1"}, {}, {})  # type: ignore[typeddict-item]
    assert SQLAlchemySaver(engine).get_tuple(stored) is not None
    saver.close()
    engine.dispose()
