"""The application on an `AsyncEngine`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession

from cpstore import SQLAlchemySaver
from tests.host.graph import builder, said
from tests.host.models import Conversation, Turn
from tests.host.schemas import Answer, NewConversation, Question, Step, answered, step_of
from tests.host.sync_app import config_of, found


def create_app(engine: AsyncEngine) -> FastAPI:
    """Make the application on its engine, which the saver shares."""
    saver = SQLAlchemySaver(engine)
    graph = builder.compile(checkpointer=saver)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        await saver.asetup()
        yield

    app = FastAPI(lifespan=lifespan)

    @app.post("/conversations", status_code=201)
    async def begin(new: NewConversation) -> None:
        async with AsyncSession(engine) as session, session.begin():
            session.add(Conversation(**new.model_dump()))

    @app.get("/conversations")
    async def conversations(owner: str) -> list[str]:
        mine = select(Conversation.id).where(Conversation.owner == owner).order_by(Conversation.id)
        async with AsyncSession(engine) as session:
            return list(await session.scalars(mine))

    @app.post("/conversations/{conversation_id}/messages")
    async def ask(conversation_id: str, question: Question) -> Answer:
        async with AsyncSession(engine) as session:
            found(await session.get(Conversation, conversation_id))
        state = await graph.ainvoke(said(question.text), config_of(conversation_id))
        answer = answered(state)
        async with AsyncSession(engine) as session, session.begin():
            session.add(Turn(conversation_id=conversation_id, tokens=answer.tokens))
        return answer

    @app.get("/conversations/{conversation_id}/history")
    async def history(conversation_id: str) -> list[Step]:
        snapshots = graph.aget_state_history(config_of(conversation_id))
        return [step_of(snapshot) async for snapshot in snapshots]

    @app.delete("/conversations/{conversation_id}", status_code=204, response_model=None)
    async def delete(conversation_id: str) -> None:
        async with AsyncSession(engine) as session, session.begin():
            await session.delete(found(await session.get(Conversation, conversation_id)))
            await session.flush()
            await forget(session, saver, conversation_id)

    return app


async def forget(session: AsyncSession, saver: SQLAlchemySaver, conversation_id: str) -> None:
    """Delete the graph's thread with the rows of the application: both go, or neither."""
    async with saver.within(session) as tx:
        await tx.adelete_thread(conversation_id)
