"""A database of langgraph-checkpoint-postgres, taken over in place: each saver reads what the other wrote."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from click.testing import CliRunner
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.types import Command
from sqlalchemy import Engine, NullPool, create_engine, event, inspect, text

from cpstore import ForeignTablesError, NotMigratedError, SQLAlchemySaver, migrations
from cpstore.cli import main
from cpstore.migrations import State
from tests import graphs, postgres
from tests.conftest import text_of
from tests.test_values import checkpoint
from tests.together import run_together

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
    from sqlalchemy import URL

    Saver = BaseCheckpointSaver[Any]

ROOT = Path(__file__).parent.parent
TABLES = ("checkpoints", "checkpoint_blobs", "checkpoint_writes")
RUN_ID = "'checkpoints_run_id_idx'::regclass"
LIMIT = "-c lock_timeout=5s"


@pytest.fixture
def url(postgres_server: postgres.Server) -> Iterator[URL]:
    """An empty database."""
    with postgres.temporary_database(postgres_server.url) as made:
        yield made


@pytest.fixture
def engine(url: URL) -> Iterator[Engine]:
    """The application's engine."""
    made = create_engine(url)
    yield made
    made.dispose()


@contextmanager
def official(url: URL) -> Iterator[PostgresSaver]:
    """The official saver, set up."""
    plain = text_of(url.set(drivername="postgresql"))
    with PostgresSaver.from_conn_string(plain) as saver:
        saver.setup()
        yield saver


def everything(saver: Saver, *threads: str) -> list[Any]:
    """All that a saver tells of threads."""
    configs: list[RunnableConfig] = [{"configurable": {"thread_id": thread}} for thread in threads]
    return [told(found) for config in configs for found in saver.list(config)]


def told(found: CheckpointTuple) -> list[Any]:
    parent = found.parent_config or {"configurable": {}}
    return [
        found.config["configurable"],
        found.checkpoint,
        found.metadata,
        parent["configurable"],
        found.pending_writes or [],
    ]


def chat(saver: Saver, thread: str) -> None:
    """A conversation that waits for a human, as a saver has it."""
    config: RunnableConfig = {"configurable": {"thread_id": thread, "user": "ada"}}
    graph = graphs.chat_graph().compile(checkpointer=saver)
    graph.invoke({"messages": [HumanMessage("Hello", id="m1")]}, config)


def answer(saver: Saver, thread: str) -> list[str]:
    """The human answers, and the graph goes on."""
    graph = graphs.chat_graph().compile(checkpointer=saver)
    state = graph.invoke(Command(resume="yes"), {"configurable": {"thread_id": thread}})
    return [message.content for message in state["messages"]]


def odd(saver: Saver, thread: str) -> None:
    """Values of each kind of place, special writes and a namespace."""
    config: RunnableConfig = {"configurable": {"thread_id": thread, "checkpoint_ns": "node:1"}}
    made = checkpoint({"inline": 1, "text": "x" * 1000, "list": [1, (2,)], "none": None, "flag": True})
    stored = saver.put(config, made, {"source": "loop", "step": 1}, made["channel_versions"])
    saver.put_writes(stored, [("list", [2]), ("__interrupt__", "stop"), ("text", "y")], "task", "path")
    saver.put_writes(stored, [("__error__", "e")], "task 2")


def nested(saver: Saver, thread: str) -> None:
    """A subgraph in a subgraph that waits."""
    graph = graphs.nested_graph().compile(checkpointer=saver)
    graph.invoke({"item": "clock"}, {"configurable": {"thread_id": thread}})


STORIES: list[Callable[[Saver, str], None]] = [chat, odd, nested]


def test_each_reads_what_the_other_wrote(url: URL, engine: Engine) -> None:
    with official(url) as theirs:
        for story in STORIES:
            story(theirs, f"theirs {story.__name__}")
        migrations.adopt(engine)
        ours = SQLAlchemySaver(engine)
        ours.setup()
        for story in STORIES:
            story(ours, f"ours {story.__name__}")
        threads = [f"{who} {story.__name__}" for story in STORIES for who in ("theirs", "ours")]
        assert len(everything(ours, *threads)) >= 14
        assert everything(ours, *threads) == everything(theirs, *threads)
        assert answer(ours, "theirs chat") == answer(theirs, "ours chat")
        assert everything(ours, *threads) == everything(theirs, *threads)
        theirs.setup()
        for saver in (ours, theirs):
            saver.delete_thread("theirs chat")
            assert everything(theirs, "theirs chat") == everything(ours, "theirs chat") == []
    assert migrations.check(engine).state is State.CURRENT


def test_all_that_cpstore_can_do_works_on_an_adopted_database(url: URL, engine: Engine) -> None:
    root: RunnableConfig = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    with official(url) as theirs:
        for run in range(3):
            theirs.put(root, empty_checkpoint(), {"run_id": str(run)}, {})
    migrations.adopt(engine)
    saver = SQLAlchemySaver(engine)
    assert [one.thread_id for one in saver.list_threads()] == ["t"]
    saver.copy_thread("t", "copy")
    saver.delete_for_runs(["0"])
    saver.prune(["t"])
    assert (len(list(saver.history("t"))), len(list(saver.history("copy")))) == (1, 2)


