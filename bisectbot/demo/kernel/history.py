"""The history of the demo on real kernels: the distribution's source, and sixteen commits of our own on top.

Only what a small kernel needs is taken out of the source package: all that describes the build, and the code of the
folders in `KEPT`. Our commits put pieces at places that the kernel has had for years; a commit's files follow from
the pieces that it and its ancestors have, so a fix is a piece that is gone again.
"""

from __future__ import annotations

import math
import random
import re
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from bisectbot.demo.history import Made
from bisectbot.errors import UserError
from bisectbot.source.git import Git

PACKAGES = Path("/usr/src")
BASE = "refs/bisectbot/base"
PER_TURN = 9.4
"""What a turn of the loop that the culprit adds takes on it."""

_TOP = "block certs crypto include init io_uring ipc kernel lib mm rust scripts security usr virt"
_DRIVERS = "base char clocksource hid input rtc tty video"
_FS = "devpts kernfs proc ramfs sysfs iomap notify nls crypto verity quota"
_TOOLS = "arch build include lib objtool scripts"
KEPT = (
    *_TOP.split(),
    "arch/x86",
    *(f"drivers/{name}" for name in _DRIVERS.split()),
    *(f"fs/{name}" for name in _FS.split()),
    *(f"tools/{name}" for name in _TOOLS.split()),
)
_CODE = re.compile(r".*\.(c|h|S|dts|dtsi|rst|txt|rs|sh|py|json|yaml|svg|csv|tbl|pl|asn1|cocci)$")
_WHO = "Ada Byron <ada.byron@example.org>"


@dataclass(frozen=True)
class Sizes:
    """Commits that are pushed one by one, then some at once with the culprit among them, then one by one again."""

    quiet: int
    together: int
    after: int


WHOLE = Sizes(4, 7, 3)
LEAST = Sizes(3, 5, 3)
"""Together with the culprit come at least four more: one that does not build, one that panics, and their fixes."""


@dataclass(frozen=True)
class Piece:
    """``text`` in ``file``, in front of ``place``, a text that the file has once."""

    file: str
    place: str
    text: str


@dataclass(frozen=True)
class Change:
    """A commit: ``adds`` a piece, or takes away what ``undoes`` had added."""

    subject: str
    adds: Piece | None = None
    undoes: Piece | None = None


_OPEN, _OPEN_END = "fs/namei.c", "\trestore_nameidata();\n\treturn filp;\n}"
_OPEN_START = "\tset_nameidata(&nd, dfd, pathname, NULL);\n\tfilp = path_openat(&nd, op, flags | LOOKUP_RCU);\n"
_OPEN_HEAD = "struct file *do_filp_open(int dfd, struct filename *pathname,"
_PIPE_READ = "\t/* Null read succeeds. */\n"
_BOOT = "\tdo_sysctl_args();\n"
_NO_NAMES = Piece(_OPEN, _OPEN_END, "\tfilp = path_without_a_name(filp);\n")
_PANIC = Piece("init/main.c", _BOOT, '\tpanic("paths: the table of names is empty");\n')
_SLOW_PIPE = Piece("fs/pipe.c", _PIPE_READ, "\tfor (volatile int turn = 0; turn < 50; turn++)\n\t\tcpu_relax();\n\n")

