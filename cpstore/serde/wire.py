"""The form of encoded values: MessagePack with the extension types of langgraph-checkpoint, and one of ours.

Everything that langgraph-checkpoint's own serializer keeps right is written in its form, so that either reads
what the other wrote. Types that it does not know are written as calls of constructors where it can rebuild
them (a tuple, a big int), and else under :data:`OWN`, a list of a kind and what that kind needs.
"""

from __future__ import annotations

import ormsgpack

__all__ = [
    "DELTA_SNAPSHOT",
    "FIELDS",
    "KEYWORDS",
    "METHOD",
    "NUMPY_ARRAY",
    "OWN",
    "PACK",
    "POSITIONAL",
    "PYDANTIC_V1",
    "PYDANTIC_V2",
    "SINGLE",
    "UNPACK",
]

SINGLE, POSITIONAL, KEYWORDS, METHOD, PYDANTIC_V1, PYDANTIC_V2, NUMPY_ARRAY, DELTA_SNAPSHOT = range(8)
"""Extension types of langgraph-checkpoint: (module, name, what the constructor is called with)."""

FIELDS = -1
"""Not stored: stands for `PYDANTIC_V2` with the fields as they were, not as `model_dump` gives them."""

OWN = 64
"""Our extension type: [kind, …]."""

PACK = (
    ormsgpack.OPT_PASSTHROUGH_BIG_INT
    | ormsgpack.OPT_PASSTHROUGH_DATACLASS
    | ormsgpack.OPT_PASSTHROUGH_DATETIME
    | ormsgpack.OPT_PASSTHROUGH_ENUM
    | ormsgpack.OPT_PASSTHROUGH_SUBCLASS
    | ormsgpack.OPT_PASSTHROUGH_TUPLE
    | ormsgpack.OPT_PASSTHROUGH_UUID
)
UNPACK = ormsgpack.OPT_NON_STR_KEYS
