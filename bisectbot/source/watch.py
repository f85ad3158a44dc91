"""Which commits of a branch are worth measuring, and how many of them now. Decides; starts nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum

from bisectbot.errors import UserError
from bisectbot.source.git import Git
from bisectbot.source.history import first_parents

DAY = 86400.0  # s


class Every(Enum):
    HEAD = "head"  # where the branch points when we look
    MERGE = "merge"  # and each merge on its first-parent line since
    COMMIT = "commit"  # and each commit on that line since


@dataclass(frozen=True)
class Policy:
    """How closely a branch is watched.

    ``per_day``: at most so many heads within any 24 h. ``quiet``: hours of the day in UTC, first and end (22, 6),
    in which nothing new is begun. Raises UserError for hours that are none.
    """

    every: Every = Every.HEAD
    per_day: int | None = None
    quiet: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        if self.per_day is not None and self.per_day < 1:
            raise UserError(f"per_day is {self.per_day}; give at least 1, or leave it out for no limit")
        if self.quiet is not None and not all(0 <= hour <= 24 for hour in self.quiet):
            raise UserError(f"quiet hours {self.quiet} are none; give two hours from 0 to 24, such as 22, 6")

    def room(self, now: float, begun: Sequence[float]) -> int | None:
        """How many heads may be begun now, when others were begun at those times (s since 1970 UTC); None: any.

        Times up to a day ahead count, too: the clock has been put back since. What lies farther ahead was written
        by a clock that was wrong, and must not hold up the branch until then.
        """
        if self.quiet is not None and _within(datetime.fromtimestamp(now, UTC).hour, *self.quiet):
            return 0
        if self.per_day is None:
            return None
        return max(0, self.per_day - sum(abs(now - at) < DAY for at in begun))

    def heads(self, git: Git, old: str | None, new: str, *, rebuilt: bool = False) -> list[str]:
        """The commits to measure now that the branch went from ``old`` (None: first seen) to ``new``, oldest first.

        Of a branch that is rebuilt (or was force-pushed: the caller knows) only the head counts: the commits
        below it are another history, in which a bisection looks, not the watch.
        """
        new = git.resolve(new)
        if old is None or rebuilt or self.every is Every.HEAD:
            return [new] if new != old else []
        line = first_parents(git, old, new)
        if self.every is Every.MERGE:
            merges = set(git.run("rev-list", "--first-parent", "--merges", new, f"^{git.resolve(old)}").split())
            line = [sha for sha in line if sha in merges or sha == new]
        return line

    def choose(self, waiting: Sequence[str], room: int | None) -> list[str]:
        """Of the heads that wait, oldest first, those to begin now: the newest, then what halves the gaps best.

        The others stay candidates of a bisection; they are not measured for their own sake.
        """
        if room is None or room >= len(waiting):
            return list(waiting)
        if room <= 0:
            return []
        last = len(waiting) - 1
        return [waiting[last - (place * len(waiting)) // room] for place in range(room)][::-1]


def _within(hour: int, first: int, end: int) -> bool:
    return first <= hour < end if first <= end else hour >= first or hour < end
