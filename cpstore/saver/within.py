"""A saver in a transaction of the application, for as long as a block lasts."""

from __future__ import annotations

import copy
from typing import Generic, TypeVar

from cpstore.doors import Door
from cpstore.saver.connected import Connected

__all__ = ["Within"]

Saver = TypeVar("Saver", bound=Connected)


class Within(Generic[Saver]):
    """What `with` and `async with` take: they give a saver that ends with the block.

    Args:
        saver: The saver whose serializer and options are used.
        door: The door to the transaction.
    """

    def __init__(self, saver: Saver, door: Door) -> None:
        self._door = door
        self._saver = copy.copy(saver)
        self._saver._door = door
        self._saver._owns_engines = False

    def __enter__(self) -> Saver:
        return self._saver

    def __exit__(self, *exc_info: object) -> None:
        self._door.close()

    async def __aenter__(self) -> Saver:
        return self._saver

    async def __aexit__(self, *exc_info: object) -> None:
        await self._door.aclose()
