"""Values to bytes and back. Pure: no database is known here."""

from __future__ import annotations

from cpstore.serde.encryption import AESGCMSerializer
from cpstore.serde.kinds import Codec
from cpstore.serde.serializer import Serializer

__all__ = ["AESGCMSerializer", "Codec", "Serializer"]
