"""What a metadata filter means: JSON containment, as PostgreSQL's `@>` defines it.

Source of the rule: the PostgreSQL manual, "jsonb Containment and Existence". PostgreSQL decides it itself;
for databases that have no such operator, this is the same rule in Python.
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

__all__ = ["contains", "matches"]


def matches(document: str, pattern: str) -> bool:
    """Tell whether the JSON text `document` contains the JSON text `pattern`; a damaged one contains nothing.

    Numbers are compared as the decimals that stand there, as JSONB has them.
    """
    try:
        parsed = json.loads(document, parse_float=Decimal)
    except (ValueError, RecursionError):
        return False
    return contains(parsed, json.loads(pattern, parse_float=Decimal))


def contains(document: Any, pattern: Any) -> bool:
    """Tell whether the JSON value `document` contains the JSON value `pattern`.

    An object contains a pattern object if each of its keys is there with a value that contains the pattern's;
    a list contains a pattern list if each item of it is contained in some item. Anything else must be equal:
    1 equals 1.0, `True` is no number, and `None` is only a null that is there.
    """
    if isinstance(pattern, dict):
        return isinstance(document, dict) and all(
            key in document and contains(document[key], value) for key, value in pattern.items()
        )
    if isinstance(pattern, list):
        return isinstance(document, list) and all(
            any(contains(item, wanted) for item in document) for wanted in pattern
        )
    return _equal(document, pattern)


def _equal(value: Any, pattern: Any) -> bool:
    if isinstance(value, bool) or isinstance(pattern, bool):
        return value is pattern
    return not isinstance(value, (dict, list)) and bool(value == pattern)
