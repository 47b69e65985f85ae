"""The three tables as Declarative models.

They carry the names and the meaning of langgraph-checkpoint-postgres on both databases. An application may
select, join and relate them; the saver itself runs Core statements on their tables.

* Text keys have no length. In tables that we create on PostgreSQL they are `COLLATE "C"`: ids and task paths
  have to sort by code point, as Python and SQLite sort them, whatever the locale of the database is.
* There is no foreign key: LangGraph saves in the background, and a write may arrive before its checkpoint.
* Names of constraints are wrapped in `conv`, so that a naming convention of a host leaves them as they are.
* Ids of checkpoints are times, so the index that begins with them gives what is newest over all threads.
* Each unique key begins with `thread_id`, so that the tables can be sharded by it.
"""

from __future__ import annotations

import json
from functools import cache
from types import new_class
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Dialect,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    TypeDecorator,
    and_,
    cast,
    type_coerce,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.orm import (
    DeclarativeBase,
    Mapped,
    MappedAsDataclass,
    foreign,
    mapped_column,
    relationship,
    remote,
)
from sqlalchemy.schema import conv
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import TypeEngine, UserDefinedType

from cpstore.errors import ConfigurationError
from cpstore.names import Names, names_of

__all__ = [
    "MODELS",
    "Base",
    "Checkpoint",
    "CheckpointBlob",
    "CheckpointWrite",
    "JSONDocument",
    "Models",
    "Tables",
    "declare_models",
    "models_of",
    "run_id_of",
]


class _JSONText(TypeDecorator[Any]):
    """JSON in a text column, written and parsed here; text that is bound is taken as JSON already."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        return value if value is None or isinstance(value, str) else json.dumps(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:
        return None if value is None else json.loads(value)


class _TextualJSONB(UserDefinedType[str]):
    """JSONB that crosses the wire as text in both directions."""

    cache_ok = True

    def get_col_spec(self, **kw: Any) -> str:
        return "JSONB"

    def bind_expression(self, bindvalue: Any) -> ColumnElement[Any]:
        return cast(type_coerce(bindvalue, _JSONText()), JSONB())

    def column_expression(self, column: Any) -> ColumnElement[Any]:
        return type_coerce(cast(column, Text()), _JSONText())


class JSONDocument(_JSONText):
    """A JSON object: JSONB on PostgreSQL, JSON text on SQLite.

    It is bound and read as text, so that neither an engine's `json_serializer` nor a driver's JSON codec has
    a part in what is stored. Text that is bound is taken as JSON already; a result is parsed.
    """

    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Choose the column type of the database."""
        return dialect.type_descriptor(_TextualJSONB() if dialect.name == "postgresql" else Text())


class run_id_of(FunctionElement[str]):  # noqa: N801 - reads as the SQL function that it stands for
    """The text of `run_id` in a metadata column: what `delete_for_runs` searches by, and its index holds."""

    inherit_cache = True
    type = Text()


@compiles(run_id_of, "postgresql")
def _run_id_on_postgresql(element: run_id_of, compiler: SQLCompiler, **kw: Any) -> str:
    return f"({compiler.process(element.clauses, **kw)} ->> 'run_id')"


@compiles(run_id_of, "sqlite")
def _run_id_on_sqlite(element: run_id_of, compiler: SQLCompiler, **kw: Any) -> str:
    # `->>` would need SQLite 3.38.
    return f"json_extract({compiler.process(element.clauses, **kw)}, '$.run_id')"


class Base(DeclarativeBase):
    """The declarative base of cpstore's own models."""

    metadata = MetaData()


def _text() -> Text:
    return Text().with_variant(Text(collation="C"), "postgresql")


class CheckpointColumns:
    """A snapshot of a graph's state at a super-step; appended, never rewritten by another one."""

    thread_id: Mapped[str] = mapped_column(_text())
    checkpoint_ns: Mapped[str] = mapped_column(_text(), server_default="")
    checkpoint_id: Mapped[str] = mapped_column(_text())
    parent_checkpoint_id: Mapped[str | None] = mapped_column(_text())
    type: Mapped[str | None] = mapped_column(_text())
    checkpoint: Mapped[dict[str, Any]] = mapped_column(JSONDocument())
    metadata_: Mapped[dict[str, Any]] = mapped_column("metadata", JSONDocument(), server_default="{}")


class BlobColumns:
    """An encoded channel value, stored once for each version that the channel had."""

    thread_id: Mapped[str] = mapped_column(_text())
    checkpoint_ns: Mapped[str] = mapped_column(_text(), server_default="")
    channel: Mapped[str] = mapped_column(_text())
    version: Mapped[str] = mapped_column(_text())
    type: Mapped[str] = mapped_column(_text())
    blob: Mapped[bytes | None] = mapped_column(LargeBinary())


class WriteColumns:
    """A write of a task that was stored under a checkpoint before the next one existed."""

    thread_id: Mapped[str] = mapped_column(_text())
    checkpoint_ns: Mapped[str] = mapped_column(_text(), server_default="")
    checkpoint_id: Mapped[str] = mapped_column(_text())
    task_id: Mapped[str] = mapped_column(_text())
    idx: Mapped[int] = mapped_column(Integer())
    channel: Mapped[str] = mapped_column(_text())
    type: Mapped[str | None] = mapped_column(_text())
    blob: Mapped[bytes] = mapped_column(LargeBinary())
    task_path: Mapped[str] = mapped_column(_text(), server_default="")


_KEYS = {
    "checkpoints": ("thread_id", "checkpoint_ns", "checkpoint_id"),
    "checkpoint_blobs": ("thread_id", "checkpoint_ns", "channel", "version"),
    "checkpoint_writes": ("thread_id", "checkpoint_ns", "checkpoint_id", "task_id", "idx"),
}


