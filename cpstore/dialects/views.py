"""Views for people: threads and checkpoints in plain columns, for tools that speak SQL.

A view is one of SQLAlchemy's selects, so that a schema and a prefix reach each name in it. Where databases
differ, an element stands for the difference, compiled for each of them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    DateTime,
    Select,
    Table,
    Text,
    cast,
    func,
    literal_column,
    select,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.schema import ExecutableDDLElement
from sqlalchemy.sql.compiler import DDLCompiler, SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from cpstore.dialects.base import Dialect
from cpstore.dialects.keys import number
from cpstore.models import Tables, run_id_of

__all__ = ["CreateView", "DropView", "View", "views_of"]

_HEX = "[0-9a-f]"
_UUID6 = (
    *((_HEX, 8), ("-", 1), (_HEX, 4), ("-6", 1), (_HEX, 3)),
    *(("-[89ab]", 1), (_HEX, 3), ("-", 1), (_HEX, 12)),
)
"""A UUID of version 6 as LangGraph writes it."""

_DIGITS = (*range(1, 9), *range(10, 14), *range(16, 19))
"""Where the 15 hexadecimal digits of its time are: 8, then 4, then 3 behind the version."""

_EPOCH = 12_219_292_800
"""The seconds from 1582-10-15, where the time of a UUID begins, to 1970."""

_LARGEST = 10**18 - 1
"""Whole numbers of up to 18 digits are numbers of 64 bits."""


class time_in(FunctionElement[Any]):  # noqa: N801 - reads as the SQL function that it stands for
    """The time in a checkpoint's id, as `cpstore.times.time_of` tells it; null if it has none.

    A `timestamptz` on PostgreSQL. SQLite has no type for it: there it is ISO text, to the microsecond.
    """

    inherit_cache = True
    type = DateTime(timezone=True)


class text_in(FunctionElement[str]):  # noqa: N801
    """A text at the top of a JSON document; null if there is none, or something else."""

    inherit_cache = True
    type = Text()


class whole_number_in(FunctionElement[int]):  # noqa: N801
    """A whole number at the top of a JSON document; null if there is none, or something else."""

    inherit_cache = True
    type = BigInteger()


@compiles(time_in, "postgresql")
def _time_on_postgresql(element: time_in, compiler: SQLCompiler, **kw: Any) -> str:
    id_ = compiler.process(element.clauses, **kw)
    pattern = "".join(part if times == 1 else f"{part}{{{times}}}" for part, times in _UUID6)
    digits = f"substr({id_}, 1, 8) || substr({id_}, 10, 4) || substr({id_}, 16, 3)"
    micros = f"(('x0' || {digits})::bit(64)::bigint / 10)"
    # Interval arithmetic is that of floats: each of the two factors is one that a float holds exactly.
    return (
        f"CASE WHEN lower({id_}) ~ '^{pattern}$' THEN timestamptz '1582-10-15 00:00:00+00'"
        f" + {micros} / 1000000 * interval '1 second' + mod({micros}, 1000000) * interval '1 microsecond' END"
    )


@compiles(time_in, "sqlite")
def _time_on_sqlite(element: time_in, compiler: SQLCompiler, **kw: Any) -> str:
    id_ = f"lower({compiler.process(element.clauses, **kw)})"
    pattern = "".join(part * times for part, times in _UUID6)
    # SQLite reads no hexadecimal text: a digit is where it stands among all of them.
    digits = [f"instr('123456789abcdef', substr({id_}, {at}, 1))" for at in _DIGITS]
    ticks = " | ".join(f"({digit} << {4 * place})" for place, digit in enumerate(reversed(digits)))
    seconds = f"micros / 1000000 - {_EPOCH}"
    day, hour = f"date({seconds}, 'unixepoch')", f"time({seconds}, 'unixepoch')"
    rest = "substr('000000' || (micros - micros / 1000000 * 1000000), -6)"
    told = f"{day} || 'T' || {hour} || '.' || {rest} || '+00:00'"
    time = f"(SELECT {told} FROM (SELECT ({ticks}) / 10 AS micros))"  # noqa: S608 - of our own words
    return f"CASE WHEN {id_} GLOB '{pattern}' THEN {time} END"


@compiles(text_in, "postgresql")
def _text_on_postgresql(element: text_in, compiler: SQLCompiler, **kw: Any) -> str:
    document, name = (compiler.process(each, **kw) for each in element.clauses)
    return f"CASE WHEN jsonb_typeof({document} -> {name}) = 'string' THEN {document} ->> {name} END"


@compiles(text_in, "sqlite")
def _text_on_sqlite(element: text_in, compiler: SQLCompiler, **kw: Any) -> str:
    document, name = (compiler.process(each, **kw) for each in element.clauses)
    path = f"'$.{name[1:]}"
    return f"CASE WHEN json_type({document}, {path}) = 'text' THEN json_extract({document}, {path}) END"


@compiles(whole_number_in, "postgresql")
def _number_on_postgresql(element: whole_number_in, compiler: SQLCompiler, **kw: Any) -> str:
    document, name = (compiler.process(each, **kw) for each in element.clauses)
    is_one = f"jsonb_typeof({document} -> {name}) = 'number' AND {document} ->> {name} ~ '^-?[0-9]{{1,18}}$'"
    return f"CASE WHEN {is_one} THEN ({document} ->> {name})::bigint END"


@compiles(whole_number_in, "sqlite")
def _number_on_sqlite(element: whole_number_in, compiler: SQLCompiler, **kw: Any) -> str:
    document, name = (compiler.process(each, **kw) for each in element.clauses)
    path = f"'$.{name[1:]}"
    found = f"json_extract({document}, {path})"
    is_one = f"json_type({document}, {path}) = 'integer' AND {found} BETWEEN -{_LARGEST} AND {_LARGEST}"
    return f"CASE WHEN {is_one} THEN {found} END"


class View(NamedTuple):
    """A view: how it is called, where it is, and what it shows."""

    name: str
    schema: str | None
    query: Select[Any]


class CreateView(ExecutableDDLElement):
    """Make a view; where a database can, in place of the one that is there, whose rights then stay."""

    def __init__(self, view: View) -> None:
        self.view = view


class DropView(ExecutableDDLElement):
    """Drop a view, if it is there."""

    def __init__(self, view: View) -> None:
        self.view = view


@compiles(CreateView, "sqlite")
def _create(element: CreateView, compiler: DDLCompiler, **kw: Any) -> str:
    query = compiler.sql_compiler.process(element.view.query, literal_binds=True)
    return f"CREATE VIEW {_name(element.view, compiler)} AS {query}"


@compiles(CreateView, "postgresql")
def _replace(element: CreateView, compiler: DDLCompiler, **kw: Any) -> str:
    return _create(element, compiler, **kw).replace("CREATE", "CREATE OR REPLACE", 1)


@compiles(DropView)
def _drop(element: DropView, compiler: DDLCompiler, **kw: Any) -> str:
    return f"DROP VIEW IF EXISTS {_name(element.view, compiler)}"


def _name(view: View, compiler: DDLCompiler) -> str:
    quote = compiler.preparer.quote
    return quote(view.name) if view.schema is None else f"{quote(view.schema)}.{quote(view.name)}"


def views_of(sql: Dialect) -> tuple[View, View]:
    """Give the two views over the tables of a dialect, in the schema that these have.

    A new column is added at the end: PostgreSQL replaces a view only by one that begins as it does.
    """
    schema = sql.tables.checkpoints.schema
    return (
        View("cpstore_threads", schema, _threads(sql)),
        View("cpstore_checkpoints", schema, _checkpoints(sql)),
    )


def _threads(sql: Dialect) -> Select[Any]:
    tables = sql.view_tables
    row = tables.checkpoints.c
    grouped = select(
        row.thread_id,
        func.count().label("checkpoints"),
        func.count(row.checkpoint_ns.distinct()).label("namespaces"),
        func.min(row.checkpoint_id).label("first_checkpoint_id"),
        func.max(row.checkpoint_id).label("last_checkpoint_id"),
        func.sum(_document_bytes(tables.checkpoints)).label("document_bytes"),
    )
    thread = grouped.group_by(row.thread_id).subquery("threads").c
    return select(
        thread.thread_id,
        time_in(thread.first_checkpoint_id).label("created_at"),
        time_in(thread.last_checkpoint_id).label("updated_at"),
        thread.checkpoints,
        thread.namespaces,
        thread.first_checkpoint_id,
        thread.last_checkpoint_id,
        thread.document_bytes,
        _of_thread(_bytes(tables.blobs), tables.blobs, thread.thread_id).label("value_bytes"),
        _of_thread(func.count(), tables.writes, thread.thread_id).label("writes"),
        _of_thread(_bytes(tables.writes), tables.writes, thread.thread_id).label("write_bytes"),
    )


def _checkpoints(sql: Dialect) -> Select[Any]:
    tables = sql.view_tables
    row = tables.checkpoints.c
    return select(
        row.thread_id,
        row.checkpoint_ns,
        row.checkpoint_id,
        row.parent_checkpoint_id,
        time_in(row.checkpoint_id).label("created_at"),
        text_in(row.metadata, literal_column("'source'")).label("source"),
        whole_number_in(row.metadata, literal_column("'step'")).label("step"),
        run_id_of(row.metadata).label("run_id"),
        _document_bytes(tables.checkpoints).label("document_bytes"),
        _value_bytes(sql).label("value_bytes"),
        _of_checkpoint(func.count(), tables).label("writes"),
        _of_checkpoint(_bytes(tables.writes), tables).label("write_bytes"),
    )


def _document_bytes(checkpoints: Table) -> ColumnElement[int]:
    documents = (checkpoints.c.checkpoint, checkpoints.c.metadata)
    first, second = (func.length(cast(document, Text())) for document in documents)
    return first + second


def _bytes(table: Table) -> ColumnElement[int]:
    return func.coalesce(func.sum(func.length(table.c.blob)), number(0))


def _of_thread(fact: Any, table: Table, thread_id: ColumnElement[str]) -> Any:
    return select(fact).select_from(table).where(table.c.thread_id == thread_id).scalar_subquery()


def _of_checkpoint(fact: Any, tables: Tables) -> Any:
    there, here = tables.writes.c, tables.checkpoints.c
    same = [there[name] == here[name] for name in ("thread_id", "checkpoint_ns", "checkpoint_id")]
    found = select(fact).select_from(tables.writes).where(*same)
    return found.correlate(tables.checkpoints).scalar_subquery()


def _value_bytes(sql: Dialect) -> Any:
    """Give the bytes of all blobs that a checkpoint points at, each looked up by its key.

    Of a join, SQLite would read all blobs of the thread for each checkpoint.
    """
    checkpoints, blobs, _ = sql.view_tables
    version = sql.versions_in(sql.versions_of(checkpoints.c.checkpoint))
    same = [
        *(blobs.c[name] == checkpoints.c[name] for name in ("thread_id", "checkpoint_ns")),
        blobs.c.channel == version.c.key,
        blobs.c.version == cast(version.c.value, Text()),
    ]
    one = select(func.length(blobs.c.blob)).where(*same).correlate(version, checkpoints).scalar_subquery()
    found = select(func.coalesce(func.sum(one), number(0))).select_from(version)
    return found.correlate(checkpoints).scalar_subquery()
