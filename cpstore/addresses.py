"""Configs, identifiers and channel versions: what names a row."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig

from cpstore.errors import InvalidConfigError
from cpstore.records import Address, Key

__all__ = [
    "BYTES",
    "address_of",
    "config_of",
    "configurable_of",
    "copied",
    "identifier",
    "key_of",
    "next_version",
    "optional_identifier",
    "thread_ids",
    "version_order",
]

BYTES: Mapping[str, int] = {
    "thread_id": 512,
    "checkpoint_ns": 1024,
    "checkpoint_id": 256,
    "task_id": 256,
    "channel": 512,
    "version": 256,
}
"""The longest text of each identifier, in bytes of UTF-8. The primary keys made of them fit the 2704 bytes
that a PostgreSQL index row has (its manual, "B-Tree Indexes: Implementation")."""


def identifier(name: str, value: Any) -> str:
    """Give an identifier as its text. Numbers and UUIDs are taken as theirs.

    Raises:
        InvalidConfigError: It has a NUL or a lone surrogate, which PostgreSQL cannot store, or is too long.
    """
    text = value if type(value) is str else str(value)
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise InvalidConfigError(f"{name} has a lone surrogate, which is no Unicode text: {text!a}") from None
    if "\0" in text:
        raise InvalidConfigError(f"{name} has a NUL character, which PostgreSQL cannot store: {text!a}")
    if size > BYTES[name]:
        raise InvalidConfigError(f"{name} has {size} bytes; at most {BYTES[name]} fit its index")
    return text


def thread_ids(values: Sequence[Any]) -> list[str]:
    """Give ids of threads as their texts, each once.

    Raises:
        TypeError: It is one text, whose letters would be taken for ids.
        InvalidConfigError: As :func:`identifier`.
    """
    if isinstance(values, (str, bytes)):
        raise TypeError("thread_ids must be a sequence of ids, not one text")
    return list(dict.fromkeys(identifier("thread_id", value) for value in values))


def copied(source: Any, target: Any, checkpoint_id: Any) -> tuple[str, str, str | None]:
    """Give the ids of what `copy_thread` copies, and to where."""
    return (
        identifier("thread_id", source),
        identifier("thread_id", target),
        None if checkpoint_id is None else identifier("checkpoint_id", checkpoint_id),
    )


def configurable_of(config: RunnableConfig | None) -> Mapping[str, Any]:
    """Give the `configurable` part of a config, empty if there is none."""
    return (config or {}).get("configurable") or {}


def optional_identifier(configurable: Mapping[str, Any], name: str) -> str | None:
    """Give an identifier of a config; None if it is absent, None or empty."""
    value = configurable.get(name)
    return None if value is None or value == "" else identifier(name, value)


def address_of(config: RunnableConfig) -> Address:
    """Give the address in a config. An absent `checkpoint_ns` is the root graph's, `""`.

    Raises:
        InvalidConfigError: There is no `thread_id`, or an identifier cannot be stored.
    """
    configurable = configurable_of(config)
    if configurable.get("thread_id") is None:
        raise InvalidConfigError('The config has no thread_id: pass {"configurable": {"thread_id": "…"}}')
    return Address(
        identifier("thread_id", configurable["thread_id"]),
        identifier("checkpoint_ns", configurable.get("checkpoint_ns") or ""),
        optional_identifier(configurable, "checkpoint_id"),
    )


def key_of(config: RunnableConfig) -> Key:
    """Give the address in a config that must name one checkpoint.

    Raises:
        InvalidConfigError: As :func:`address_of`, or there is no `checkpoint_id`.
    """
    address = address_of(config)
    if address.checkpoint_id is None:
        raise InvalidConfigError("The config has no checkpoint_id: writes belong to one checkpoint")
    return Key(address.thread_id, address.checkpoint_ns, address.checkpoint_id)


def config_of(key: Key) -> RunnableConfig:
    """Give the config that names one checkpoint: exactly its three keys."""
    return {"configurable": key._asdict()}


def next_version(current: Any) -> str:
    """Give the version after `current` (None, a number, or text that begins with one), as `{n:032}.{random}`.

    The random part keeps two forks, which count on from the same number, from sharing a blob; it does not
    depend on the `random` module, which applications seed.
    """
    number = 0 if current is None else int(str(current).partition(".")[0])
    return f"{number + 1:032}.{secrets.randbits(64):020}"


def version_order(version: Any) -> tuple[int, str]:
    """Give a sort key for versions that may be numbers and text in one checkpoint."""
    number = str(version).partition(".")[0]
    return (int(number) if number.isdecimal() else 0, str(version))
