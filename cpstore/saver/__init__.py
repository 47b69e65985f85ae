"""The saver: encode, run units of work through a door, decode."""

from __future__ import annotations

from typing_extensions import Self

from cpstore.doors import Holder, door_within
from cpstore.saver.checkpoints import Checkpoints
from cpstore.saver.threads import Threads
from cpstore.saver.views import Views
from cpstore.saver.within import Within

__all__ = ["SQLAlchemySaver"]


class SQLAlchemySaver(Checkpoints, Threads, Views):
    """Saves LangGraph's checkpoints in a SQL database through SQLAlchemy.

    One saver serves `invoke` and `ainvoke`, from any number of threads and tasks. With an `Engine`, async
    methods run in worker threads. With an `AsyncEngine`, sync methods work only from threads beside the
    event loop that uses the saver, and raise :class:`~cpstore.AsyncOnlyError` elsewhere.

    Each operation is a transaction. One whose connection turns out dead, or that PostgreSQL undid because of
    a deadlock or a serialization failure, is done again on another connection, for some seconds; then the
    error reaches the caller as it came. SQLite waits for the write lock as long as its busy timeout says, and
    then the error is :class:`~cpstore.DatabaseBusyError`.

    Args:
        engine: The application's engine, or an :class:`~cpstore.Engines` of both kinds on one database. It is
            never changed and never disposed.
        serde: The serializer of values; by default :class:`~cpstore.Serializer`.
        compatible: Write only what langgraph-checkpoint-postgres reads: a list that grows is then stored
            whole at each step, and a value of a type that only cpstore keeps is refused.
        metadata_keys: Which keys of metadata are stored: :class:`~cpstore.Only` these, all
            :class:`~cpstore.Except` these, or None: all of them. With a serializer that is no
            `JsonPlusSerializer`, and so may encrypt, None means only LangGraph's own.
        schema: The schema of the tables; None: where the connection looks for them. Tables are found through
            a `schema_translate_map` of the engine, too.
        prefix: What the names of tables, indexes, constraints and the version table begin with.
        models: Models on the application's own base (:func:`~cpstore.declare_models`), instead of these two.

    Raises:
        ConfigurationError: Schema or prefix cannot be names, or stand beside `models`; or `serde` is not
            compatible and should be.
        UnsupportedDatabaseError: It is neither SQLite nor PostgreSQL.
        MemoryDatabaseError: Each connection would have an empty SQLite database of its own.
    """

    def within(self, holder: Holder) -> Within[Self]:
        """Join a transaction of the application: what the saver writes is committed, or not, with its rows.

        `with saver.within(session) as tx:`, or `async with`, gives a saver that is good until the end of the
        block. Each of its operations is a savepoint, so that one that fails spoils nothing; calls from
        several threads or tasks take turns. It never commits and never closes what it was given, and nothing
        is done twice. Its `setup()` migrates in the transaction.

        Args:
            holder: A `Session`, `Connection`, `AsyncSession` or `AsyncConnection`. Of an async one all calls
                come from its event loop, or from threads beside it.

        Raises:
            ConfigurationError: It is none of these. At a call: it is in autocommit.
            TransactionOverError: At a call: the block has ended.
            TransactionError: At a call: it is another event loop, or `reclaim_space`.
        """
        return Within(self, door_within(holder, self._door.models))
