"""Encryption of values with AES-GCM, each bound to its place."""

from __future__ import annotations

import copy
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

from langgraph.checkpoint.serde.base import SerializerProtocol
from typing_extensions import Self

from cpstore.errors import ConfigurationError, MissingDriverError, UnreadableValueError
from cpstore.pieces import anonymous
from cpstore.serde.classes import TypeName
from cpstore.serde.serializer import Serializer

__all__ = ["AESGCMSerializer"]

_NONCE_BYTES = 12
_KEY_ID = re.compile(r"[A-Za-z0-9_-]{1,32}")
_CIPHER = "+aesgcm."


class AESGCMSerializer(SerializerProtocol):
    """Encrypts what another serializer encoded.

    The cipher authenticates the value, its type, and its place: thread, namespace, and channel and version,
    or checkpoint, task and position. A row that was changed or moved is refused. The type says which key was
    used, so that keys can be rotated: give the old ones too, and rows stay readable.

    With it nothing is inlined, and metadata holds only LangGraph's own keys and those that `metadata_keys`
    of the saver names. Names of threads, namespaces, channels, nodes and tasks stay readable.

    Args:
        keys: Keys of 16, 24 or 32 bytes by their id. The last one encrypts.
        serde: The serializer of values; by default :class:`Serializer`.
        plain_rows: Read rows that are not encrypted, too: only while a database is being moved to encryption.

    Raises:
        ConfigurationError: There is no key, or one has another length, or an id that cannot be stored.
        MissingDriverError: The package `cryptography` is missing; the extra `crypto` brings it.
    """

    def __init__(
        self,
        keys: Mapping[str, bytes],
        *,
        serde: SerializerProtocol | None = None,
        plain_rows: bool = False,
    ) -> None:
        self.serde = Serializer() if serde is None else serde
        self._ciphers = {key_id: _cipher(key_id, key) for key_id, key in keys.items()}
        if not self._ciphers:
            raise ConfigurationError("Give at least one key")
        self._current = next(reversed(self._ciphers))
        self._plain_rows = plain_rows

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Encrypt a value that is bound to no place."""
        return self.dumps_at(obj, b"")

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Decrypt a value that is bound to no place."""
        return self.loads_at(data, b"")

    def dumps_at(self, obj: Any, place: bytes) -> tuple[str, bytes]:
        """Encrypt a value and bind it to a place."""
        return self._seal(*self.serde.dumps_typed(obj), place)

    def loads_at(self, data: tuple[str, bytes], place: bytes) -> Any:
        """Decrypt a value that must be bound to this place.

        Raises:
            UnreadableValueError: It is not encrypted, was changed, belongs elsewhere, or its key is missing.
        """
        return self.serde.loads_typed(self._open(*data, place))

    def rebind(self, data: tuple[str, bytes], old: bytes, new: bytes) -> tuple[str, bytes]:
        """Bind an encrypted value to another place, with the current key, without decoding it."""
        return self._seal(*self._open(*data, old), new)

    def open_at(self, data: tuple[str, bytes], place: bytes) -> tuple[str, bytes]:
        """Decrypt a value that must be bound to this place, without decoding it.

        Raises:
            UnreadableValueError: As :meth:`loads_at`.
        """
        return self._open(*data, place)

    def loads_opened(self, data: tuple[str, bytes]) -> Any:
        """Decode a value that :meth:`open_at` gave, or several of its values put together."""
        return self.serde.loads_typed(data)

    def with_msgpack_allowlist(self, extra_allowlist: Iterable[TypeName | type]) -> Self:
        """Give a serializer whose values may be of more types."""
        allow = getattr(self.serde, "with_msgpack_allowlist", None)
        clone = copy.copy(self)
        clone.serde = self.serde if allow is None else allow(extra_allowlist)
        return clone

    def _seal(self, kind: str, data: bytes, place: bytes) -> tuple[str, bytes]:
        kind = anonymous(kind)
        nonce = os.urandom(_NONCE_BYTES)
        sealed = self._ciphers[self._current].encrypt(nonce, data, _bound_to(kind, place))
        return f"{kind}{_CIPHER}{self._current}", nonce + sealed

    def _open(self, kind: str, data: bytes, place: bytes) -> tuple[str, bytes]:
        kind, cipher, key_id = kind.partition(_CIPHER)
        if not cipher:
            if self._plain_rows:
                return kind, data
            raise UnreadableValueError("The value is not encrypted, and plain_rows is off")
        if key_id not in self._ciphers:
            raise UnreadableValueError(f"The key {key_id!r} is missing: give the serializer the old keys too")
        return kind, self._decrypted(key_id, data, _bound_to(kind, place))

    def _decrypted(self, key_id: str, data: bytes, bound_to: bytes) -> bytes:
        from cryptography.exceptions import InvalidTag

        nonce, sealed = data[:_NONCE_BYTES], data[_NONCE_BYTES:]
        try:
            return bytes(self._ciphers[key_id].decrypt(nonce, sealed, bound_to))
        except (InvalidTag, ValueError):
            raise UnreadableValueError("The value was changed, or belongs to another place or key") from None


def _bound_to(kind: str, place: bytes) -> bytes:
    return b"\0".join((b"cpstore", kind.encode(), place))


def _cipher(key_id: str, key: bytes) -> Any:
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError as error:
        raise MissingDriverError("Encryption needs cryptography: pip install 'cpstore[crypto]'") from error
    if not _KEY_ID.fullmatch(key_id):
        raise ConfigurationError("The id of a key has 1 to 32 letters, digits, hyphens and underscores")
    if len(key) not in (16, 24, 32):
        raise ConfigurationError(f"The key {key_id!r} has {len(key)} bytes; AES takes 16, 24 or 32")
    return AESGCM(key)
