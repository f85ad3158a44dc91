"""Real git repositories written as fast-import streams: commits by number, as many as a test wants."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

NOON = 1_700_000_000  # when the first commit of every test history is made
Content = str | bytes | None  # None deletes the file


@dataclass
class FastImport:
    """Collects commits and refs; `write` puts them into the repository at ``path``, which may exist already.

    A commit is known by its number, 1 and up, until `write` has told its id; a parent may be a number or an id.
    """

    path: Path
    _chunks: list[bytes] = field(default_factory=list)
    _shas: list[str] = field(default_factory=list)
    _count: int = 0

    def commit(
        self,
        subject: str | bytes,
        parents: Iterable[int | str] = (),
        files: Mapping[str, Content] | None = None,
        *,
        author: str = "A U Thor <author@example.com>",
        date: int | None = None,
        committed: int | None = None,
    ) -> int:
        """Add a commit: the first parent's tree with ``files`` changed. Dates are seconds since 1970."""
        self._count += 1
        date = NOON + 60 * self._count if date is None else date
        committed = date if committed is None else committed
        message = subject.encode() if isinstance(subject, str) else subject
        out = self._chunks
        out.append(b"reset refs/fastimport/tip\n\n")  # else a commit without parents continues the last one
        out.append(
            b"commit refs/fastimport/tip\nmark :%d\nauthor %b %d +0000\ncommitter C O Mitter <committer@example.com>"
            b" %d +0000\ndata %d\n%b\n" % (self._count, author.encode(), date, committed, len(message), message)
        )
        for number, parent in enumerate(parents):
            out.append(b"%b %b\n" % (b"merge" if number else b"from", _name(parent)))
        for path, content in (files or {}).items():
            if content is None:
                out.append(b"D %b\n" % _quoted(path))
            else:
                raw = content.encode() if isinstance(content, str) else content
                out.append(b"M 100644 inline %b\ndata %d\n%b\n" % (_quoted(path), len(raw), raw))
        return self._count

    def ref(self, name: str, commit: int | str) -> None:
        """Let the full ref ``name`` (refs/heads/…, refs/tags/…) point at a commit."""
        self._chunks.append(b"reset %b\nfrom %b\n\n" % (name.encode(), _name(commit)))

    def write(self) -> None:
        """Hand everything collected so far to git. Numbers stay valid; the next commits may build on them."""
        if not (self.path / "HEAD").exists():
            self.path.mkdir(parents=True, exist_ok=True)
            subprocess.run(["git", "init", "-q", "--bare", "-b", "master", str(self.path)], check=True)
        marks = self.path / "fastimport.marks"
        marks.touch()
        self._chunks.append(b"reset refs/fastimport/tip\nfrom " + b"0" * 40 + b"\n\n")
        with tempfile.TemporaryFile() as stream:
            stream.writelines(self._chunks)
            stream.seek(0)
            subprocess.run(
                ["git", "fast-import", "--quiet", "--force", f"--import-marks={marks}", f"--export-marks={marks}"],
                cwd=self.path,
                stdin=stream,
                check=True,
            )
        self._chunks.clear()
        by_mark = dict(line.split() for line in marks.read_text().splitlines())
        self._shas = [by_mark[f":{number}"] for number in range(1, self._count + 1)]

    def sha(self, commit: int) -> str:
        """The id of a written commit."""
        return self._shas[commit - 1]


def _name(commit: int | str) -> bytes:
    return b":%d" % commit if isinstance(commit, int) else commit.encode()


def _quoted(path: str) -> bytes:
    escaped = path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return (path if escaped == path else f'"{escaped}"').encode()