def _table_args(table: str, names: Names) -> Any:
    key = PrimaryKeyConstraint(*_KEYS[table], name=conv(names.of(f"{table}_pkey")))
    return (key, {"schema": names.schema})


class Checkpoint(CheckpointColumns, Base):
    """A snapshot of a graph's state at a super-step; appended, never rewritten by another one."""

    __tablename__ = "checkpoints"
    __table_args__ = _table_args("checkpoints", Names())

    if TYPE_CHECKING:  # `_complete` makes them, for all models alike
        parent: Mapped[Checkpoint | None]
        children: Mapped[list[Checkpoint]]
        writes: Mapped[list[CheckpointWrite]]


class CheckpointBlob(BlobColumns, Base):
    """An encoded channel value, stored once for each version that the channel had."""

    __tablename__ = "checkpoint_blobs"
    __table_args__ = _table_args("checkpoint_blobs", Names())


class CheckpointWrite(WriteColumns, Base):
    """A write of a task that was stored under a checkpoint before the next one existed."""

    __tablename__ = "checkpoint_writes"
    __table_args__ = _table_args("checkpoint_writes", Names())


class Tables(NamedTuple):
    """The tables that statements are built on."""

    checkpoints: Table
    blobs: Table
    writes: Table


class Models(NamedTuple):
    """The three models, and the names that our migrations give to their tables.

    Without names the tables are an application's: its own migrations make them.
    """

    checkpoint: type[Any]
    blob: type[Any]
    write: type[Any]
    names: Names | None

    @property
    def tables(self) -> Tables:
        """The tables that the models are mapped to."""
        return Tables(*(model.__table__ for model in self[:3]))


def declare_models(base: Any, *, schema: str | None = None, prefix: str = "") -> Models:
    """Declare the three models on an application's own base, so that its migrations make the tables.

    Give the result to the saver as `models=`. The application's autogenerate sees the tables as its own, and
    finds nothing to do once it has made them; `setup()` of the saver makes nothing. On SQLite, Alembic leaves
    out the index on `run_id`, which is on an expression: add it where runs are deleted often.

    Args:
        base: A declarative base of the application, or a `MetaData`.
        schema: The schema of the tables; None: that of the base's `MetaData`, if it has one.
        prefix: What the names of tables, indexes and constraints begin with.

    Raises:
        ConfigurationError: The base is none, or has such a table already, or the names cannot be names.
    """
    names = names_of(schema, prefix)
    metadata = base if isinstance(base, MetaData) else getattr(base, "metadata", None)
    if not isinstance(metadata, MetaData):
        raise ConfigurationError(f"Pass a declarative base or a MetaData, not {base!r}")
    if base is metadata or issubclass(base, MappedAsDataclass):  # which takes no columns of a mixin
        base = type("Base", (DeclarativeBase,), {"metadata": metadata})
    there = {table.name for table in base.metadata.tables.values()}
    if taken := there & {names.of(table) for table in _KEYS}:
        raise ConfigurationError(f"The base has a table {min(taken)!r} already: choose a prefix")
    return _declared(base, names)._replace(names=None)


@cache
def models_of(names: Names) -> Models:
    """Give the models whose tables have these names. They are made once, as their statements are."""
    return MODELS if names == Names() else _declared(type("Base", (DeclarativeBase,), {}), names)


def _declared(base: Any, names: Names) -> Models:
    def declared(name: str, columns: type, table: str) -> type[Any]:
        body = {
            "__module__": __name__,
            "__doc__": columns.__doc__,
            "__tablename__": names.of(table),
            "__table_args__": _table_args(table, names),
        }
        return new_class(names.of(name), (columns, base), exec_body=lambda namespace: namespace.update(body))

    return _complete(
        Models(
            declared("Checkpoint", CheckpointColumns, "checkpoints"),
            declared("CheckpointBlob", BlobColumns, "checkpoint_blobs"),
            declared("CheckpointWrite", WriteColumns, "checkpoint_writes"),
            names,
        )
    )


def _complete(models: Models) -> Models:
    """Give models what is made of their columns: indexes, and relationships that only read."""
    checkpoint, write, names = models.checkpoint, models.write, models.names or Names()
    row, write_row = models.tables.checkpoints.c, models.tables.writes.c
    Index(conv(names.of("checkpoints_run_id_idx")), run_id_of(row.metadata))
    newest = [row[name] for name in ("checkpoint_id", "thread_id", "checkpoint_ns")]
    Index(conv(names.of("checkpoints_checkpoint_id_idx")), *newest)
    place = ("thread_id", "checkpoint_ns")
    up = [foreign(row[name]) == remote(row[name]) for name in place]
    up.append(foreign(row.parent_checkpoint_id) == remote(row.checkpoint_id))
    checkpoint.parent = relationship(checkpoint, primaryjoin=and_(*up), viewonly=True, uselist=False)
    down = [row[name] == remote(foreign(row[name])) for name in place]
    down.append(row.checkpoint_id == remote(foreign(row.parent_checkpoint_id)))
    checkpoint.children = relationship(
        checkpoint, primaryjoin=and_(*down), order_by=row.checkpoint_id, viewonly=True
    )
    of_task = [write_row[name] for name in ("task_path", "task_id", "idx")]
    under = and_(*(row[name] == foreign(write_row[name]) for name in _KEYS["checkpoints"]))
    checkpoint.writes = relationship(write, primaryjoin=under, order_by=of_task, viewonly=True)
    return models


MODELS = _complete(Models(Checkpoint, CheckpointBlob, CheckpointWrite, Names()))
"""cpstore's own models, with their own names."""
