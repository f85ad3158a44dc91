"""A builder's own copy of the sources: a bare mirror that fetches single commits, and a work tree per build slot."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Mapping
from pathlib import Path

from bisectbot.errors import InfraError
from bisectbot.source.git.command import SILENCE, Git, GitError, check_name, check_url, corrupt, is_sha
from bisectbot.source.git.lock import locked

# Every fetch adds a pack; git itself shall say when there are too many, and pack them before it goes on.
_TIDY = {"gc.auto": "6700", "gc.autoPackLimit": "50", "gc.autoDetach": "false"}
PUBLISHED = "refs/bisectbot/build/"  # + the 40 digits: what a server's mirror offers to builders


class Checkout:
    """The mirror and the work trees below ``home``, an own directory.

    ``config`` goes to every git command: the worker's token as ``http.extraHeader``.
    Whatever a killed process left half done is repaired by the next call.
    """

    def __init__(self, home: Path, *, config: Mapping[str, str] | None = None) -> None:
        self.home = home
        self.git = Git(home / "mirror.git", config={**_TIDY, **(config or {})})
        self._config = config

    def fetch(self, url: str, sha: str, *, silence: float = SILENCE) -> None:
        """Bring the commit ``sha``, published in the mirror at ``url`` (address or path), into our mirror.

        Raises UserError for an address that git must not be given, InfraError when the other side does not
        answer, falls silent for ``silence`` s, or does not have the commit.
        """
        assert is_sha(sha), sha
        check_url(url)
        ref = PUBLISHED + sha
        with locked(self.home / "mirror.lock"):
            self.git.init_bare()
            if self._complete(sha):
                return
            try:
                self._fetch(url, ref, silence)
            except GitError as failure:
                if not corrupt(failure):
                    raise
                self._start_again()
                self._fetch(url, ref, silence)
            if not self._complete(sha):
                raise InfraError(f"{url} offered {ref}, but the commit did not arrive")
            self.git.run("gc", "--auto", "--quiet", timeout=4 * 3600.0)

    def tree(self, sha: str, slot: str) -> Path:
        """The work tree of build slot ``slot`` at the fetched commit ``sha``: detached, nothing else in it.

        Files that do not differ from the slot's last commit keep their time stamps, so that an incremental build
        (its output outside of the tree) compiles only what changed. Raises InfraError; a retry begins with `fetch`.
        """
        assert is_sha(sha), sha
        path = self.home / check_name(slot, "slot")
        with locked(self.home / f"{slot}.lock"):
            try:
                self._reuse(path, sha)
            except InfraError:
                self._make(path, sha)
        return path

    def _complete(self, sha: str) -> bool:
        """Fetched whole: the ref is written last, so its being there means that every object is."""
        return self.git.ok("show-ref", "--verify", "--quiet", PUBLISHED + sha) and self.git.has(sha)

    def _fetch(self, url: str, ref: str, silence: float) -> None:
        refspec = f"+{ref}:{ref}"
        options = ("--no-tags", "--no-write-fetch-head", "--progress", "--no-recurse-submodules")
        self.git.watched("fetch", *options, "--end-of-options", url, refspec, silence=silence)

    def _start_again(self) -> None:
        """Empty the mirror: it is a cache, nothing in it is ours alone, and the slots mend themselves."""
        shutil.rmtree(self.git.path)
        self.git.init_bare()

    def _reuse(self, path: Path, sha: str) -> None:
        """Move the slot's work tree to ``sha``. Raises InfraError when it is none of ours or is damaged."""
        tree = Git(path, config=self._config)
        if Path(tree.run("rev-parse", "--path-format=absolute", "--git-common-dir")) != self.git.path.resolve():
            raise InfraError(f"{path} is no work tree of {self.git.path}")
        index_lock = Path(tree.run("rev-parse", "--path-format=absolute", "--git-path", "index.lock"))
        index_lock.unlink(missing_ok=True)  # we hold the slot: its owner is dead
        tree.run("checkout", "--quiet", "--force", "--detach", sha)
        tree.run("clean", "-ffdxq")

    def _make(self, path: Path, sha: str) -> None:
        with locked(self.home / "mirror.lock"):
            with contextlib.suppress(FileNotFoundError):
                shutil.rmtree(path)
            self.git.run("worktree", "prune", "--expire=now")
            try:
                self.git.run("worktree", "add", "--quiet", "--force", "--detach", str(path.absolute()), sha)
            except GitError as failure:
                if corrupt(failure):
                    self._start_again()  # for the retry, which fetches first
                raise
