"""Running git, through GitPython's command layer: processes that end, and nothing else.

Every command runs in its own process group with a time limit and an environment of ours: no ``GIT_*`` of the
caller, no configuration of the user or the machine, no hooks, no prompts, no transport that runs a program.
What git prints is bytes; `decode` is the one place that makes text of it, and `readable` the one that makes it
fit for people.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import subprocess
import threading
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from pathlib import Path

from git import Git as Command
from git.exc import GitCommandNotFound

from bisectbot.errors import InfraError, UserError

TIMEOUT = 600.0  # s; a plumbing command on a tree of Linux' size ends within a minute
SILENCE = 300.0  # s without a sign of life from the other side of a fetch
PATIENCE = 2 * 3600.0  # s for a whole fetch, however lively: 2 GB at 300 kB/s
TRANSPORTS = ("file", "git", "http", "https", "ssh")

_CONFIG = {
    "core.attributesFile": os.devnull,
    "core.commitGraph": "true",
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
    "core.quotePath": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "advice.detachedHead": "false",
    "init.defaultBranch": "master",
}
_ENVIRONMENT = {
    "GIT_ALLOW_PROTOCOL": ":".join(TRANSPORTS),
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_GRAFT_FILE": os.devnull,
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "true",
    "GIT_SSH_COMMAND": "ssh -oBatchMode=yes",
    "LC_ALL": "C",
}
_SHA = re.compile(r"[0-9a-f]{40}")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)(://|::)")


class GitError(InfraError):
    """A git command ended with another status than 0 (or was killed: status -9)."""

    def __init__(self, message: str, status: int, stderr: str) -> None:
        super().__init__(message)
        self.status = status
        self.stderr = stderr


def decode(raw: bytes) -> str:
    """UTF-8 text; bytes that are none survive as lone surrogates and turn back into the same bytes."""
    return raw.decode("utf-8", "surrogateescape")


def encode(text: str) -> bytes:
    """The bytes that `decode` was given."""
    return text.encode("utf-8", "surrogateescape")


def readable(text: str) -> str:
    """``text`` fit for a page, a mail and a database: valid UTF-8, no control characters but tab and newline."""
    return _CONTROL.sub("\ufffd", encode(text.replace("\r\n", "\n")).decode("utf-8", "replace"))


def is_sha(text: str) -> bool:
    """Whether ``text`` is a full object name: 40 lower-case hex digits."""
    return _SHA.fullmatch(text) is not None


def check_url(url: str) -> str:
    """``url`` itself, if git may be given it: a path, ``host:path``, or one of `TRANSPORTS`.

    Raises UserError for what begins with ``-``, holds control characters, or would start a program (``ext::``).
    """
    if not url or url.startswith("-") or _CONTROL.search(url) or "\n" in url:
        raise UserError(f"{url!r} is no repository address; give a path or an https://, ssh:// or git:// address")
    match = _SCHEME.match(url)
    if match and (match[2] == "::" or match[1].lower() not in TRANSPORTS):
        raise UserError(f"transport {match[1]!r} of {url!r} is not allowed; use one of {', '.join(TRANSPORTS)}")
    return url


def check_name(name: str, what: str) -> str:
    """``name`` itself, if it can be part of a ref; else UserError. ``what`` is the word for it: "branch"."""
    bad = re.search(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|/\.|\.lock(/|$)", name)
    if not name or bad or name.startswith(("-", "/", ".")) or name.endswith(("/", ".")):
        raise UserError(f"{what} {name!r} is no name that git accepts; see git help check-ref-format")
    return name


class Git:
    """Commands in one repository: a bare one, or the top of a work tree.

    ``config`` is added to every command through the environment (an ``http.extraHeader`` with a token is thus
    never seen in a process list); ``env`` likewise (``GIT_INDEX_FILE`` and friends).
    """

    def __init__(
        self, path: Path | str, *, config: Mapping[str, str] | None = None, env: Mapping[str, str] | None = None
    ) -> None:
        self.path = Path(path)
        self._env = _environment(self.path, config or {}, env or {})

    def run_bytes(self, *args: str, timeout: float = TIMEOUT, input: bytes | None = None) -> bytes:  # noqa: A002
        """What the command printed. Raises GitError (an InfraError) for any status but 0, and after ``timeout`` s."""
        status, out, err = self._outcome(args, timeout, input)
        self._check(args, status, err)
        return out

    def run(self, *args: str, timeout: float = TIMEOUT, input: bytes | str | None = None) -> str:  # noqa: A002
        """What the command printed, as text without the last newline. Raises as `run_bytes` does."""
        raw = encode(input) if isinstance(input, str) else input
        return decode(self.run_bytes(*args, timeout=timeout, input=raw)).removesuffix("\n")

    def answer(self, *args: str, timeout: float = TIMEOUT) -> tuple[bool, bytes]:
        """Of a command that says yes with status 0 and no with 1: the answer and what it printed.

        Raises GitError for any other status.
        """
        status, out, err = self._outcome(args, timeout, None)
        if status != 1:
            self._check(args, status, err)
        return status == 0, out

    def ok(self, *args: str, timeout: float = TIMEOUT) -> bool:
        """The answer alone, as `answer` gives it."""
        return self.answer(*args, timeout=timeout)[0]

    def pipe(
        self,
        first: Sequence[str],
        second: Sequence[str],
        *,
        timeout: float = TIMEOUT,
        input: bytes = b"",  # noqa: A002
    ) -> bytes:
        """``input | git first | git second``, whatever its size. Raises as `run_bytes` does, for either command."""
        with self._start(first, stdin=subprocess.PIPE) as source, _served(source, input) as errors:
            assert source.stdout is not None
            with self._start(second, stdin=source.stdout.fileno()) as sink:
                source.stdout.close()  # the sink has it: if the sink dies, so does the source
                try:
                    out, err = sink.communicate(timeout=timeout)
                    source.wait(timeout)
                except subprocess.TimeoutExpired:
                    raise GitError(f"git {first[0]} in {self.path}: no end after {timeout:g} s", -9, "") from None
        if source.returncode != -signal.SIGPIPE:  # else the sink ended first, and can tell why
            self._check(first, source.returncode, bytes(errors))
        self._check(second, sink.returncode, err)
        return bytes(out)

    def watched(self, *args: str, silence: float = SILENCE, patience: float = PATIENCE) -> str:
        """Run a command that reports progress on stderr, for as long as it does; returns that stderr.

        Raises GitError when it fails, and when it was killed: silent for ``silence`` s, or without end after
        ``patience`` s.
        """
        with self._start(args) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            streams = [process.stdout, process.stderr]
            err = b""
            alive = begun = time.monotonic()
            while streams:
                for stream in select.select(streams, [], [], 1.0)[0]:
                    chunk = os.read(stream.fileno(), 65536)
                    alive = time.monotonic()
                    if not chunk:
                        streams.remove(stream)
                    elif stream is process.stderr:
                        err = (err + chunk)[-65536:]
                if time.monotonic() - alive > silence:
                    raise GitError(f"git {args[0]} in {self.path}: silent for {silence:g} s, killed", -9, decode(err))
                if time.monotonic() - begun > patience:
                    raise GitError(f"git {args[0]} in {self.path}: no end after {patience:g} s, killed", -9, "")
            process.wait()
        self._check(args, process.returncode, err)
        return decode(err)

    def stream(self, *args: str, input: bytes = b"", silence: float = SILENCE) -> Generator[bytes]:  # noqa: A002
        """What the command prints, as it prints it. A reader that ends early ends the command.

        Raises GitError when it fails, or when it was silent for ``silence`` s and therefore killed.
        """
        with self._start(args, stdin=subprocess.PIPE) as process, _served(process, input) as errors:
            assert process.stdout is not None
            while True:
                if not select.select([process.stdout], [], [], silence)[0]:
                    raise GitError(f"git {args[0]} in {self.path}: silent for {silence:g} s, killed", -9, "")
                chunk = os.read(process.stdout.fileno(), 65536)
                if not chunk:
                    break
                yield chunk
            process.wait()
        self._check(args, process.returncode, bytes(errors))

    def resolve(self, rev: str) -> str:
        """The commit that ``rev`` names, 40 hex digits.

        Raises UserError in one line for a revision that is unknown, ambiguous, no commit, or looks like an option.
        """
        if not rev or rev.startswith("-") or "\n" in rev or "\0" in rev:
            raise UserError(f"{rev!r} is no revision; give a commit id, a tag or a branch")
        try:
            return self.run("rev-parse", "--verify", "--end-of-options", rev + "^{commit}")
        except GitError as failure:
            if failure.status != 128 or corrupt(failure):
                raise
            if "ambiguous" in failure.stderr:
                raise UserError(f"{rev!r} is ambiguous in {self.path}; give more digits of the commit id") from None
            if not self.is_repository():
                raise UserError(f"{self.path} is no git repository; give the path of one") from None
            raise UserError(f"{rev!r} names no commit in {self.path}; fetch it, or check the spelling") from None

    def has(self, sha: str) -> bool:
        """Whether the repository holds the commit ``sha`` (40 hex digits)."""
        assert is_sha(sha), sha
        try:
            self.run_bytes("cat-file", "-e", sha + "^{commit}")
        except GitError as failure:
            if failure.status in {1, 128} and not corrupt(failure):
                return False
            raise
        return True

    def is_repository(self) -> bool:
        """Whether `path` is the top of a git repository or a bare one."""
        return self.path.is_dir() and self._quiet("rev-parse", "--git-dir") in {".", ".git"} | {str(self.path)}

    def init_bare(self) -> None:
        """Make an empty bare repository at `path`, or leave alone the one that is there."""
        self.path.mkdir(parents=True, exist_ok=True)
        self.run("init", "--quiet", "--bare", "--initial-branch=master", ".")

    def _quiet(self, *args: str) -> str:
        try:
            return self.run(*args)
        except GitError:
            return ""

    @contextlib.contextmanager
    def _start(self, args: Sequence[str], *, stdin: int | None = None) -> Iterator[subprocess.Popen[bytes]]:
        """The process; however the block is left, the process and its children are gone afterwards."""
        if not self.path.is_dir():
            raise InfraError(f"git {args[0]}: there is no directory {self.path}")
        # GitPython hands on our whole environment: env(1) takes away what git must not see of it.
        foreign = [name for name in os.environ if name.startswith("GIT_") and name not in self._env]
        prefix = ["env", *(word for name in foreign for word in ("-u", name))] if foreign else []
        try:
            handle = Command(str(self.path)).execute(
                [*prefix, "git", *args], istream=stdin, as_process=True, env=self._env, start_new_session=True
            )
        except GitCommandNotFound:
            raise InfraError("git is not installed, or not in PATH") from None
        process = handle.proc
        assert process is not None
        try:
            yield process
        finally:
            if process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream is not None:
                    with contextlib.suppress(BrokenPipeError):
                        stream.close()

    def _outcome(self, args: Sequence[str], timeout: float, given: bytes | None) -> tuple[int, bytes, bytes]:
        with self._start(args, stdin=subprocess.PIPE if given is not None else None) as process:
            try:
                out, err = process.communicate(given, timeout)
            except subprocess.TimeoutExpired:
                raise GitError(f"git {args[0]} in {self.path}: no end after {timeout:g} s", -9, "") from None
        return process.returncode, out, err

    def _check(self, args: Sequence[str], status: int, err: bytes) -> None:
        if status == 0:
            return
        stderr = decode(err)
        if status == 129:  # git's own word for "you called me wrongly"
            raise RuntimeError(f"git {' '.join(args)}: {stderr}")
        lines = [line for line in stderr.splitlines() if line.strip()]
        telling = next((line for line in lines if line.startswith(("fatal:", "error:"))), lines[-1] if lines else "")
        reason = readable(telling).strip() or f"exit status {status}"
        raise GitError(f"git {args[0]} in {self.path}: {reason}", status, stderr)


@contextlib.contextmanager
def _served(process: subprocess.Popen[bytes], given: bytes) -> Iterator[bytearray]:
    """Feed ``given`` to the process and collect what it says on stderr, while others read its output."""
    errors = bytearray()

    def feed() -> None:
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError), process.stdin as stdin:
            stdin.write(given)

    def drain() -> None:
        assert process.stderr is not None
        while chunk := os.read(process.stderr.fileno(), 65536):
            errors.extend(chunk)

    threads = [threading.Thread(target=feed), threading.Thread(target=drain)]
    for thread in threads:
        thread.start()
    try:
        yield errors
    finally:
        if process.poll() is None:  # the block was left by an error
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        for thread in threads:
            thread.join()


def _environment(path: Path, config: Mapping[str, str], extra: Mapping[str, str]) -> dict[str, str]:
    settings = {**_CONFIG, "safe.directory": str(path.absolute()), **config}
    numbered = {"GIT_CONFIG_COUNT": str(len(settings))}
    for number, (key, value) in enumerate(settings.items()):
        numbered |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return {**_ENVIRONMENT, **numbered, **extra}


_CORRUPT = re.compile(
    r"corrupt|unable to read|inflate|could not parse object|bad object|object file .* is empty"
    r"|missing (blob|tree|commit)|cannot be (mapped|accessed)|invalid index-pack|bad (tree|pack)"
    r"|pack .*(does not match|too small|signature)|failed to (read|traverse)|hash mismatch"
    r"|broken link|object not found|could not read [0-9a-f]{40}",
    re.IGNORECASE,
)


def corrupt(failure: GitError) -> bool:
    """Whether git complained about its own objects, not about what it was asked."""
    return _CORRUPT.search(failure.stderr) is not None
