"""The application's graph: it answers, and counts what that cost."""

from __future__ import annotations

from typing import Annotated, Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from typing_extensions import TypedDict


class State(TypedDict):
    """The messages of a conversation, and the tokens of its last answer."""

    messages: Annotated[list[AnyMessage], add_messages]
    tokens: int


def said(text: str) -> State:
    """Give the graph's input for what a user said."""
    return {"messages": [HumanMessage(text)], "tokens": 0}


def answer(state: State) -> dict[str, Any]:
    """Say how many questions there were; a model would say more."""
    questions = [message for message in state["messages"] if message.type == "human"]
    words = str(questions[-1].content).split()
    return {"messages": [AIMessage(f"{len(questions)}: {' '.join(words[::-1])}")], "tokens": len(words)}


builder = StateGraph(State)
builder.add_node("answer", answer)
builder.add_edge(START, "answer")
builder.add_edge("answer", END)