_INNOCENT = (
    Change("fs: say what an open ends with", Piece(_OPEN, _OPEN_END, "\t/* The file, or why there is none. */\n")),
    Change("fs: note that a stale handle is tried again", Piece(_OPEN, _OPEN_END, "\t/* ESTALE was tried twice. */\n")),
    Change("fs: do not expect an open without a file", Piece(_OPEN, _OPEN_END, "\tWARN_ON_ONCE(!filp);\n")),
    Change(
        "fs: tell how many names an open may follow",
        Piece(
            _OPEN,
            _OPEN_HEAD,
            "unsigned int open_names_max(void);\nunsigned int open_names_max(void)\n{\n\treturn MAXSYMLINKS;\n}\n\n",
        ),
    ),
    Change("fs: a word on file descriptors", Piece("fs/open.c", "SYSCALL_DEFINE1(close,", "/* Frees the number. */\n")),
    Change("pipe: no need to settle before a read", undoes=_SLOW_PIPE),
    Change("init: say when the arguments are read", Piece("init/main.c", _BOOT, "\t/* Now /proc is there. */\n")),
    Change("fs: a word on where names end", Piece(_OPEN, _OPEN_HEAD, "/* A name ends where its file is. */\n")),
    Change("pipe: say what an empty read is", Piece("fs/pipe.c", _PIPE_READ, "\t/* A read of nothing: */\n")),
    Change("fs: keep the last result at hand", Piece(_OPEN, _OPEN_END, "\tbarrier();\n")),
    Change("fs: a word on reading links", Piece(_OPEN, _OPEN_HEAD, "/* Links are followed in path_openat(). */\n")),
)


def find_package(folder: Path = PACKAGES) -> Path:
    """The newest source package. Raises UserError when there is none."""
    found = sorted(
        folder.glob("linux-source-*.tar.xz"), key=lambda path: [int(n) for n in re.findall(r"\d+", path.name)]
    )
    if not found:
        raise UserError(f"no kernel source in {folder}; install one: apt-get install linux-source")
    return found[-1]


def prepare(package: Path, cache: Path) -> Git:
    """The repository with the base commit, made once for a package. Raises UserError for another kind of tar."""
    status = package.stat()
    name = f"{package.name.removesuffix('.tar.xz')}-{status.st_size}-{int(status.st_mtime)}.git"
    git = Git(cache / name, config={"core.compression": "1", "pack.depth": "0"})  # read once or twice: made fast
    if not (git.is_repository() and git.ok("show-ref", "--verify", "--quiet", BASE)):
        git.init_bare()
        stream = cache / "import"
        with stream.open("wb") as out:
            out.write(_header(BASE, 1, "The distribution's kernel, as far as a small one needs it", 1_700_000_000))
            for name, executable, content in _wanted(package):
                slow = _put(content, [_SLOW_PIPE]) if name == _SLOW_PIPE.file else content
                mode = b"100755" if executable else b"100644"
                out.write(b"M %s inline %s\ndata %d\n%s\n" % (mode, _quoted(name), len(slow), slow))
        git.run("fast-import", "--quiet", "--date-format=raw", "--depth=0", input=stream.read_bytes(), timeout=900.0)
        stream.unlink()
    return git


def make(base: Git, path: Path, seed: int, percent: float, instructions: float, sizes: Sizes = WHOLE) -> Made:
    """Write the history into a new bare repository at ``path``; nothing is pushed to its branch yet.

    Opening and closing a file takes so many ``instructions``, and ``percent`` more with the culprit. The same seed
    gives the same commits.
    """
    turns = math.ceil(percent / 100 * instructions / PER_TURN)
    slower = Change(
        "fs: let a name settle before it is looked up",
        Piece(_OPEN, _OPEN_START, f"\tfor (volatile int turn = 0; turn < {turns}; turn++)\n\t\tcpu_relax();\n"),
    )
    changes, culprit = _order(random.Random(seed), slower, sizes)  # noqa: S311 - a history, not a secret
    git = Git(path)
    git.init_bare()
    (path / "objects/info/alternates").write_text(f"{base.path.absolute() / 'objects'}\n", encoding="utf-8")
    root = base.resolve(BASE)
    git.run("update-ref", BASE, root)
    shas = [root]
    active: list[Piece] = [_SLOW_PIPE]
    for number, change in enumerate(changes):
        active = [piece for piece in active if piece != change.undoes] + ([change.adds] if change.adds else [])
        touched = (change.adds or change.undoes or _SLOW_PIPE).file
        text = git.run_bytes("show", f"{root}:{touched}").replace(_SLOW_PIPE.text.encode(), b"")
        text = _put(text, [piece for piece in active if piece.file == touched])
        stream = _header("refs/bisectbot/demo", number + 1, change.subject, 1_700_003_600 + 3600 * number)
        stream += f"from {shas[-1]}\n".encode() + b"M 100644 inline %s\ndata %d\n%s\n" % (
            touched.encode(),
            len(text),
            text,
        )
        git.run("fast-import", "--quiet", "--date-format=raw", "--force", input=stream)
        shas.append(git.resolve("refs/bisectbot/demo"))
    heads = [*range(sizes.quiet + 1), *range(sizes.quiet + sizes.together, len(shas))]
    return Made(
        heads=tuple(shas[at] for at in heads),
        culprit=shas[culprit + 1],
        effect=percent / 100,
        commits=len(shas),
        unbuildable=shas[1 + next(i for i, change in enumerate(changes) if change.adds == _NO_NAMES)],
        inert=shas[1 + next(i for i, change in enumerate(changes) if _says_only(change))],
    )


