"""Two Alembic histories in one database, and our tables in an application's own history."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import Engine, Integer, MetaData, create_engine, inspect, text
from sqlalchemy.orm import (
    DeclarativeBase,
    Mapped,
    MappedAsDataclass,
    Session,
    declarative_base,
    mapped_column,
)

from cpstore import ConfigurationError, NotMigratedError, SQLAlchemySaver, declare_models, migrations
from tests.tour import put, tour

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from langchain_core.runnables import RunnableConfig

OURS = {"checkpoints", "checkpoint_blobs", "checkpoint_writes"}
ROOT: RunnableConfig = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}

MAKO = """
revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
from alembic import op
import sqlalchemy as sa
import cpstore.models
${imports if imports else ""}
def upgrade():
    ${upgrades if upgrades else "pass"}
def downgrade():
    ${downgrades if downgrades else "pass"}
"""

ENV = """
from alembic import context
attributes = context.config.attributes
context.configure(
    connection=attributes["connection"],
    target_metadata=attributes["metadata"],
    **attributes["options"],
)
with context.begin_transaction():
    context.run_migrations()
"""


class Host:
    """An application with models and an Alembic history of its own."""

    def __init__(self, folder: Path, engine: Engine, metadata: MetaData, **options: Any) -> None:
        self.engine, self.metadata, self.options = engine, metadata, options
        self.folder = folder
        (folder / "versions").mkdir()
        (folder / "env.py").write_text(ENV)
        (folder / "script.py.mako").write_text(MAKO)

    def run(self, what: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Run an Alembic command as the application does."""
        with self.engine.begin() as connection:
            attributes = {"connection": connection, "metadata": self.metadata, "options": self.options}
            config = Config(attributes=attributes)
            config.set_main_option("script_location", str(self.folder))
            return what(config, *arguments, **options)

    def autogenerate(self, message: str) -> str:
        """Write a revision for what the models say and the database lacks, and give its text."""
        made = self.run(command.revision, message, autogenerate=True)
        return str((self.folder / "versions" / made.path.split("/")[-1]).read_text())


@pytest.fixture
def engine(empty_dialect_url: str) -> Iterator[Engine]:
    made = create_engine(empty_dialect_url)
    yield made
    made.dispose()


def base_of() -> type[DeclarativeBase]:
    class Base(DeclarativeBase):
        pass

    class Note(Base):
        __tablename__ = "notes"
        id: Mapped[int] = mapped_column(Integer, primary_key=True)

    return Base


# A. Two histories


@pytest.mark.filterwarnings("ignore:.*expression-based index")  # SQLite cannot reflect one
@pytest.mark.parametrize("by", ["include_name", "include_object"])
@pytest.mark.parametrize("place", [{}, {"prefix": "lg_"}, {"schema": "agents"}], ids=str)
def test_the_hosts_autogenerate_sees_nothing_of_ours(
    tmp_path: Path, engine: Engine, by: str, place: dict[str, Any]
) -> None:
    if place.get("schema") and engine.dialect.name == "sqlite":
        place = {"schema": "main", "prefix": "lg_"}
    import cpstore.alembic

    options = {by: getattr(cpstore.alembic, by)(**place), "include_schemas": "schema" in place}
    if "schema" in place and engine.dialect.name == "sqlite":
        options["include_schemas"] = False
        options[by] = getattr(cpstore.alembic, by)(prefix="lg_")
    host = Host(tmp_path, engine, base_of().metadata, **options)
    migrations.upgrade(engine, **place)
    first = host.autogenerate("first")
    assert "create_table('notes'" in first
    assert "checkpoint" not in first
    assert "cpstore_alembic_version" not in first
    host.run(command.upgrade, "head")
    host.run(command.check)
    before = migrations.check(engine, **place)
    host.run(command.downgrade, "base")
    assert migrations.check(engine, **place) == before
    with engine.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM alembic_version")).scalar() == 0


@pytest.mark.filterwarnings("ignore:.*expression-based index")
def test_without_it_the_host_would_drop_our_tables(tmp_path: Path, engine: Engine) -> None:
    """What the filters are for; if this fails, Alembic has changed."""
    host = Host(tmp_path, engine, base_of().metadata)
    migrations.upgrade(engine)
    assert host.autogenerate("first").split("def downgrade")[0].count("op.drop_table") == 4


