"""What a monitor is: a name, and shell lines that run on the host beside the benchmark.

The lines are plain POSIX shell that busybox understands as well. They run where the benchmark runs, never over the
network, and write into ``$BISECTBOT_RESULTS``, from where their raw logs come home when the run is over.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Sampled:
    """Files that hold counters, read every second and at both ends (globs). All of them are read by one process, in
    one go; ``nodes`` are files of NUMA nodes, whose logs carry ``node: N`` lines."""

    name: str
    files: str
    nodes: bool = False


@dataclass(frozen=True)
class Snapshot:
    """``look`` prints something worth a look at the start, at the end, and every ``interval`` seconds in between (0:
    never); ``timed`` looks begin with a line ``time: SECONDS``."""

    name: str
    look: str
    start: bool = True
    end: bool = True
    interval: int = 0
    timed: bool = True


@dataclass(frozen=True)
class Tool:
    """A program that runs as long as the benchmark does. ``needs`` names it; without it there is a note and no log.

    ``line`` starts it, with its log as stdout, and must be one program (``exec`` it if there is more);
    ``prepare`` runs before, and may end with a status other than 0 to say that it will not work here, its last line
    of output saying why. ``end`` is the signal that ends it, ``after`` makes the log of what it left.
    """

    name: str
    needs: str
    line: str
    prepare: str = ""
    end: str = "TERM"
    after: str = ""


@dataclass(frozen=True)
class Around:
    """A ``program`` that starts the benchmark and measures it, with ``line``; without it, it is started as it is."""

    name: str
    program: str
    line: str


Monitor = Sampled | Snapshot | Tool | Around
