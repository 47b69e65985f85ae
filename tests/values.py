"""When a value is the same as another: equal, and of the same type all the way down."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
from pydantic import SecretStr


def same(left: Any, right: Any) -> bool:
    """Whether two values cannot be told apart. NaN is NaN, and zeros have signs."""
    if type(left) is not type(right):
        return False
    for kinds, comparison in _COMPARISONS:
        if isinstance(left, kinds):
            return bool(comparison(left, right))
    if dataclasses.is_dataclass(left) or hasattr(type(left), "model_fields"):
        return same(fields_of(left), fields_of(right))
    return bool(left == right)


def fields_of(value: Any) -> dict[str, Any]:
    """The attributes of an object, wherever it has them."""
    names = (
        [each.name for each in dataclasses.fields(value)]
        if dataclasses.is_dataclass(value)
        else list(type(value).model_fields)
    )
    return {name: _shown(getattr(value, name)) for name in names}


def _shown(value: Any) -> Any:
    return value.get_secret_value() if isinstance(value, SecretStr) else value


def _same_array(left: Any, right: Any) -> Any:
    return (
        left.dtype == right.dtype
        and left.shape == right.shape
        and left.flags.f_contiguous == right.flags.f_contiguous
        and left.tobytes() == right.tobytes()
    )


def _same_frame(left: Any, right: Any) -> Any:
    if isinstance(left, pd.Index):
        return left.dtype == right.dtype and left.names == right.names and left.equals(right)
    indexes = same(left.index, right.index)
    if isinstance(left, pd.Series):
        return indexes and left.dtype == right.dtype and left.name == right.name and left.equals(right)
    return indexes and left.dtypes.equals(right.dtypes) and left.equals(right)


def _same_dict(left: dict[Any, Any], right: dict[Any, Any]) -> bool:
    if getattr(left, "default_factory", None) is not getattr(right, "default_factory", None):
        return False
    pairs = zip(left.items(), right.items(), strict=False)
    return len(left) == len(right) and all(same(one, other) for one, other in pairs)


def _same_sequence(left: Any, right: Any) -> bool:
    if getattr(left, "maxlen", None) != getattr(right, "maxlen", None):
        return False
    return len(left) == len(right) and all(map(same, left, right))


def _same_set(left: Any, right: Any) -> bool:
    return len(left) == len(right) and all(any(same(item, other) for other in right) for item in left)


_COMPARISONS: tuple[tuple[Any, Callable[[Any, Any], Any]], ...] = (
    ((np.ndarray, np.generic), lambda left, right: _same_array(np.asarray(left), np.asarray(right))),
    ((pd.DataFrame, pd.Series, pd.Index), _same_frame),
    (float, lambda left, right: repr(left) == repr(right)),
    (complex, lambda left, right: repr(left) == repr(right)),
    (Decimal, lambda left, right: left.as_tuple() == right.as_tuple()),
    (dict, _same_dict),
    ((list, tuple, collections.deque), _same_sequence),
    ((set, frozenset), _same_set),
)
"""How values of some kinds are compared; the first that fits."""
