"""What comes in and goes out over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

if TYPE_CHECKING:
    from langgraph.types import StateSnapshot


class NewConversation(BaseModel):
    """A conversation that begins."""

    id: str
    owner: str
    title: str


class Question(BaseModel):
    """What a user says."""

    text: str


class Answer(BaseModel):
    """What the graph says."""

    text: str
    tokens: int


class Step(BaseModel):
    """A step in the history of a conversation."""

    checkpoint_id: str
    step: int
    messages: list[str]


def answered(state: dict[str, Any]) -> Answer:
    """Give the last message of a state."""
    return Answer(text=state["messages"][-1].content, tokens=state["tokens"])


def step_of(snapshot: StateSnapshot) -> Step:
    """Give a snapshot without what is only for the graph."""
    metadata: Any = snapshot.metadata
    return Step(
        checkpoint_id=snapshot.config["configurable"]["checkpoint_id"],
        step=metadata["step"],
        messages=[message.content for message in snapshot.values.get("messages", [])],
    )
