"""What happened to the code: trees, branches, heads, commits, changes."""

from __future__ import annotations

import enum

from sqlalchemy import ForeignKey, Index, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column, relationship

from bisectbot.store.tables.base import Base, Key, Sha, words


class Tree(Base):
    """A watched repository. ``problem`` says why the last fetch failed, "" if it did not."""

    __tablename__ = "tree"
    id: Mapped[Key]
    name: Mapped[str] = mapped_column(unique=True)
    url: Mapped[str]
    fetched: Mapped[float] = mapped_column(default=0.0)
    problem: Mapped[str] = mapped_column(default="")


class Branch(Base):
    """A watched ref of a tree, whether it still is in the configuration or not."""

    __tablename__ = "branch"
    __table_args__ = (UniqueConstraint("tree_id", "name"),)
    id: Mapped[Key]
    tree_id: Mapped[int] = mapped_column(ForeignKey("tree.id"))
    name: Mapped[str]
    problem: Mapped[str] = mapped_column(default="")
    tree: Mapped[Tree] = relationship(lazy="joined")


class Change(Base):
    """What a commit does, however often it is rebased. ``key`` is the digest of its identity."""

    __tablename__ = "change"
    id: Mapped[Key]
    key: Mapped[str] = mapped_column(String(64), unique=True)
    patch_id: Mapped[str] = mapped_column(String(64), default="")


class Commit(Base):
    """A commit that was measured or blamed; the others stay in git.

    ``content`` tells what it builds from (`bisectbot.source.content`): equal for two ids of one rebased tree.
    """

    __tablename__ = "commit"
    id: Mapped[Key]
    sha: Mapped[Sha] = mapped_column(unique=True)
    change_id: Mapped[int | None] = mapped_column(ForeignKey("change.id"), index=True)
    author_name: Mapped[str] = mapped_column(default="")
    author_mail: Mapped[str] = mapped_column(default="")
    author_date: Mapped[float] = mapped_column(default=0.0)
    subject: Mapped[str] = mapped_column(default="")
    content: Mapped[str] = mapped_column(String(40), default="", index=True)
    change: Mapped[Change | None] = relationship()


class HeadState(enum.StrEnum):
    NEW = "new"
    PLANNED = "planned"
    COALESCED = "coalesced"
    """Superseded before its build began: not measured, but its commits stay candidates."""


class Head(Base):
    """A commit that a branch pointed at; ``number`` counts them from 0 in the order of the branch.

    ``seen`` and ``begun`` are when it was fetched and when its measuring was planned, 0: not yet.
    """

    __tablename__ = "head"
    __table_args__ = (UniqueConstraint("branch_id", "number"), Index(None, "state", "branch_id"))
    id: Mapped[Key]
    branch_id: Mapped[int] = mapped_column(ForeignKey("branch.id"))
    number: Mapped[int]
    commit_id: Mapped[int] = mapped_column(ForeignKey("commit.id"), index=True)
    state: Mapped[HeadState] = mapped_column(words(HeadState), default=HeadState.NEW)
    seen: Mapped[float]
    begun: Mapped[float] = mapped_column(default=0.0)
    backfill: Mapped[bool] = mapped_column(default=False)
    branch: Mapped[Branch] = relationship()
    commit: Mapped[Commit] = relationship()
