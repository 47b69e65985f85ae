"""numpy and pandas, where they are loaded: nobody has one of their objects otherwise."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from cpstore.serde import wire

__all__ = ["KINDS", "decode", "encoder_for", "read_array"]

Encode = Callable[[Any], tuple[int, Any]]

KINDS = {
    "array": ("numpy", "ndarray"),
    "frame": ("pandas", "DataFrame"),
    "index": ("pandas", "Index"),
    "scalar": ("numpy", "generic"),
    "series": ("pandas", "Series"),
    "timedelta": ("pandas", "Timedelta"),
    "timestamp": ("pandas", "Timestamp"),
}
"""What is stored under our own extension type, and the class that it is of."""


def encoder_for(value: Any) -> Encode | None:
    """Give the function that takes such an object apart; None for any other object.

    Raises:
        TypeError: It is an array of Python objects, or of a class of its own.
    """
    numpy, pandas = sys.modules.get("numpy"), sys.modules.get("pandas")
    if numpy is not None and isinstance(value, numpy.ndarray):
        return _array
    if numpy is not None and isinstance(value, numpy.generic):
        return _scalar
    if pandas is not None and isinstance(value, _pandas_kinds(pandas)):
        return _pandas
    return None


def _pandas_kinds(pandas: Any) -> tuple[type, ...]:
    return (pandas.DataFrame, pandas.Series, pandas.Index, pandas.Timestamp, pandas.Timedelta)


def _array(array: Any) -> tuple[int, Any]:
    import numpy as np

    if type(array) is not np.ndarray:
        raise TypeError(f"{type(array).__name__} is a subclass of numpy's array: store numpy.asarray of it")
    if array.dtype.hasobject:
        raise TypeError("A numpy array of Python objects cannot be stored: store a list")
    order = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
    content = [list(array.shape), order, array.tobytes(order=order)]  # type: ignore[arg-type]
    if array.dtype.names is None and array.dtype.subdtype is None:
        return wire.NUMPY_ARRAY, [array.dtype.str, *content]
    return wire.OWN, ["array", _described(array.dtype), *content]


def _scalar(scalar: Any) -> tuple[int, Any]:
    if scalar.dtype.kind in "biuf" and scalar.dtype.itemsize <= 8:
        return wire.SINGLE, ["numpy", type(scalar).__name__, scalar.item()]
    if scalar.dtype.hasobject:
        raise TypeError("A numpy scalar that holds Python objects cannot be stored")
    return wire.OWN, ["scalar", _described(scalar.dtype), scalar.tobytes()]


def _described(dtype: Any) -> Any:
    import numpy as np

    return _as_lists(np.lib.format.dtype_to_descr(dtype))


def _as_lists(description: Any) -> Any:
    if isinstance(description, (list, tuple)):
        return [_as_lists(part) for part in description]
    return description


def _dtype(description: Any) -> Any:
    import numpy as np

    if isinstance(description, str):
        dtype = np.dtype(description)
    else:
        dtype = np.dtype([_field(*part) for part in description])
    if dtype.hasobject:
        raise ValueError("an array of Python objects is never stored")
    return dtype


def _field(name: Any, description: Any, shape: Any = None) -> tuple[Any, ...]:
    field = (tuple(name) if isinstance(name, list) else name, _dtype(description))
    return field if shape is None else (*field, tuple(shape))


def read_array(description: Any, shape: Any, order: Any, content: bytes) -> Any:
    """Give the array that was stored, writable as it was."""
    import numpy as np

    array = np.frombuffer(bytearray(content), dtype=_dtype(description))
    return array.reshape(tuple(shape), order=order)


def _pandas(value: Any) -> tuple[int, Any]:
    import pandas as pd

    if isinstance(value, pd.DataFrame):
        columns = [_column(value.iloc[:, position]) for position in range(value.shape[1])]
        return wire.OWN, ["frame", _index(value.columns), _index(value.index), columns]
    if isinstance(value, pd.Series):
        return wire.OWN, ["series", value.name, _index(value.index), _column(value)]
    if isinstance(value, pd.Index):
        return wire.OWN, ["index", *_index(value)]
    name = "timestamp" if isinstance(value, pd.Timestamp) else "timedelta"
    zone = str(value.tz) if name == "timestamp" and value.tz is not None else None
    return wire.OWN, [name, value.value, value.unit, zone]


def _column(values: Any) -> list[Any]:
    """Give a column's values: as an array, or, if numpy has no type for them, one by one."""
    import numpy as np

    if isinstance(values.dtype, np.dtype) and not values.dtype.hasobject:
        return [None, values.to_numpy()]
    return [str(values.dtype), values.astype(object).where(values.notna(), None).tolist()]


def _index(index: Any) -> list[Any]:
    import pandas as pd

    if isinstance(index, pd.MultiIndex):
        return ["multi", list(index.names), [list(row) for row in index.tolist()]]
    if isinstance(index, pd.RangeIndex):
        return ["range", index.name, [index.start, index.stop, index.step]]
    return ["plain", index.name, _column(index.to_series())]


def decode(kind: str, content: list[Any]) -> Any:
    """Give what was stored under one of the kinds of this module."""
    return _DECODERS[kind](*content)


def _read_scalar(description: Any, content: bytes) -> Any:
    import numpy as np

    return np.frombuffer(content, dtype=_dtype(description))[0]


def _read_frame(columns: list[Any], index: list[Any], content: list[Any]) -> Any:
    import pandas as pd

    rows = _read_index(*index)
    series = [_read_column(column[0], column[1], rows) for column in content]
    frame = pd.concat(series, axis=1) if series else pd.DataFrame(index=rows)
    frame.columns = _read_index(*columns)
    return frame


def _read_series(name: Any, index: list[Any], content: list[Any]) -> Any:
    return _read_column(content[0], content[1], _read_index(*index)).rename(name)


def _read_column(dtype: str | None, values: Any, index: Any) -> Any:
    import pandas as pd

    if not hasattr(values, "__len__") or isinstance(values, dict) or len(values) != len(index):
        raise ValueError("not one value for each row")  # pandas would repeat one for all rows
    return pd.Series(values, index=index, dtype=dtype)


def _read_index(kind: str, name: Any, content: Any) -> Any:
    import pandas as pd

    if kind == "multi":
        return pd.MultiIndex.from_tuples([tuple(row) for row in content], names=name)
    if kind == "range":
        return pd.RangeIndex(*content, name=name)
    return pd.Index(content[1], dtype=content[0], name=name)


def _read_timestamp(value: int, unit: str, zone: str | None) -> Any:
    import pandas as pd

    stamp = pd.Timestamp(value, unit="ns", tz="UTC" if zone else None).as_unit(unit)
    return stamp.tz_convert(zone) if zone else stamp


def _read_timedelta(value: int, unit: str, _zone: None) -> Any:
    import pandas as pd

    return pd.Timedelta(value, unit="ns").as_unit(unit)


_DECODERS: dict[str, Callable[..., Any]] = {
    "array": read_array,
    "frame": _read_frame,
    "index": _read_index,
    "scalar": _read_scalar,
    "series": _read_series,
    "timedelta": _read_timedelta,
    "timestamp": _read_timestamp,
}
