"""The application on an `Engine`; FastAPI runs its endpoints in threads."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, HTTPException
from sqlalchemy import Engine, select
from sqlalchemy.orm import Session

from cpstore import SQLAlchemySaver
from tests.host.graph import builder, said
from tests.host.models import Conversation, Turn
from tests.host.schemas import Answer, NewConversation, Question, Step, answered, step_of


def create_app(engine: Engine) -> FastAPI:
    """Make the application on its engine, which the saver shares."""
    saver = SQLAlchemySaver(engine)
    graph = builder.compile(checkpointer=saver)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        await saver.asetup()
        yield

    app = FastAPI(lifespan=lifespan)

    @app.post("/conversations", status_code=201)
    def begin(new: NewConversation) -> None:
        with Session(engine) as session, session.begin():
            session.add(Conversation(**new.model_dump()))

    @app.get("/conversations")
    def conversations(owner: str) -> list[str]:
        mine = select(Conversation.id).where(Conversation.owner == owner).order_by(Conversation.id)
        with Session(engine) as session:
            return list(session.scalars(mine))

    @app.post("/conversations/{conversation_id}/messages")
    def ask(conversation_id: str, question: Question) -> Answer:
        with Session(engine) as session:
            found(session.get(Conversation, conversation_id))
        state = graph.invoke(said(question.text), config_of(conversation_id))
        answer = answered(state)
        with Session(engine) as session, session.begin():
            session.add(Turn(conversation_id=conversation_id, tokens=answer.tokens))
        return answer

    @app.get("/conversations/{conversation_id}/history")
    def history(conversation_id: str) -> list[Step]:
        return [step_of(snapshot) for snapshot in graph.get_state_history(config_of(conversation_id))]

    @app.delete("/conversations/{conversation_id}", status_code=204, response_model=None)
    def delete(conversation_id: str) -> None:
        with Session(engine) as session, session.begin():
            session.delete(found(session.get(Conversation, conversation_id)))
            session.flush()
            forget(session, saver, conversation_id)

    return app


def forget(session: Session, saver: SQLAlchemySaver, conversation_id: str) -> None:
    """Delete the graph's thread with the rows of the application: both go, or neither."""
    with saver.within(session) as tx:
        tx.delete_thread(conversation_id)


def found(conversation: Conversation | None) -> Conversation:
    """Give a conversation that there is."""
    if conversation is None:
        raise HTTPException(404)
    return conversation


def config_of(conversation_id: str) -> Any:
    """Give the config of a conversation's thread."""
    return {"configurable": {"thread_id": conversation_id}}
