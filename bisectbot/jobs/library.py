"""Where job files, their includes, programs and hosts are found.

A root holds ``jobs/``, ``hosts/`` and, beside or below ``jobs/``, ``include/``. Programs are described in
``jobs/programs.yaml``, or, in an lkp-tests checkout, by the first comment block of the scripts in ``programs/NAME/``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from bisectbot.errors import UserError
from bisectbot.jobs.document import Document, parse_documents, read_lines
from bisectbot.jobs.hosts import Host
from bisectbot.jobs.origin import Line, Origin
from bisectbot.jobs.programs import Catalogue, Program, parse_programs, scan_programs

MAX_BYTES = 300_000  # of one job file: the longest real one has a few thousand lines


@dataclass(frozen=True)
class Library:
    """Roots in the order in which they are searched."""

    roots: tuple[Path, ...]

    @classmethod
    def around(cls, file: Path, *more: Path) -> Library:
        """The library that a job file stands in (the folder above its ``jobs``), then the given roots."""
        inside = [parent.parent for parent in file.absolute().parents if parent.name == "jobs"]
        return cls(tuple(dict.fromkeys(root.resolve() for root in (*inside, *more))))

    @cached_property
    def catalogue(self) -> Catalogue:
        """What is known of programs; earlier roots win."""
        programs: dict[str, Program] = {}
        for root in self.roots:
            if (file := root / "jobs" / "programs.yaml").is_file():
                for name, program in parse_programs(_single(read_file(file), file)).items():
                    programs.setdefault(name, program)
            if (root / "programs").is_dir():
                for name, program in scan_programs(root / "programs").items():
                    programs.setdefault(name, program)
        return Catalogue(programs)

    def find(self, name: str, including: Path | None, origin: Origin) -> Path:
        """The file that an include names: beside the including file, below a root, anywhere below its jobs."""
        wanted = Path(name)
        if wanted.is_absolute() or "\0" in name or not wanted.name:
            raise origin.error(f"include {name!r}: expected a relative path")
        beside = [including.parent] if including else []
        for folder in (*beside, *self.roots):
            if (file := folder / wanted).is_file():
                return self._allowed(file, (*beside, *self.roots), origin)
        for root in self.roots:
            found = sorted(path for path in (root / "jobs").rglob(wanted.name) if path.is_file())
            for file in found:
                if file.parts[-len(wanted.parts) :] == wanted.parts:
                    return self._allowed(file, self.roots, origin)
        places = ", ".join(str(folder) for folder in (*beside, *self.roots))
        raise origin.error(f"include {name!r} is not below {places}")

    def _allowed(self, file: Path, folders: Sequence[Path], origin: Origin) -> Path:
        if not any(file.resolve().is_relative_to(folder.resolve()) for folder in folders):
            raise origin.error(f"include {file}: it lies outside the folders that jobs may read")
        return file

    def defaults(self, key: str, value: object) -> list[Path]:
        """Files that say what a job with ``key: value`` takes for granted, most special first.

        For ``vm-lkp-4G`` the files ``vm-lkp-4G``, ``vm-lkp``, ``vm`` of ``include/KEY`` (or ``programs/KEY/include``),
        ``OTHERS`` if none of them exists, then ``ALL``.
        """
        if not re.fullmatch(r"[\w.+-]+", key) or key in {".", ".."}:
            return []
        for root in self.roots:
            for folder in (
                root / "include" / key,
                root / "jobs" / "include" / key,
                root / "programs" / key / "include",
            ):
                if folder.is_dir():
                    special = [folder / name for name in _prefixes(value) if (folder / name).is_file()]
                    general = [] if special else [folder / "OTHERS"]
                    return [file for file in (*special, *general, folder / "ALL") if file.is_file()]
        return []

    def host(self, name: str) -> Host:
        """The facts of a host group, or of the group of a host. Raises UserError where no file tells them."""
        host = Host.named(name)
        if not re.fullmatch(r"[\w][\w.+-]*", name):
            raise UserError(f"host {name!r}: expected a name like lkp-icl-2sp2")
        for group in dict.fromkeys((name, host.group)):
            for root in self.roots:
                for file in (root / "hosts" / group, root / "hosts" / f"{group}.yaml"):
                    if file.is_file() and "driver" not in (facts := _single(read_file(file), file)).body:
                        return Host.read(name, group, facts)  # what has a driver says how a machine is reached
        known = ", ".join(sorted(set(self._hosts()))) or "none"
        raise UserError(f"host {name!r}: no file hosts/{host.group}.yaml below the configuration; known: {known}")

    def _hosts(self) -> Iterator[str]:
        for root in self.roots:
            if (root / "hosts").is_dir():
                yield from (file.name.removesuffix(".yaml") for file in (root / "hosts").iterdir() if file.is_file())


def read_file(file: Path) -> list[Line]:
    """The lines of a job file. Raises UserError with its name."""
    try:
        with file.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise UserError(f"{file}: {error.strerror or error}") from None
    if len(data) > MAX_BYTES:
        raise UserError(f"{file}: more than {MAX_BYTES} bytes, which no job file has")
    return read_lines(data, str(file))


def _single(lines: Sequence[Line], file: Path) -> Document:
    documents = parse_documents(lines, str(file))
    if len(documents) > 1:
        raise documents[1].origin.error("expected one document")
    return documents[0] if documents else Document({}, Origin(str(file), 1))


def _prefixes(value: object) -> list[str]:
    """``vm-lkp-4G`` → itself, ``vm-lkp``, ``vm``; nothing for what cannot be a file's name."""
    text = str(value) if isinstance(value, str | int) else ""
    if not re.fullmatch(r"[\w.+%=:-]+", text) or text in {".", ".."}:
        return []
    cuts = [match.start() for match in re.finditer(r"[-:]", text)]
    return [text, *(text[:cut] for cut in reversed(cuts) if cut)]
