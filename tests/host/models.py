"""The application's own tables."""

from __future__ import annotations

import datetime as dt

from sqlalchemy import DateTime, ForeignKey, MetaData, func
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship


class Base(DeclarativeBase):
    """The application's base, with names for constraints as many applications have them."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(column_0_label)s",
            "uq": "uq_%(table_name)s_%(column_0_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
            "pk": "pk_%(table_name)s",
        }
    )


class Conversation(Base):
    """A conversation of a user; its id is the `thread_id` of the graph."""

    __tablename__ = "conversations"

    id: Mapped[str] = mapped_column(primary_key=True)
    owner: Mapped[str] = mapped_column(index=True)
    title: Mapped[str]
    created: Mapped[dt.datetime] = mapped_column(DateTime(timezone=True), server_default=func.now())
    turns: Mapped[list[Turn]] = relationship(cascade="all, delete-orphan", passive_deletes=False)


class Turn(Base):
    """What a question cost."""

    __tablename__ = "turns"

    id: Mapped[int] = mapped_column(primary_key=True)
    conversation_id: Mapped[str] = mapped_column(ForeignKey("conversations.id"))
    tokens: Mapped[int]