def test_the_hosts_own_filter_is_asked_for_the_rest() -> None:
    import cpstore.alembic

    named = cpstore.alembic.include_name(also=lambda name, kind, parents: name == "notes")
    asked = [named(name, "table", {"schema_name": None}) for name in ("notes", "others", "checkpoints")]
    assert asked == [True, False, False]
    assert cpstore.alembic.include_name()("checkpoints", "table", {"schema_name": "other"})
    assert cpstore.alembic.include_name()("checkpoints", "index", {"schema_name": None})
    chosen = cpstore.alembic.include_object(also=lambda item, name, kind, reflected, to: reflected)
    notes = base_of().metadata.tables["notes"]
    assert chosen(notes, "notes", "table", True, None)
    assert not chosen(notes, "notes", "table", False, None)
    assert not chosen(notes, "checkpoints", "table", True, None)


# B. Our models on the host's base


def bases() -> list[tuple[str, Any]]:
    class Named(DeclarativeBase):
        metadata = MetaData(
            naming_convention={"pk": "host_pk_%(table_name)s", "ix": "host_%(column_0_label)s"}
        )

    class Mapping(DeclarativeBase):
        type_annotation_map: ClassVar[Any] = {str: Integer, int: Integer}

    class Data(MappedAsDataclass, DeclarativeBase):
        pass

    plain: list[Any] = [base_of(), Named, Mapping, Data, declarative_base(), MetaData()]
    return list(zip(("base", "named", "mapping", "dataclass", "function", "metadata"), plain, strict=True))


@pytest.mark.filterwarnings("ignore:.*expression-based index")
@pytest.mark.parametrize("name", [name for name, _ in bases()])
async def test_the_host_owns_the_tables(tmp_path: Path, engine: Engine, name: str) -> None:
    base = dict(bases())[name]
    models = declare_models(base, prefix="app_" if name == "base" else "")
    metadata = base if isinstance(base, MetaData) else base.metadata
    host = Host(tmp_path, engine, metadata)
    saver = SQLAlchemySaver(engine, models=models)
    with pytest.raises(NotMigratedError, match="migrations of your application"):
        saver.setup()
    with pytest.raises(NotMigratedError, match="migrations of your application"):
        saver.get_tuple(ROOT)
    assert ("run_id" in host.autogenerate("first")) == (engine.dialect.name == "postgresql")
    host.run(command.upgrade, "head")
    host.run(command.check)
    saver.setup()
    await tour(saver)
    prefix = "app_" if name == "base" else ""
    assert set(inspect(engine).get_table_names()) >= {f"{prefix}{table}" for table in OURS} | {
        "alembic_version"
    }
    assert "cpstore_alembic_version" not in inspect(engine).get_table_names()
    if name != "dataclass":
        await in_a_session(engine, saver, models)
    host.run(command.downgrade, "base")
    assert not set(inspect(engine).get_table_names()) & OURS


async def in_a_session(engine: Engine, saver: SQLAlchemySaver, models: Any) -> None:
    """The application reads the models as it reads its own."""
    first = await put(saver, ROOT, 0, "word")
    await put(saver, first, 1, "word")
    await saver.aput_writes(first, [("c", 1)], "task")
    with Session(engine) as session:
        found = session.get_one(models.checkpoint, ("t", "", first["configurable"]["checkpoint_id"]))
        (child,) = found.children
        assert child.parent is found
        assert [write.channel for write in found.writes] == ["c"]


def test_a_schema_of_the_base_is_the_schema_of_the_tables() -> None:
    assert declare_models(MetaData(schema="app")).tables.checkpoints.schema == "app"
    assert declare_models(MetaData(), schema="lg").tables.checkpoints.schema == "lg"


@pytest.mark.parametrize("base", [None, 1, object(), Session])
def test_what_is_no_base_is_refused(base: Any) -> None:
    with pytest.raises(ConfigurationError, match="declarative base or a MetaData"):
        declare_models(base)


def test_a_base_has_them_once_for_each_prefix() -> None:
    base = base_of()
    declare_models(base)
    with pytest.raises(ConfigurationError, match="choose a prefix"):
        declare_models(base)
    models = declare_models(base, prefix="lg_")
    with pytest.raises(ConfigurationError, match="pass them to declare_models"):
        SQLAlchemySaver.from_url("sqlite://", models=models, prefix="lg_")
