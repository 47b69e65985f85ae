"""Values to bytes and back. Pure: no database is known here."""

from __future__ import annotations

from cpstore.serde.encryption import AESGCMSerializer
from cpstore.serde.kinds import Codec
from cpstore.serde.plain import PlainSerializer
from cpstore.serde.serializer import Serializer
from cpstore.serde.shapes import PlainObject, UnreadValue, document

__all__ = [
    "AESGCMSerializer",
    "Codec",
    "PlainObject",
    "PlainSerializer",
    "Serializer",
    "UnreadValue",
    "document",
]
