"""Search means one thing: `list` against a small reference, on both dialects.

The rule is that of PostgreSQL's `@>`, and PostgreSQL itself is one of the two that are asked: so these tests
hold the reference to it as well.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langgraph.checkpoint.base import empty_checkpoint
from sqlalchemy import QueuePool, create_engine, delete

from cpstore import Checkpoint, SQLAlchemySaver

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from langchain_core.runnables import RunnableConfig
    from sqlalchemy import Engine

    Draw = Callable[[st.SearchStrategy[Any]], Any]


# The reference: what contains what, and what is found.


def contains(document: Any, pattern: Any) -> bool:
    """PostgreSQL's manual, "jsonb Containment and Existence", for a pattern that is an object."""
    match document, pattern:
        case dict(), dict():
            return all(key in document and contains(document[key], pattern[key]) for key in pattern)
        case list(), list():
            return all(any(contains(item, wanted) for item in document) for wanted in pattern)
        case _:
            return kind_and_value(document) == kind_and_value(pattern)


def kind_and_value(value: Any) -> tuple[str, Any]:
    """A JSON value as JSON sees it: one kind of number, which is a decimal. A whole float is what it is."""
    match value:
        case None | bool() | str():
            return type(value).__name__, value
        case float() if value.is_integer():
            return "number", Decimal(value)
        case int() | float():
            return "number", Decimal(json.dumps(value))
        case _:
            return type(value).__name__, id(value)  # an object or a list is no other kind of value


@dataclass(frozen=True)
class Saved:
    """A checkpoint, as far as a search sees it."""

    thread_id: str
    checkpoint_ns: str
    checkpoint_id: str
    metadata: dict[str, Any]

    @property
    def key(self) -> tuple[str, str, str]:
        """Its address."""
        return self.thread_id, self.checkpoint_ns, self.checkpoint_id


@dataclass(frozen=True)
class Search:
    """The arguments of `list`; None: not given."""

    thread_id: str | None = None
    checkpoint_ns: str | None = None
    checkpoint_id: str | None = None
    before: str | None = None
    filter: dict[str, Any] | None = None
    limit: int | None = None

    @property
    def config(self) -> RunnableConfig | None:
        """The first argument: None where it would have nothing to say."""
        names = ("thread_id", "checkpoint_ns", "checkpoint_id")
        configurable = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        return {"configurable": configurable} if configurable else None

    def finds(self, saved: Saved) -> bool:
        """Whether a checkpoint is one of those that are asked for, were there no limit."""
        return (
            self.thread_id in (None, saved.thread_id)
            and self.checkpoint_ns in (None, saved.checkpoint_ns)
            and self.checkpoint_id in (None, "", saved.checkpoint_id)
            and (self.before in (None, "") or saved.checkpoint_id < str(self.before))
            and contains(saved.metadata, self.filter or {})
        )

    def ask(self, saver: SQLAlchemySaver) -> list[tuple[str, ...]]:
        """The addresses that `list` finds, in its order."""
        before: RunnableConfig = {"configurable": {"thread_id": "elsewhere", "checkpoint_id": self.before}}
        asked = saver.list(
            self.config,
            filter=self.filter,
            before=None if self.before is None else before,
            limit=self.limit,
        )
        return [tuple(one.config["configurable"].values()) for one in asked]


# What is searched, and for what: few ids, keys and values, so that many searches find something.


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=4)
NASTY = ["", "a", "b", "a.b", "$", "$.a", "a[0]", "'", '"', "\\", "%s", ":a", "?", "{}", "é", "1"]
LIKE = [None, True, False, 0, 1, 1.0, 0.0, -0.0, 0.1, "1", "true", "null", 2**60, float(2**60), 10**23, 1e23]

KEYS = st.sampled_from(NASTY) | TEXT
LEAVES = st.sampled_from(LIKE) | KEYS | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)
METADATA = st.dictionaries(KEYS, VALUES, max_size=4)

