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
from typing import Any, NamedTuple
from typing import cast as typed

from sqlalchemy import (
    ColumnElement,
    Dialect,
    Index,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    TypeDecorator,
    cast,
    type_coerce,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship
from sqlalchemy.schema import conv
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import TypeEngine, UserDefinedType

__all__ = [
    "TABLES",
    "Base",
    "Checkpoint",
    "CheckpointBlob",
    "CheckpointWrite",
    "JSONDocument",
    "Tables",
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


class Checkpoint(Base):
    """A snapshot of a graph's state at a super-step; appended, never rewritten by another one."""

    __tablename__ = "checkpoints"

    thread_id: Mapped[str] = mapped_column(_text())
    checkpoint_ns: Mapped[str] = mapped_column(_text(), server_default="")
    checkpoint_id: Mapped[str] = mapped_column(_text())
    parent_checkpoint_id: Mapped[str | None] = mapped_column(_text())
    type: Mapped[str | None] = mapped_column(_text())
    checkpoint: Mapped[dict[str, Any]] = mapped_column(JSONDocument())
    metadata_: Mapped[dict[str, Any]] = mapped_column("metadata", JSONDocument(), server_default="{}")

    __table_args__ = (
        PrimaryKeyConstraint("thread_id", "checkpoint_ns", "checkpoint_id", name=conv("checkpoints_pkey")),
    )

    parent: Mapped[Checkpoint | None] = relationship(
        "Checkpoint",
        primaryjoin=(
            "and_(foreign(Checkpoint.thread_id) == remote(Checkpoint.thread_id),"
            " foreign(Checkpoint.checkpoint_ns) == remote(Checkpoint.checkpoint_ns),"
            " foreign(Checkpoint.parent_checkpoint_id) == remote(Checkpoint.checkpoint_id))"
        ),
        viewonly=True,
        uselist=False,
    )
    children: Mapped[list[Checkpoint]] = relationship(
        "Checkpoint",
        primaryjoin=(
            "and_(Checkpoint.thread_id == remote(foreign(Checkpoint.thread_id)),"
            " Checkpoint.checkpoint_ns == remote(foreign(Checkpoint.checkpoint_ns)),"
            " Checkpoint.checkpoint_id == remote(foreign(Checkpoint.parent_checkpoint_id)))"
        ),
        order_by="Checkpoint.checkpoint_id",
        viewonly=True,
    )
    writes: Mapped[list[CheckpointWrite]] = relationship(
        "CheckpointWrite",
        primaryjoin=(
            "and_(Checkpoint.thread_id == foreign(CheckpointWrite.thread_id),"
            " Checkpoint.checkpoint_ns == foreign(CheckpointWrite.checkpoint_ns),"
            " Checkpoint.checkpoint_id == foreign(CheckpointWrite.checkpoint_id))"
        ),
        order_by="(CheckpointWrite.task_path, CheckpointWrite.task_id, CheckpointWrite.idx)",
        viewonly=True,
    )


Index(conv("checkpoints_run_id_idx"), run_id_of(Checkpoint.__table__.c.metadata))
Index(
    conv("checkpoints_checkpoint_id_idx"),
    *(Checkpoint.__table__.c[name] for name in ("checkpoint_id", "thread_id", "checkpoint_ns")),
)


class CheckpointBlob(Base):
    """An encoded channel value, stored once for each version that the channel had."""

    __tablename__ = "checkpoint_blobs"

    thread_id: Mapped[str] = mapped_column(_text())
    checkpoint_ns: Mapped[str] = mapped_column(_text(), server_default="")
    channel: Mapped[str] = mapped_column(_text())
    version: Mapped[str] = mapped_column(_text())
    type: Mapped[str] = mapped_column(_text())
    blob: Mapped[bytes | None] = mapped_column(LargeBinary())

    __table_args__ = (
        PrimaryKeyConstraint(
            "thread_id", "checkpoint_ns", "channel", "version", name=conv("checkpoint_blobs_pkey")
        ),
    )


class CheckpointWrite(Base):
    """A write of a task that was stored under a checkpoint before the next one existed."""

    __tablename__ = "checkpoint_writes"

    thread_id: Mapped[str] = mapped_column(_text())
    checkpoint_ns: Mapped[str] = mapped_column(_text(), server_default="")
    checkpoint_id: Mapped[str] = mapped_column(_text())
    task_id: Mapped[str] = mapped_column(_text())
    idx: Mapped[int]
    channel: Mapped[str] = mapped_column(_text())
    type: Mapped[str | None] = mapped_column(_text())
    blob: Mapped[bytes] = mapped_column(LargeBinary())
    task_path: Mapped[str] = mapped_column(_text(), server_default="")

    __table_args__ = (
        PrimaryKeyConstraint(
            "thread_id",
            "checkpoint_ns",
            "checkpoint_id",
            "task_id",
            "idx",
            name=conv("checkpoint_writes_pkey"),
        ),
    )


class Tables(NamedTuple):
    """The tables that statements are built on."""

    checkpoints: Table
    blobs: Table
    writes: Table


TABLES = Tables(*(typed("Table", model.__table__) for model in (Checkpoint, CheckpointBlob, CheckpointWrite)))
