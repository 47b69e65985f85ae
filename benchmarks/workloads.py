"""What is saved: the same for every contender, and the same in every run.

A workload is a list of steps, one for each super-step of a graph. Nothing in it depends on the clock or on
chance, except by `SEED`.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata

SEED = 20_260_101

WORDS = """
the a of in to and is was for that it on as with be by at this from or have an they which one you were
all her she there would their we him been has when who will no more if out so what up said about than
table train harbour window river market answer letter garden silver mountain evening breakfast ticket
""".split()  # noqa: SIM905 - one word on each line would fill a page

MICROSECONDS_OF_A_STEP = 50_000
FIRST_ID = 0x1F1_0000_0000_0000
"""A time in February 2026, in the 100 nanoseconds since 1582 that ids of checkpoints count."""


@dataclass(frozen=True)
class Step:
    """What LangGraph gives a saver in one super-step: one `put`, one `put_writes`."""

    checkpoint: Checkpoint
    metadata: CheckpointMetadata
    new_versions: ChannelVersions
    writes: list[tuple[str, Any]]
    task_id: str


Workload = Callable[[int], list[Step]]
"""Gives the first steps of a thread."""


def checkpoint_id(number: int) -> str:
    """An id as LangGraph makes them (UUID 6): later ones are greater."""
    time = FIRST_ID + number * MICROSECONDS_OF_A_STEP * 10
    bits = (time >> 12) << 80 | 6 << 76 | (time & 0xFFF) << 64 | 0b10 << 62 | number
    return str(UUID(int=bits))


def task_id(number: int) -> str:
    """An id of a task, of the form that LangGraph gives it."""
    return str(UUID(int=random.Random(SEED + number).getrandbits(128)))  # noqa: S311


def version(number: int) -> str:
    """A channel's version as the savers count them."""
    return f"{number:032}.{random.Random(number).random():.16f}"  # noqa: S311


def text(characters: int, seed: int) -> str:
    """Words of a language, which compress as such."""
    chance = random.Random(SEED * 1_000_003 + seed)  # noqa: S311
    words: list[str] = []
    left = characters
    while left > 0:
        words.append(chance.choice(WORDS))
        left -= len(words[-1]) + 1
    return " ".join(words)[:characters].ljust(characters, ".")


def message(number: int, characters: int) -> HumanMessage | AIMessage:
    """A message of a chat in which a human and a model take turns."""
    content = text(characters, number)
    if number % 2 == 0:
        return HumanMessage(content, id=f"human-{number}")
    usage = {"input_tokens": 400 + number, "output_tokens": characters // 4}
    total = usage["input_tokens"] + usage["output_tokens"]
    return AIMessage(content, id=f"model-{number}", usage_metadata={**usage, "total_tokens": total})


def messages(count: int, characters: Callable[[int], int]) -> list[HumanMessage | AIMessage]:
    """The first messages of a chat, each of so many characters as its number says."""
    return [message(number, characters(number)) for number in range(count)]


class Thread:
    """Counts the versions of a thread's channels, and makes its steps."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.versions: dict[str, str] = {}
        self.steps: list[Step] = []

    def step(self, changed: dict[str, Any], writes: list[tuple[str, Any]]) -> None:
        """A super-step that changed some channels."""
        number = len(self.steps)
        new = dict.fromkeys(changed, version(number + 1))
        self.values, self.versions = self.values | changed, self.versions | new
        metadata: CheckpointMetadata = {"source": "loop", "step": number, "parents": {}}
        made = self.checkpoint(number, list(changed))
        self.steps.append(Step(made, metadata, {**new}, writes, task_id(number)))

    def checkpoint(self, number: int, changed: list[str]) -> Checkpoint:
        """The checkpoint after the newest step."""
        return {
            "v": 4,
            "id": checkpoint_id(number),
            "ts": f"2026-02-{1 + number // 1440 % 28:02}T{number // 60 % 24:02}:{number % 60:02}:00+00:00",
            "channel_values": self.values,
            "channel_versions": dict(self.versions),
            "versions_seen": {"__input__": {}, "agent": dict(self.versions)},
            "updated_channels": changed,
        }


CHAT_MESSAGES = 40


def chat(steps: int) -> list[Step]:
    """A conversation that grows to 40 messages and then forgets its oldest, 20 documents, five scalars."""
    said = messages(steps, lambda number: 200 + number * 37 % 201)
    documents = {
        f"doc-{n}": {"title": text(30, n), "page": n, "text": text(300, 9000 + n)} for n in range(20)
    }
    scalars = {"user": "u-1701", "language": "en", "temperature": 0.25, "allowed": True}
    thread = Thread()
    for number in range(steps):
        shown = said[max(0, number + 1 - CHAT_MESSAGES) : number + 1]
        changed = {"messages": shown, "turn": number}
        if number == 0:
            changed = {"documents": documents, **scalars, **changed}
        thread.step(changed, [("messages", said[number]), ("turn", number)])
    return thread.steps


WIDE_CHANNELS = 30
WIDE_CHARACTERS = 2_000


def wide(steps: int) -> list[Step]:
    """30 channels of 2 kB each, texts and dicts, of which two change in a step."""
    thread = Thread()
    for number in range(steps):
        turning = [2 * number % WIDE_CHANNELS, (2 * number + 1) % WIDE_CHANNELS]
        changed = range(WIDE_CHANNELS) if number == 0 else turning
        values = {f"channel_{n:02}": _wide_value(n, number) for n in changed}
        thread.step(values, [(f"channel_{n:02}", values[f"channel_{n:02}"]) for n in turning])
    return thread.steps


def _wide_value(channel: int, number: int) -> Any:
    seed = number * WIDE_CHANNELS + channel
    if channel % 2 == 0:
        return text(WIDE_CHARACTERS, seed)
    rows = [
        {"row": row, "score": row / 8, "text": text(WIDE_CHARACTERS // 10 - 30, seed)} for row in range(10)
    ]
    return {"rows": rows}


def tiny(steps: int) -> list[Step]:
    """A counter."""
    thread = Thread()
    for number in range(steps):
        thread.step({"count": number}, [("count", number + 1), ("branch:to:agent", None)])
    return thread.steps


LONG_CHARACTERS = 1_000


def long(steps: int) -> list[Step]:
    """A conversation of messages of 1 kB that never forgets."""
    said = messages(steps, lambda _: LONG_CHARACTERS)
    thread = Thread()
    for number in range(steps):
        thread.step({"messages": said[: number + 1]}, [("messages", said[number]), ("turn", number)])
    return thread.steps


def big(size: int) -> Step:
    """One value of random bytes, which no compression makes smaller."""
    thread = Thread()
    thread.step({"file": random.Random(SEED).randbytes(size)}, [])  # noqa: S311
    return thread.steps[0]


WORKLOADS: dict[str, Workload] = {"chat": chat, "wide": wide, "tiny": tiny}
"""Those whose operations are measured one by one."""