def test_an_adopted_database_has_the_indexes_and_its_rows(url: URL, engine: Engine) -> None:
    with official(url) as theirs:
        chat(theirs, "t")
        before = rows(engine)
        result = CliRunner().invoke(main, ["db", "adopt", "--url", text_of(url)])
        assert (result.exit_code, result.output) == (0, f"{migrations.head()} (newest)\n")
        assert rows(engine) == before
    found = {index["name"] for index in inspect(engine).get_indexes("checkpoints")}
    assert found >= {"checkpoints_run_id_idx", "checkpoints_checkpoint_id_idx", "checkpoints_thread_id_idx"}
    migrations.adopt(engine)


def test_a_schema_can_be_adopted(url: URL) -> None:
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(text("CREATE SCHEMA agents"))
    engine.dispose()
    with official(url.update_query_dict({"options": "-csearch_path=agents"})) as theirs:
        chat(theirs, "t")
        migrations.adopt(url, schema="agents")
        with SQLAlchemySaver.from_url(url, schema="agents") as ours:
            assert everything(ours, "t") == everything(theirs, "t")


@pytest.mark.parametrize("commits", [False, True])
def test_adoption_is_in_the_transaction_of_a_connection(url: URL, engine: Engine, commits: bool) -> None:
    with official(url), engine.connect() as connection:
        migrations.adopt(connection)
        assert migrations.check(connection).state is State.CURRENT
        (connection.commit if commits else connection.rollback)()
    assert migrations.check(engine).state is (State.CURRENT if commits else State.OFFICIAL)


def test_what_is_not_theirs_is_not_adopted(url: URL, engine: Engine) -> None:
    with pytest.raises(NotMigratedError, match="no tables to adopt"):
        migrations.adopt(engine)
    with official(url), engine.begin() as connection:
        connection.execute(text("ALTER TABLE checkpoint_writes DROP COLUMN task_path"))
    with pytest.raises(ForeignTablesError, match=r"newest `setup\(\)`"):
        migrations.adopt(engine)
    assert "cpstore_alembic_version" not in inspect(engine).get_table_names()


# While the application runs


def rows(engine: Engine) -> list[Any]:
    query = "SELECT * FROM {} ORDER BY 1, 2, 3, 4"
    with engine.connect() as connection:
        return [connection.execute(text(query.format(table))).all() for table in TABLES]


def test_writers_go_on_while_indexes_are_built(url: URL, engine: Engine) -> None:
    """A writer holds its transaction open: an ordinary index would wait for it, and let nobody else write."""
    statements: list[str] = []
    event.listen(engine, "before_cursor_execute", lambda *given: statements.append(given[2]))

    def write(thread: str) -> None:
        with psycopg.connect(
            text_of(url.set(drivername="postgresql")), options="-c lock_timeout=5s"
        ) as other:
            other.execute("INSERT INTO checkpoints VALUES (%s, '', '1', NULL, NULL, '{}', '{}')", [thread])

    with official(url):
        event.listen(engine, "before_cursor_execute", lambda *given: write(f"t{len(statements)}"))
        migrations.adopt(engine)
    built = [statement for statement in statements if statement.startswith("CREATE INDEX")]
    assert [statement.split()[:3] for statement in built] == [["CREATE", "INDEX", "CONCURRENTLY"]] * 2
    written = len(statements) + 1  # and before the next statement
    assert len(rows(engine)[0]) == written


@pytest.mark.parametrize("size", [1, 2])
def test_a_pool_of_one_is_enough(url: URL, size: int) -> None:
    engine = create_engine(url, pool_size=size, max_overflow=0, pool_timeout=5)
    with official(url):
        migrations.adopt(engine)
    assert migrations.check(engine).state is State.CURRENT
    assert len(inspect(engine).get_indexes("checkpoints")) == 3
    engine.dispose()


def test_a_half_built_index_is_built_anew(url: URL, engine: Engine) -> None:
    with official(url):
        with engine.begin() as connection:
            connection.execute(text("CREATE INDEX checkpoints_run_id_idx ON checkpoints (type)"))
            connection.execute(text("UPDATE pg_index SET indisvalid = false WHERE indexrelid = " + RUN_ID))
        migrations.adopt(engine)
    with engine.connect() as connection:
        found = connection.execute(
            text("SELECT indisvalid, pg_get_indexdef(indexrelid) FROM pg_index WHERE indexrelid = " + RUN_ID)
        ).one()
    assert found[0] is True
    assert "run_id" in found[1].split("USING")[1]


def test_processes_that_adopt_together_all_succeed(url: URL) -> None:
    program = "import sys; from cpstore import migrations; migrations.adopt(sys.argv[1])"
    engine = create_engine(url, poolclass=NullPool)
    with official(url) as theirs:
        chat(theirs, "t")
        run_together(6, program, text_of(url))
    assert migrations.check(engine).state is State.CURRENT
    assert len(inspect(engine).get_indexes("checkpoints")) == 3
