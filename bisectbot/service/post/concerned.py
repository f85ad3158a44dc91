"""Whom a commit concerns, and the mail that it came in: read from the commit and from the files beside it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from bisectbot.errors import UserError
from bisectbot.mail.mailbox import Mailbox
from bisectbot.mail.maintainers import parse as parse_maintainers
from bisectbot.mail.recipients import Commit, Recipients, recipients
from bisectbot.mail.thread import Thread, patch_thread
from bisectbot.service.context import Context
from bisectbot.service.post.rules import tree_rules
from bisectbot.source.git import Git
from bisectbot.source.history import facts
from bisectbot.source.merged import is_ours
from bisectbot.source.relevance import touched_files

_BINDING = re.compile(r"Documentation/devicetree/bindings/.*\.yaml")


@dataclass(frozen=True)
class Concerned:
    """Who gets the report on a commit, and the thread that it belongs to, if the commit names one."""

    recipients: Recipients
    thread: Thread | None = None
    files: tuple[str, ...] = ()
    """What the commit touches."""


def concerned(context: Context, sha: str, tree: str) -> Concerned:
    """Ask the commit and the MAINTAINERS, .mailmap and .get_maintainer.ignore that it contains."""
    git = context.mirror.git
    if is_ours(git, sha):
        return Concerned(Recipients(()))  # nobody proposed it, so nobody is told but the operators
    [info] = facts(git, [sha])
    files = tuple(sorted(touched_files(git, [sha]).get(sha, ())))
    commit = Commit(
        author=_mailbox(info.author_mail, info.author_name),
        committer=_mailbox(info.committer_mail, info.committer_name),
        message=f"{info.subject}\n\n{info.body}",
        files=files,
        diff=git.run("show", "--format=", "--no-ext-diff", "--no-textconv", "-U0", sha) if files else "",
        contents={file: _text(git, sha, file) for file in files if _BINDING.fullmatch(file)},
    )
    maintainers = parse_maintainers(
        _text(git, sha, "MAINTAINERS"),
        mailmap=_text(git, sha, ".mailmap"),
        ignored=_text(git, sha, ".get_maintainer.ignore"),
    )
    return Concerned(recipients(commit, maintainers, tree_rules(context, tree)), patch_thread(info.body), files)


def _text(git: Git, sha: str, file: str) -> str:
    """A file of a commit, "" if it has none of that name."""
    there = git.run("--literal-pathspecs", "ls-tree", "--name-only", sha, "--", file)
    return git.run("show", f"{sha}:{file}") if there else ""


def _mailbox(address: str, name: str) -> Mailbox | None:
    try:
        return Mailbox(address, name)
    except UserError:
        return None
