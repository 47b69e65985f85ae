"""A checkpointer for LangGraph Server, configured by the environment.

In `langgraph.json`::

    {"checkpointer": {"path": "cpstore.server.checkpointer"}}

The server calls :func:`checkpointer` once for each of its event loops, and leaves it when it stops.

============================ ===================================================================
`CPSTORE_DATABASE_URL`       The database; required.
`CPSTORE_SCHEMA`             The schema of the tables.
`CPSTORE_PREFIX`             What the names of the tables begin with.
`CPSTORE_SETUP`              `off`: the tables are migrated elsewhere, as by `cpstore db upgrade`.
`CPSTORE_ENGINE_OPTIONS`     A JSON object of options of SQLAlchemy's `create_engine`.
============================ ===================================================================
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from cpstore.errors import ConfigurationError
from cpstore.saver import SQLAlchemySaver

__all__ = ["Settings", "checkpointer"]

_ON = {"on", "1", "true", "yes"}
_OFF = {"off", "0", "false", "no"}


@dataclass(frozen=True)
class Settings:
    """What the environment says of the checkpointer.

    Attributes:
        url: The database URL, as for `SQLAlchemySaver.from_url`.
        setup: Whether the database is migrated when the server starts.
        options: All other arguments of `SQLAlchemySaver.from_url`.
    """

    url: str = field(repr=False)
    setup: bool = True
    options: dict[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Settings:
        """Read the settings, from this process's environment if no other is given.

        Raises:
            ConfigurationError: The URL is missing, or a variable does not say what it may say.
        """
        given = os.environ if environment is None else environment
        url = given.get("CPSTORE_DATABASE_URL", "").strip()
        if not url:
            raise ConfigurationError(
                "CPSTORE_DATABASE_URL is not set. The checkpointer of LangGraph Server needs a database, "
                "such as postgresql://user@host/name or sqlite:///chat.db"
            )
        return cls(url, _switch(given, "CPSTORE_SETUP"), _options(given))

    def saver(self) -> SQLAlchemySaver:
        """Make a saver with engines of its own.

        Raises:
            ConfigurationError: As `SQLAlchemySaver.from_url`.
        """
        return SQLAlchemySaver.from_url(self.url, **self.options)


@asynccontextmanager
async def checkpointer() -> AsyncIterator[SQLAlchemySaver]:
    """Open a saver, migrate its database, and dispose its engines at the end.

    Raises:
        ConfigurationError: As :meth:`Settings.from_environment` and `SQLAlchemySaver.from_url`.
    """
    settings = Settings.from_environment()
    # In a thread: drivers are imported here, and the server lets nothing on its event loop read files.
    saver = await asyncio.to_thread(settings.saver)
    async with saver:
        if settings.setup:
            await saver.asetup()
        yield saver


def _switch(environment: Mapping[str, str], name: str) -> bool:
    word = environment.get(name, "on").strip().lower()
    if word not in _ON | _OFF:
        raise ConfigurationError(f"{name} says neither on nor off")
    return word in _ON


def _options(environment: Mapping[str, str]) -> dict[str, Any]:
    """Give the arguments of `from_url` beside the URL: each variable that becomes one is read here."""
    try:
        options = json.loads(environment.get("CPSTORE_ENGINE_OPTIONS", "{}"))
    except json.JSONDecodeError as error:
        # Without the error: its message shows the text, which may hold a password.
        raise ConfigurationError(f"CPSTORE_ENGINE_OPTIONS is no JSON, at character {error.pos}") from None
    if not isinstance(options, dict):
        raise ConfigurationError("CPSTORE_ENGINE_OPTIONS is no JSON object")
    place = {"schema": environment.get("CPSTORE_SCHEMA"), "prefix": environment.get("CPSTORE_PREFIX")}
    return options | {name: value for name, value in place.items() if value}
