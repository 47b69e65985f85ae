"""Values replaced by what they are: so that a conversation can be shown to somebody who may not read it."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, cast

from langgraph.checkpoint.base import Checkpoint, CheckpointMetadata, CheckpointTuple

from cpstore.serde import PlainObject, UnreadValue

__all__ = ["Redaction"]

_KEPT = {"source", "step", "parents"}
"""What LangGraph itself says in metadata."""

_LEVELS = 150
_MARK_BYTES = 3


class Redaction:
    """Replaces each text, number and key by its kind, its length and a mark.

    Equal values have equal marks, so what changed is still seen. The marks are made with a key that is
    forgotten with this object: a value cannot be found by trying others. Names of channels, nodes, classes
    and of their fields stay, and so do ids of checkpoints and tasks.
    """

    def __init__(self) -> None:
        self._key = secrets.token_bytes(16)

    def text(self, text: str) -> str:
        """Give what stands for a text."""
        return self._marked(f"{len(text)} characters", text)

    def checkpoint(self, found: CheckpointTuple) -> CheckpointTuple:
        """Give a checkpoint that was read by the plain serializer with all its values replaced."""
        checkpoint, metadata = (
            cast("dict[str, Any]", found.checkpoint),
            cast("dict[str, Any]", found.metadata),
        )
        values = {name: self.value(value) for name, value in checkpoint["channel_values"].items()}
        kept = {name: value if name in _KEPT else self.value(value) for name, value in metadata.items()}
        return found._replace(
            checkpoint=cast("Checkpoint", {**checkpoint, "channel_values": values}),
            metadata=cast("CheckpointMetadata", kept),
            pending_writes=[
                (task, channel, self.value(value)) for task, channel, value in found.pending_writes or ()
            ],
        )

    def value(self, value: Any, levels: int = _LEVELS) -> Any:
        """Give what stands for a value; lists, dicts and objects keep their shape."""
        if value is None or isinstance(value, UnreadValue):
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, (bytes, bytearray)):
            return self._marked(f"{len(value)} bytes", value.hex())
        if isinstance(value, (bool, int, float)):
            return self._marked("true or false" if isinstance(value, bool) else "a number", repr(value))
        if levels == 0:
            return UnreadValue("nested too deeply", "", 0)
        return self._container(value, levels - 1)

    def _container(self, value: Any, levels: int) -> Any:
        if isinstance(value, PlainObject):
            fields = {name: self.value(each, levels) for name, each in value.fields.items()}
            return PlainObject(value.type, fields)
        if isinstance(value, Mapping):
            return {self._name(key): self.value(each, levels) for key, each in value.items()}
        if isinstance(value, (list, tuple, set, frozenset)):
            return [self.value(each, levels) for each in value]
        return self._marked("a value", repr(value))

    def _name(self, key: Any) -> str:
        return self.text(key) if isinstance(key, str) else self._marked("a key", repr(key))

    def _marked(self, told: str, content: str) -> str:
        data = content.encode(errors="surrogatepass")
        return f"[{told} #{blake2b(data, key=self._key, digest_size=_MARK_BYTES).hexdigest()}]"
