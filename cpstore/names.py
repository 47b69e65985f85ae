"""How the tables are named in a database: the schema that they are in, and what their names begin with."""

from __future__ import annotations

import re
from typing import NamedTuple

from cpstore.errors import ConfigurationError

__all__ = ["Names", "names_of"]

_VERSION_TABLE = "cpstore_alembic_version"
_PREFIX = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,29}")
"""With the longest of our names after it, it stays within the 63 bytes of a name on PostgreSQL."""

_SCHEMA_BYTES = 63


class Names(NamedTuple):
    """A schema (None: the connection's own), and a prefix of all that has a name."""

    schema: str | None = None
    prefix: str = ""

    def of(self, name: str) -> str:
        """Give the name that one of our things has in the database."""
        return self.prefix + name

    @property
    def version_table(self) -> str:
        """The table of our own Alembic history, which no application's history meets."""
        return self.of(_VERSION_TABLE)


def names_of(schema: str | None, prefix: str) -> Names:
    """Give the names for what a caller asked for.

    Raises:
        ConfigurationError: They cannot be names.
    """
    if prefix and not _PREFIX.fullmatch(prefix):
        raise ConfigurationError(
            "A prefix has 1 to 30 letters, digits and underscores, and does not begin with a digit;"
            f" not {prefix!r}"
        )
    if schema is not None and not 0 < len(schema.encode(errors="replace")) <= _SCHEMA_BYTES:
        raise ConfigurationError(f"A schema has a name of 1 to {_SCHEMA_BYTES} bytes, not {schema!r}")
    return Names(schema, prefix)