THREADS = ["t", "T", "é"]
NAMESPACES = ["", "a", "a:1|b:2"]
IDS = ["-", "0", "1f0", "1f0-a", "Z", "a", "~", "é"]

SAVED = st.lists(
    st.builds(Saved, st.sampled_from(THREADS), st.sampled_from(NAMESPACES), st.sampled_from(IDS), METADATA),
    min_size=2,
    max_size=9,
    unique_by=lambda saved: saved.key,
)


@st.composite
def almost_part_of(draw: Draw, value: Any) -> Any:
    """A value that another one contains, or would contain but for one leaf or so."""
    if isinstance(value, dict):
        keys = draw(st.lists(st.sampled_from([*value]), unique=True)) if value else []
        return {key: draw(almost_part_of(value[key])) for key in keys}
    if isinstance(value, list):
        items = draw(st.lists(st.sampled_from(value), max_size=3)) if value else []
        return [draw(almost_part_of(item)) for item in items]
    return draw(st.just(value) | st.sampled_from(twins(value)) | st.sampled_from(LIKE))


def twins(value: Any) -> list[Any]:
    """A leaf, and what is easily taken for it."""
    if isinstance(value, bool):
        return [value, int(value)]
    if isinstance(value, (int, float)):
        return [value, float(value), int(value), str(value)]
    return [value, str(value), [value]]


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | st.none() | st.none() | strategy


@st.composite
def searches(draw: Draw, saved: list[Saved]) -> Search:
    documents = [one.metadata for one in saved] or [{}]
    near = st.sampled_from(documents).flatmap(almost_part_of)
    return Search(
        thread_id=draw(maybe(st.sampled_from(THREADS))),
        checkpoint_ns=draw(maybe(st.sampled_from(NAMESPACES))),
        checkpoint_id=draw(maybe(st.sampled_from(["", *IDS]))),
        before=draw(maybe(st.sampled_from(["", "1f", "b", *IDS]))),
        filter=draw(st.none() | near | near | METADATA),
        limit=draw(maybe(st.integers(0, 5))),
    )


# The laws.


@dataclass(frozen=True)
class Store:
    """A saver and its engine."""

    engine: Engine
    saver: SQLAlchemySaver

    def hold(self, saved: list[Saved]) -> None:
        """Have these checkpoints and no others."""
        with self.engine.begin() as connection:
            connection.execute(delete(Checkpoint))
        for one in saved:
            place: RunnableConfig = {
                "configurable": {"thread_id": one.thread_id, "checkpoint_ns": one.checkpoint_ns}
            }
            checkpoint = {**empty_checkpoint(), "id": one.checkpoint_id}
            self.saver.put(place, cast("Any", checkpoint), cast("Any", one.metadata), {})

    def finds(self, document: dict[str, Any], pattern: dict[str, Any] | None) -> bool:
        """Whether a search for `pattern` finds a checkpoint with `document` as its metadata."""
        self.hold([Saved("t", "", "1", document)])
        return bool(Search(filter=pattern).ask(self.saver))


