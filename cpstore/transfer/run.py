"""A whole transfer: what is moved, from where to where, thread by thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from langgraph.checkpoint.serde.base import SerializerProtocol

from cpstore import foreign, ops, places
from cpstore.dialects import Mode
from cpstore.doors import Door
from cpstore.errors import (
    CpstoreError,
    OtherHistoryError,
    SameDatabaseError,
    TransferIncompleteError,
    UnknownSourceError,
    UnknownThreadError,
)
from cpstore.migrations import explain
from cpstore.models import Models
from cpstore.ops import Unit
from cpstore.transfer.amounts import Meter, Progress, Transferred
from cpstore.transfer.sqlite_saver import SqliteSaverTransfer
from cpstore.transfer.steps import Steps, call
from cpstore.transfer.thread import ThreadTransfer

__all__ = ["Run"]

_THREADS = 500
"""So many ids of threads are read at a time."""


_refusal: Unit[[Models], CpstoreError | None] = Unit(
    Mode.READ, lambda connection, _, models: explain(connection, models)
)
"""Gives the error that says why rows cannot be stored; None if they can."""


@dataclass
class Run:
    """One transfer.

    Attributes:
        source: The door to read through.
        target: The door to write through.
        thread_ids: Only these threads; None: all.
        serde: What opens and seals values.
        on_progress: What is told how far it is.
        total: What was written.
        refused: Threads that the target has a history of its own of.
        differing: Threads that have another number of rows than were read.
    """

    source: Door
    target: Door
    thread_ids: Sequence[str] | None
    serde: SerializerProtocol | None
    on_progress: Callable[[Progress], None] | None
    total: Transferred = field(default_factory=Transferred)
    refused: list[str] = field(default_factory=list)
    differing: list[str] = field(default_factory=list)
    _is_sqlite_saver: bool = False

    def steps(self) -> Steps[Transferred]:
        """Transfer the threads; what went wrong with single ones is told at the end."""
        yield from self._recognise()
        yield from self._check_target()
        meter = Meter((yield from self._rows()), self.on_progress)
        if self.thread_ids is None:
            yield from self._all_threads(meter)
        else:
            yield from self._some_threads(self.thread_ids, meter)
        if self.refused:
            raise OtherHistoryError(self.refused)
        if self.differing:
            raise TransferIncompleteError(self.differing)
        return self.total

    def _recognise(self) -> Steps[None]:
        """Find out which saver made the source."""
        if not (yield from call(self.source, ops.lacks_tables)):
            return
        columns = yield from call(self.source, ops.columns, foreign.NAMES)
        tables = foreign.sqlite_saver_tables(columns)
        if tables is None or self.source.models.tables.checkpoints.name not in foreign.NAMES:
            raise UnknownSourceError
        self.source = self.source.on(tables)
        self._is_sqlite_saver = True

    def _check_target(self) -> Steps[None]:
        refusal = yield from call(self.target, _refusal, self.target.models)
        if refusal is not None:
            raise refusal
        here = yield from call(self.source, ops.identity)
        if here is not None and here == (yield from call(self.target, ops.identity)):
            raise SameDatabaseError

    def _rows(self) -> Steps[int]:
        """Count what there is to transfer."""
        total = 0
        for thread_id in [None] if self.thread_ids is None else self.thread_ids:
            counts = yield from call(self.source, ops.row_counts, thread_id)
            if thread_id is not None and not any(counts.values()):
                raise UnknownThreadError(f"The source has no thread {thread_id!r}. Nothing was transferred.")
            total += sum(counts.values()) - (counts["blobs"] if self._is_sqlite_saver else 0)
        return total

    def _all_threads(self, meter: Meter) -> Steps[None]:
        after: str | None = None
        full = True
        while full:
            found = yield from call(self.source, ops.all_thread_ids, after, _THREADS)
            yield from self._some_threads(found, meter)
            full = len(found) == _THREADS
            after = found[-1] if found else None

    def _some_threads(self, thread_ids: Sequence[str], meter: Meter) -> Steps[None]:
        for thread_id in thread_ids:
            one = self._transfer(thread_id, meter)
            if not (yield from one.steps()):
                self.refused.append(thread_id)
            elif (yield from one.differs()):
                self.differing.append(thread_id)
            self.total += one.written

    def _transfer(self, thread_id: str, meter: Meter) -> ThreadTransfer:
        rebinder = places.rebinder_for(self.serde)
        if self._is_sqlite_saver:
            return SqliteSaverTransfer(self.serde, self.source, self.target, thread_id, rebinder, meter)
        return ThreadTransfer(self.source, self.target, thread_id, rebinder, meter)
