"""A saver and its engines: how it is made, set up and closed."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.serde.base import SerializerProtocol
from sqlalchemy import URL, Engine
from sqlalchemy.ext.asyncio import AsyncEngine
from typing_extensions import Self

from cpstore import addresses, engines, ops
from cpstore.appends import Appends
from cpstore.doors import door_of
from cpstore.engines import Engines
from cpstore.errors import ConfigurationError
from cpstore.metadata import MetadataKeys
from cpstore.models import Models, models_of
from cpstore.names import names_of
from cpstore.serde import Serializer

__all__ = ["Connected"]

_THREADS = 500
"""So many ids of threads are read at a time."""


class Connected(BaseCheckpointSaver[str]):
    """A checkpoint saver that has a door to a database, and does nothing with it yet.

    Its arguments are those of :class:`~cpstore.SQLAlchemySaver`.
    """

    def __init__(
        self,
        engine: Engine | AsyncEngine | Engines,
        *,
        serde: SerializerProtocol | None = None,
        compatible: bool = False,
        metadata_keys: MetadataKeys | None = None,
        schema: str | None = None,
        prefix: str = "",
        models: Models | None = None,
    ) -> None:
        super().__init__(serde=_checked(serde, compatible))
        self._metadata_keys = metadata_keys
        self._door = door_of(engine, _chosen(models, schema, prefix))
        self._owns_engines = False
        self._appends = Appends()

    @classmethod
    def from_url(
        cls,
        url: str | URL,
        *,
        serde: SerializerProtocol | None = None,
        compatible: bool = False,
        metadata_keys: MetadataKeys | None = None,
        schema: str | None = None,
        prefix: str = "",
        models: Models | None = None,
        pooler: bool = False,
        **engine_options: Any,
    ) -> Self:
        """Make a saver with engines of its own, to be used as it is, in `with`, or in `async with`.

        Args:
            url: A database URL. `postgres://` and `postgresql://` mean psycopg 3, for sync and async;
                `sqlite://` is a database in memory.
            serde: As for the class.
            compatible: As for the class.
            metadata_keys: As for the class.
            schema: As for the class.
            prefix: As for the class.
            models: As for the class.
            pooler: The URL is that of a transaction pooler, such as pgbouncer. The drivers then prepare no
                statements, which would stay behind in sessions that others go on in.
            engine_options: Given to SQLAlchemy's `create_engine` and `create_async_engine` as they are.

        Raises:
            ConfigurationError: The URL is none, or names a database or driver that is not supported.
            MissingDriverError: The driver is not installed; the message names the extra that brings it.
        """
        made = engines.from_url(url, pooler=pooler, **engine_options)
        saver = cls(
            made,
            serde=serde,
            compatible=compatible,
            metadata_keys=metadata_keys,
            schema=schema,
            prefix=prefix,
            models=models,
        )
        saver._owns_engines = True
        return saver

    def setup(self) -> None:
        """Migrate the database to the newest revision. Safe to call always, and from many processes at once.

        Raises:
            MigrationTurnError: Another process migrates and did not end in time.
            NewerDatabaseError: The database was migrated by a newer cpstore.
            ForeignTablesError: Tables of these names are there, and cpstore did not make them.
            NotMigratedError: The models are the application's (`models=`), and it has not made their tables.
            DatabaseBusyError: As MigrationTurnError, on SQLite, or another process writes.
        """
        self._door.migrate()

    async def asetup(self) -> None:
        """Async version of :meth:`setup`."""
        await self._door.amigrate()

    def close(self) -> None:
        """Dispose the engines that :meth:`from_url` made; an application's own are left alone.

        An `AsyncEngine` can only be disposed by :meth:`aclose`.
        """
        if self._owns_engines:
            self._door.close()

    async def aclose(self) -> None:
        """Async version of :meth:`close`."""
        if self._owns_engines:
            await self._door.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.aclose()

    def get_next_version(self, current: str | None, channel: None) -> str:
        """Give the channel version after `current`: `{n:032}.{random}`, never the same twice.

        Source of the rule: LangGraph's savers. Two forks that count on from one version share no blob.
        """
        return addresses.next_version(current)

    def with_allowlist(self, extra_allowlist: Collection[tuple[str, ...]]) -> Self:
        """Give a saver on the same engines whose serializer may rebuild more types.

        Source of the rule: LangGraph calls it with the types of a graph when LANGGRAPH_STRICT_MSGPACK is set.
        """
        allow = getattr(self.serde, "with_msgpack_allowlist", None)
        serde = self.serde if allow is None else allow(extra_allowlist)
        if serde is self.serde:
            return self
        clone = copy.copy(self)
        clone.serde = serde
        return clone

    def _thread_ids(self, chosen: Sequence[str] | None) -> Iterator[str]:
        """Give the ids of threads as their texts; None: of all, some at a time, in their order."""
        if chosen is not None:
            yield from addresses.thread_ids(chosen)
            return
        found = self._door.run(ops.all_thread_ids, None, _THREADS)
        while found:
            yield from found
            found = self._door.run(ops.all_thread_ids, found[-1], _THREADS)

    async def _athread_ids(self, chosen: Sequence[str] | None) -> AsyncIterator[str]:
        """Async version of :meth:`_thread_ids`."""
        if chosen is not None:
            for thread_id in addresses.thread_ids(chosen):
                yield thread_id
            return
        found = await self._door.arun(ops.all_thread_ids, None, _THREADS)
        while found:
            for thread_id in found:
                yield thread_id
            found = await self._door.arun(ops.all_thread_ids, found[-1], _THREADS)

    def reclaim_space(self) -> None:
        """Give the space of deleted rows back to the file system.

        SQLite rewrites the file (`VACUUM`), which needs as much free space again and lets nobody write
        meanwhile. PostgreSQL's autovacuum does its part by itself: there, nothing is done.

        Raises:
            DatabaseBusyError: Somebody else uses the file.
        """
        self._door.run(ops.reclaim)

    async def areclaim_space(self) -> None:
        """Async version of :meth:`reclaim_space`."""
        await self._door.arun(ops.reclaim)


def _checked(serde: SerializerProtocol | None, compatible: bool) -> SerializerProtocol:
    """Give the serializer that is meant.

    Raises:
        ConfigurationError: What it writes cannot be read by langgraph-checkpoint, and should be.
    """
    if serde is None:
        return Serializer(compatible=compatible)
    if compatible and (hasattr(serde, "dumps_at") or not getattr(serde, "compatible", True)):
        raise ConfigurationError(
            "compatible=True needs a serializer whose values langgraph-checkpoint reads: leave serde out, or"
            " give Serializer(…, compatible=True)"
        )
    return serde


def _chosen(models: Models | None, schema: str | None, prefix: str) -> Models:
    if models is None:
        return models_of(names_of(schema, prefix))
    if schema is not None or prefix:
        raise ConfigurationError("The models have a schema and a prefix already: pass them to declare_models")
    return models