def _says_only(change: Change) -> bool:
    return change.adds is not None and change.adds.text.strip().startswith("/*")


def _order(rng: random.Random, slower: Change, sizes: Sizes) -> tuple[list[Change], int]:
    """Quiet commits; the culprit with a broken and a panicking one, each with its fix; quiet ones again."""
    innocent = list(_INNOCENT)
    rng.shuffle(innocent)
    first, late = sizes.quiet, sizes.quiet + sizes.together - 5
    breaks = [Change("fs: look the name up again", _NO_NAMES), Change("fs: no, once is enough", undoes=_NO_NAMES)]
    dies = [Change("init: look for the table of names", _PANIC), Change("init: there is no such table", undoes=_PANIC)]
    blocks = [[slower], breaks, dies, *([change] for change in innocent[first:late])]
    rng.shuffle(blocks)
    together = [change for block in blocks for change in block]
    changes = [*innocent[:first], *together, *innocent[late : late + sizes.after]]
    return changes, changes.index(slower)


def _wanted(package: Path) -> Iterator[tuple[str, bool, bytes]]:
    """Names, whether executable, and contents of the files that are kept."""
    try:
        with tarfile.open(package, "r|xz") as tar:
            for member in tar:
                name = PurePosixPath(*PurePosixPath(member.name).parts[1:])
                content = tar.extractfile(member) if member.isfile() and _is_kept(name) else None
                if content is not None:
                    yield str(name), bool(member.mode & 0o100), content.read()
    except (tarfile.TarError, EOFError) as error:
        raise UserError(f"{package} cannot be read: {error}") from None


def _is_kept(name: PurePosixPath) -> bool:
    if not _CODE.fullmatch(name.name) or len(name.parts) == 1:
        return True
    if len(name.parts) == 2 and name.parts[0] in {"fs", "drivers", "tools"}:
        return True
    return any(name.is_relative_to(folder) for folder in KEPT)


def _put(text: bytes, pieces: list[Piece]) -> bytes:
    """The file with the pieces in front of their places. Raises UserError for a kernel that lacks the place."""
    for piece in pieces:
        place = piece.place.encode()
        if text.count(place) != 1:
            raise UserError(f"this kernel's {piece.file} has no single {piece.place.strip()!r}; use another package")
        text = text.replace(place, piece.text.encode() + place)
    return text


def _header(ref: str, mark: int, subject: str, when: int) -> bytes:
    message = f"{subject}\n\nSigned-off-by: {_WHO}\n".encode()
    return f"commit {ref}\nmark :{mark}\nauthor {_WHO} {when} +0000\ncommitter {_WHO} {when} +0000\n".encode() + (
        b"data %d\n%s" % (len(message), message)
    )


def _quoted(name: str) -> bytes:
    return f'"{name}"'.encode() if " " in name else name.encode()
