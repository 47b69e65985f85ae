"""Trees: forks, calls, heads; in every format; of threads of any length and with any names."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpstore import CheckpointSummary, SQLAlchemySaver
from cpstore.trees import FORMATS, Forest, draw, svg_lines
from tests.golden.cli import same_as_golden
from tests.looked_at import THREAD, tell

if TYPE_CHECKING:
    from sqlalchemy import Engine

MANY = 10_000
HOSTILE = "\x1b[2J\"'<script>alert(1)</script>&%%]-->\\\n\u202e"


def checkpoint(
    checkpoint_id: str, parent: str | None = None, namespace: str = "", **metadata: Any
) -> CheckpointSummary:
    return CheckpointSummary("t", namespace, checkpoint_id, parent, metadata, ("a",), 1, 2, 0, 0)


def chain(count: int) -> Forest:
    ids = [f"{number:08}" for number in range(count)]
    pairs = zip([None, *ids], ids, strict=False)
    return Forest.of(checkpoint(one, parent, step=int(one)) for parent, one in pairs)


class Undecoded:
    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        raise AssertionError

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        raise AssertionError("a value was decoded")


@pytest.mark.parametrize("form", FORMATS)
def test_a_thread_in_each_format(form: str, keeper: SQLAlchemySaver, database: Engine) -> None:
    tell(keeper)
    history = SQLAlchemySaver(database, serde=Undecoded()).history(THREAD)
    same_as_golden(f"tree.{form}", draw(Forest.of(history), form))


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(ValueError, match="text, mermaid, dot, svg, json, not 'png'"):
        draw(chain(1), "png")


@pytest.mark.parametrize("form", FORMATS)
def test_a_long_chain_needs_no_depth(form: str) -> None:
    forest = chain(MANY)
    drawn = draw(forest, form)
    assert f"{MANY - 1:08}" in drawn
    assert {row.depth for row in forest.rows} == {0}


@pytest.mark.parametrize("form", FORMATS)
def test_many_forks_of_forks(form: str) -> None:
    """Each checkpoint has a child that is left, and one that goes on."""
    ones = [checkpoint("00000000")]
    for number in range(1, MANY // 2):
        before = f"{number - 1:08}"
        ones += [checkpoint(f"{number:08}", before), checkpoint(f"{number - 1:08}x", before)]
    assert draw(Forest.of(ones), form).count("x") >= MANY // 2 - 1


@pytest.mark.parametrize("form", FORMATS)
def test_nothing_is_no_error(form: str) -> None:
    assert draw(Forest.of([]), form) is not None


@pytest.mark.parametrize("form", FORMATS)
def test_names_are_only_shown(form: str) -> None:
    metadata = {"source": HOSTILE, "step": HOSTILE}
    one = CheckpointSummary("t", HOSTILE, HOSTILE, None, metadata, (HOSTILE,), 1, 2, 0, 0)
    drawn = draw(Forest.of([one]), form)
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", drawn)
    if form == "svg":
        root = ET.fromstring(drawn)  # noqa: S314 - our own
        assert {each.tag.rpartition("}")[2] for each in root.iter()} == {
            "svg",
            "style",
            "g",
            "circle",
            "text",
        }
    if form == "json":
        assert json.loads(drawn)["checkpoints"][0]["checkpoint_id"] == HOSTILE
    if form == "mermaid":
        assert "<script" not in drawn
        assert drawn.count('"') == 4 + 2
    if form == "dot":
        assert re.search(r'label="(?:[^"\\]|\\.)*", penwidth', drawn)


def test_an_svg_for_a_page() -> None:
    lines = list(svg_lines(chain(2), style=False, link=lambda row: f"?a=1&b={row.number}"))
    root = ET.fromstring("\n".join(lines))  # noqa: S314 - our own
    links = [each.get("href") for each in root.iter() if each.tag.endswith("}a")]
    assert links == ["?a=1&b=0", "?a=1&b=1"]
    assert not any("style" in line for line in lines)


def test_rows_of_a_thread(keeper: SQLAlchemySaver) -> None:
    tell(keeper)
    rows = Forest.of(keeper.history(THREAD)).rows
    assert [(int(row.checkpoint.checkpoint_id[-2:]), row.depth, row.above, row.kind) for row in rows] == [
        (1, 0, None, "root"),
        (6, 1, 0, "fork"),
        (2, 0, 0, "step"),
        (3, 1, 2, "call"),
        (4, 1, 3, "step"),
        (5, 0, 2, "step"),
        (7, 0, 5, "step"),
    ]
    assert [row.is_head for row in rows] == [False, False, False, False, True, False, True]


def test_a_subgraph_with_a_memory_stands_under_each_step_that_called_it() -> None:
    ones = [checkpoint("1"), checkpoint("3", "1")]
    ones += [checkpoint("2", None, "sub", parents={"": "1"}), checkpoint("4", "2", "sub", parents={"": "3"})]
    ones += [checkpoint("5", None, "sub|deep:1", parents={"": "3", "sub": "4"})]
    rows = Forest.of(ones).rows
    assert [(row.checkpoint.checkpoint_id, row.above, row.kind) for row in rows] == [
        ("1", None, "root"),
        ("2", 0, "call"),
        ("3", 0, "step"),
        ("4", 2, "call"),
        ("5", 3, "call"),
    ]


def test_what_has_lost_its_parent_is_a_root() -> None:
    ones = [
        checkpoint("2", "1"),
        checkpoint("3", None, "a:1", parents={"": "1"}),
        checkpoint("4", None, "b:1"),
    ]
    assert [(row.kind, row.depth) for row in Forest.of(ones).rows] == [("root", 0)] * 3


@given(
    st.lists(
        st.tuples(st.integers(0, 12), st.integers(0, 12), st.sampled_from(["", "a", "b:1"])), max_size=14
    )
)
def test_each_checkpoint_is_drawn_once(links: list[tuple[int, int, str]]) -> None:
    """Whatever the parents are: missing, newer, in a circle, the checkpoint itself."""
    ones = {
        (namespace, str(one)): checkpoint(str(one), str(parent), namespace, parents={"": str(parent)})
        for one, parent, namespace in links
    }
    forest = Forest.of(ones.values())
    drawn = [(row.checkpoint.checkpoint_ns, row.checkpoint.checkpoint_id) for row in forest.rows]
    assert sorted(drawn) == sorted(ones)
    assert all(row.above is None or row.above < row.number for row in forest.rows)
    for form in FORMATS:
        draw(forest, form)
