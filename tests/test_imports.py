"""Rows of strangers import nothing and call nothing that was not allowed, and a small one stays small."""

from __future__ import annotations

import json
import pathlib
import pickle
import sys
import tracemalloc
import zlib
from typing import TYPE_CHECKING, Any

import ormsgpack
import pytest

from cpstore import Serializer, TypeNotAllowedError, UnreadableValueError
from tests.test_serializer import extension

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture
def trap(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> Iterator[Callable[[], bool]]:
    """A module `trap` that can be imported; asks whether it was."""
    sprung = tmp_path / "sprung"
    (tmp_path / "trap.py").write_text(
        f"import dataclasses, pathlib\npathlib.Path({str(sprung)!r}).touch()\n"
        "@dataclasses.dataclass\nclass Trap:\n    x: int\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield sprung.exists
    sys.modules.pop("trap", None)


def json_row(lc: int, *names: str) -> tuple[str, bytes]:
    document = {"lc": lc, "type": "constructor", "id": names, "kwargs": {"x": 1}}
    return "json", json.dumps([document]).encode()


@pytest.mark.parametrize("options", [{}, {"allowed_types": []}, {"on_error": "raw"}], ids=str)
@pytest.mark.parametrize(
    "row",
    [json_row(1, "trap", "Trap"), json_row(2, "trap", "Trap"), ("pickle", b"ctrap\nTrap\n(I1\ntR.")],
    ids=["json 1", "json 2", "pickle"],
)
def test_rows_tagged_json_or_pickle_import_nothing(
    trap: Callable[[], bool], options: dict[str, Any], row: tuple[str, bytes]
) -> None:
    serializer = Serializer(**options)
    if row[0] == "json" and "on_error" in options:
        assert serializer.loads_typed(row) == [{"x": 1}]
    else:
        with pytest.raises(TypeNotAllowedError, match=r"trap|pickle"):
            serializer.loads_typed(row)
    assert not trap()


@pytest.mark.parametrize("code", range(6))
def test_strict_rows_import_nothing(trap: Callable[[], bool], code: int) -> None:
    row = extension(code, ["trap", "Trap", {"x": 1}, *["load", True][: max(0, code - 2)]])
    with pytest.raises(TypeNotAllowedError, match="trap"):
        Serializer(allowed_types=[]).loads_typed(row)
    assert not trap()


def test_an_allowed_type_is_read_from_json_too(trap: Callable[[], bool]) -> None:
    (found,) = Serializer(allowed_types=[("trap", "Trap")]).loads_typed(json_row(2, "trap", "Trap"))
    assert trap()
    assert found.x == 1


FUNCTIONS = [
    *(("os", "system"), ("subprocess", "Popen"), ("builtins", "eval"), ("builtins", "open")),
    *(
        ("socket", "socket"),
        ("importlib", "import_module"),
        ("shutil", "os.system"),
        ("weakref", "finalize"),
    ),
]


@pytest.mark.parametrize("name", FUNCTIONS, ids=".".join)
@pytest.mark.parametrize("code", range(6))
def test_nothing_but_stored_kinds_is_ever_called(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path, code: int, name: tuple[str, str]
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments: Any = {2: {"args": "touch done"}, 1: ["touch done"]}.get(code, "touch done")
    rows = [
        extension(code, [*name, arguments, "__call__"]),
        ("json", json.dumps({"lc": 2, "type": "constructor", "id": name, "args": ["touch done"]}).encode()),
    ]
    for row in rows:
        with pytest.raises(TypeNotAllowedError):
            Serializer().loads_typed(row)
    assert list(tmp_path.iterdir()) == []


def test_pickle_only_by_name() -> None:
    kept = {1: slice(1, 2)}
    row = Serializer(pickle=True).dumps_typed(kept)
    assert row[0] == "pickle"
    assert Serializer(pickle=True).loads_typed(row) == kept
    with pytest.raises(TypeNotAllowedError, match="pickle is off"):
        Serializer().loads_typed(("pickle", pickle.dumps(1)))


def networks(name: str) -> tuple[str, bytes]:
    everything = ormsgpack.Ext(0, ormsgpack.packb(["ipaddress", "IPv4Network", "0.0.0.0/0"]))
    return extension(0, ["builtins", name, everything])


@pytest.mark.parametrize(
    "row",
    [
        *map(networks, ("set", "tuple", "frozenset")),
        extension(0, ["builtins", "bytearray", 10**9]),
        extension(0, ["builtins", "bytes", 10**9]),
        extension(1, ["fractions", "Fraction", ["1E99999999", 1]]),
        extension(64, ["series", "s", ["range", None, [0, 10**9, 1]], ["float64", 1]]),
        extension(6, ["<f8", [10**12], "C", b""]),
        ("bytes:zlib", zlib.compress(bytes(1 << 24))),
    ],
)
def test_a_small_row_never_becomes_a_large_value(row: tuple[str, bytes]) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(UnreadableValueError):
            Serializer(max_bytes=1 << 20).loads_typed(row)
        assert tracemalloc.get_traced_memory()[1] < 1 << 25
    finally:
        tracemalloc.stop()