@pytest.fixture
def store(dialect_url: str) -> Iterator[Store]:
    """A saver on an engine of either dialect, which ends without a connection in use."""
    engine = create_engine(dialect_url)
    yield Store(engine, SQLAlchemySaver(engine))
    assert isinstance(engine.pool, QueuePool)
    assert engine.pool.checkedout() == 0
    engine.dispose()


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages so small that few checkpoints fill several of them."""
    monkeypatch.setattr("cpstore.ops.reading._PAGE", 2)
    monkeypatch.setattr("cpstore.ops.reading._SCAN", 3)


LAW = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.usefixtures("small_pages")
@LAW
@given(data=st.data(), saved=SAVED)
def test_list_finds_what_the_reference_finds(store: Store, data: st.DataObject, saved: list[Saved]) -> None:
    store.hold(saved)
    for _ in range(3):
        search = data.draw(searches(saved), label="search")
        found = search.ask(store.saver)
        expected = [one for one in saved if search.finds(one)]
        newest_first = sorted((one.checkpoint_id for one in expected), reverse=True)
        assert [key[2] for key in found] == newest_first[: search.limit]
        assert len(set(found)) == len(found)
        assert set(found) <= {one.key for one in expected}


@LAW
@given(data=st.data(), document=METADATA)
def test_a_part_is_contained(store: Store, data: st.DataObject, document: dict[str, Any]) -> None:
    pattern = data.draw(almost_part_of(document), label="pattern")
    assert store.finds(document, pattern) == contains(document, pattern)
    assert store.finds(document, document)


@LAW
@given(document=METADATA, key=KEYS, value=VALUES)
def test_an_unknown_key_finds_nothing(store: Store, document: dict[str, Any], key: str, value: Any) -> None:
    document.pop(key, None)
    assert not store.finds(document, {key: value})
    assert not store.finds({"outer": document}, {"outer": {key: value}})


# The rule by examples.


CONTAINED: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"a": 1, "b": 2}, {"a": 1}),
    ({"a": 1}, {"a": 1.0}),
    ({"a": 0.0}, {"a": -0.0}),
    ({"a": None}, {"a": None}),
    ({"a": {"b": {"c": 1, "d": 2}, "e": 3}}, {"a": {"b": {"d": 2}}}),
    ({"a": {"b": 1}}, {"a": {}}),
    ({"a": [1, 2, 3]}, {"a": [3, 1]}),
    ({"a": [1]}, {"a": [1, 1]}),
    ({"a": [1]}, {"a": []}),
    ({"a": [{"b": 1, "c": 2}]}, {"a": [{"b": 1}, {"c": 2}]}),
    ({"a": [[1, 2], [3]]}, {"a": [[2]]}),
    ({"a.b": 1}, {"a.b": 1}),
    ({'a"b\\c': "x'y"}, {'a"b\\c': "x'y"}),
    ({"": ""}, {"": ""}),
    ({"$.a": "é"}, {"$.a": "é"}),
    ({"a": 1e23}, {"a": 1e23}),
    ({"a": int(1e23)}, {"a": 1e23}),
    ({"a": 1e22}, {"a": 10**22}),
    ({"a": 2**60}, {"a": float(2**60)}),
]

NOT_CONTAINED: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"a": 10**23}, {"a": 1e23}),  # which is the float below it, in Python too
    ({"a": 1}, {"a": True}),
    ({"a": False}, {"a": 0}),
    ({"a": 1}, {"a": "1"}),
    ({}, {"a": None}),
    ({"a": 1}, {"a": None}),
    ({"a": None}, {"a": {}}),
    ({"a": "None"}, {"a": None}),
    ({"a": "null"}, {"a": None}),
    ({"a": {"b": 1}}, {"a.b": 1}),
    ({"a.b": 1}, {"a": {"b": 1}}),
    ({"a": [1]}, {"a": 1}),
    ({"a": 1}, {"a": [1]}),
    ({"a": ["b"]}, {"a": {"b": 1}}),
    ({"a": []}, {"a": {}}),
    ({"a": [[1]]}, {"a": [1]}),
    ({"a": [{"b": 1}, {"c": 2}]}, {"a": [{"b": 1, "c": 2}]}),
    ({"a": "x"}, {"A": "x"}),
    ({"a": "é"}, {"a": "e\N{COMBINING ACUTE ACCENT}"}),
]


def test_the_reference_keeps_to_the_examples() -> None:
    assert [case for case in CONTAINED if not contains(*case)] == []
    assert [case for case in NOT_CONTAINED if contains(*case)] == []


def test_the_examples(store: Store) -> None:
    assert [case for case in CONTAINED if not store.finds(*case)] == []
    assert [case for case in NOT_CONTAINED if store.finds(*case)] == []


def test_an_empty_filter_is_none(store: Store) -> None:
    for document in ({}, {"a": [1]}):
        assert store.finds(document, None)
        assert store.finds(document, {})
