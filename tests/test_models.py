"""The models as an application sees them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from langgraph.checkpoint.base import empty_checkpoint
from sqlalchemy import Engine, MetaData, create_engine, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session
from sqlalchemy.schema import CreateIndex, CreateTable

from cpstore import Checkpoint, CheckpointBlob, CheckpointWrite, SQLAlchemySaver
from cpstore.models import MODELS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from langchain_core.runnables import RunnableConfig


@pytest.fixture
def engine(dialect_url: str) -> Iterator[Engine]:
    engine = create_engine(dialect_url)
    yield engine
    engine.dispose()


def put(saver: SQLAlchemySaver, config: RunnableConfig, **metadata: Any) -> RunnableConfig:
    checkpoint = empty_checkpoint()
    checkpoint["channel_values"] = {"words": ["a", "b"], "number": 1}
    checkpoint["channel_versions"] = {"words": "1", "number": "1"}
    return saver.put(config, checkpoint, metadata, checkpoint["channel_versions"])  # type: ignore[arg-type]


def test_an_application_can_walk_from_parent_to_children_and_writes(engine: Engine) -> None:
    saver = SQLAlchemySaver(engine)
    root = put(saver, {"configurable": {"thread_id": "t"}}, source="input")
    children = [put(saver, root, source="fork") for _ in range(2)]
    put(saver, {"configurable": {"thread_id": "other"}})
    saver.put_writes(root, [("words", "c"), ("words", "d")], "task", "~path")
    saver.put_writes(root, [("words", "e")], "task0", "path")

    with Session(engine) as session:
        top = session.scalars(select(Checkpoint).where(Checkpoint.parent_checkpoint_id.is_(None))).all()[0]
        assert top.thread_id in {"t", "other"}
        top = session.get_one(Checkpoint, ("t", "", root["configurable"]["checkpoint_id"]))
        assert [child.checkpoint_id for child in top.children] == [
            child["configurable"]["checkpoint_id"] for child in children
        ]
        assert top.children[0].parent is top
        assert top.parent is None
        assert [(write.task_path, write.idx) for write in top.writes] == [
            ("path", 0),
            ("~path", 0),
            ("~path", 1),
        ]
        assert top.metadata_ == {"source": "input"}
        assert top.checkpoint["channel_values"] == {"number": 1}
        blobs = session.scalars(select(CheckpointBlob).where(CheckpointBlob.thread_id == "t")).all()
        assert [(blob.channel, blob.version) for blob in blobs] == [("words", "1")]


@pytest.mark.parametrize("dialect_module", [sqlite, postgresql])
def test_a_hosts_naming_convention_renames_nothing(dialect_module: Any) -> None:
    host = MetaData(naming_convention={"pk": "host_pk_%(table_name)s", "ix": "host_ix_%(column_0_label)s"})
    copies = [table.to_metadata(host) for table in MODELS.tables]
    ddl = [str(CreateTable(copy).compile(dialect=dialect_module.dialect())) for copy in copies]
    ddl += [
        str(CreateIndex(i).compile(dialect=dialect_module.dialect())) for copy in copies for i in copy.indexes
    ]
    assert not any("host_" in statement for statement in ddl)
    for name in (
        "checkpoints_pkey",
        "checkpoint_blobs_pkey",
        "checkpoint_writes_pkey",
        "checkpoints_run_id_idx",
    ):
        assert any(name in statement for statement in ddl)


def test_everything_is_named_and_each_key_begins_with_the_thread() -> None:
    for table in MODELS.tables:
        assert all(constraint.name for constraint in table.constraints)
        assert next(iter(table.primary_key.columns)).name == "thread_id"
        assert all(index.name and not index.unique for index in table.indexes)
        assert not table.foreign_keys


def test_an_engines_json_serializer_has_no_part_in_what_is_stored(dialect_url: str) -> None:
    def broken(_value: Any) -> Any:
        raise AssertionError("the application's JSON functions were called")

    engine = create_engine(dialect_url, json_serializer=broken, json_deserializer=broken)
    saver = SQLAlchemySaver(engine)
    stored = put(saver, {"configurable": {"thread_id": "t"}}, score=1.5)
    found = saver.get_tuple(stored)
    assert found is not None
    assert found.metadata == {"score": 1.5}
    assert found.checkpoint["channel_values"] == {"words": ["a", "b"], "number": 1}
    with Session(engine) as session:
        assert session.scalars(select(Checkpoint.metadata_)).all() == [{"score": 1.5}]
        session.add(
            Checkpoint(
                thread_id="mine", checkpoint_id="1", checkpoint={"v": 4, "id": "1"}, metadata_={"a": [1]}
            )
        )
        session.add(
            CheckpointWrite(
                thread_id="mine", checkpoint_id="1", task_id="x", idx=0, channel="c", type="null", blob=b""
            )
        )
        session.commit()
    mine = saver.get_tuple({"configurable": {"thread_id": "mine"}})
    assert mine is not None
    assert json.loads(json.dumps(mine.metadata)) == {"a": [1]}
    assert mine.checkpoint["channel_values"] == {}
    assert mine.pending_writes == [("x", "c", None)]
    engine.dispose()
