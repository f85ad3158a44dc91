"""What is watched: git trees and their branches."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from bisectbot.yamlfile import (
    GitUrl,
    RefName,
    Seconds,
    Section,
)


class BranchKind(StrEnum):
    LINEAR = "linear"
    REBUILT = "rebuilt"


Hour = Annotated[int, Field(ge=0, le=24)]


class Branch(Section):
    """A watched ref: which build, which jobs. ``kind`` rebuilt: yesterday's head is no ancestor of today's.

    ``every``: measure each head that is seen, or also each merge or commit that came with it.
    """

    kind: BranchKind = BranchKind.LINEAR
    build: str
    jobs: tuple[str, ...] = Field(min_length=1)
    backfill: int = Field(0, ge=0, description="heads of the past to measure when the branch is first seen")
    every: Literal["head", "merge", "commit"] = "head"
    per_day: int | None = Field(None, ge=1, description="heads to begin within 24 hours")
    quiet: tuple[Hour, Hour] | None = Field(None, description="hours (UTC) in which nothing new is begun")


class Tree(Section):
    """A git repository that is watched."""

    url: GitUrl
    interval: Seconds = 300.0
    share: float = Field(1.0, gt=0, description="of the hosts' time, relative to the other trees")
    branches: dict[RefName, Branch] = Field(min_length=1)
