"""Is this installation in order? Everything that a newcomer's first night could trip over."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import redis

from bisectbot.config import Config
from bisectbot.config.mail import MailPolicy
from bisectbot.errors import BisectbotError
from bisectbot.service.context import open_context
from bisectbot.service.people.status import hosts
from bisectbot.source.git import Git
from bisectbot.store import leases

_NETWORK_FILE_SYSTEMS = {"nfs", "nfs4", "cifs", "smb3", "fuse.sshfs", "9p", "ceph", "glusterfs"}
_LEAST_FREE = 5 * 2**30
_OLDEST_GIT = (2, 38)


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at; ``detail`` says what to do if it is not good."""

    what: str
    good: bool
    detail: str


def examine(config: Config) -> Iterator[Finding]:
    """Look at one thing after the other; nothing is changed."""
    yield _git()
    yield _state(config)
    yield from _database(config)
    yield _broker(config)
    yield _token(config)
    for name, tree in config.trees.items():
        yield _tree(name, tree.url)
    yield _mail(config)


def _git() -> Finding:
    try:
        words = subprocess.run(["git", "--version"], capture_output=True, text=True, check=True).stdout.split()
    except (OSError, subprocess.CalledProcessError):
        return Finding("git", False, "is not installed; install it")
    numbers = tuple(int(part) for part in words[2].split(".")[:2])
    if numbers < _OLDEST_GIT:
        return Finding("git", False, f"{words[2]} is too old to merge without a work tree; install 2.38 or newer")
    return Finding("git", True, words[2])


def _state(config: Config) -> Finding:
    state = config.state
    existing = next((path for path in (state, *state.absolute().parents) if path.exists()), Path("/"))
    free = shutil.disk_usage(existing).free
    if free < _LEAST_FREE:
        return Finding("state folder", False, f"{state}: only {free / 2**30:.1f} GiB free; make room")
    return Finding("state folder", True, f"{state}: {free / 2**30:.0f} GiB free")


def _database(config: Config) -> Iterator[Finding]:
    try:
        context = open_context(config)
    except BisectbotError as error:
        yield Finding("database", False, str(error))
        return
    try:
        if context.database.sqlite and (kind := _file_system(config.state)) in _NETWORK_FILE_SYSTEMS:
            detail = f"SQLite on {kind} loses data; move `state` to a local disk or use PostgreSQL"
            yield Finding("database", False, detail)
        elif not context.database.current():
            yield Finding("database", False, "its schema is not this version's; run `bisectbot db upgrade`")
        else:
            yield Finding("database", True, context.database.url.render_as_string(hide_password=True))
            with context.database.read() as session:
                leader = leases.holder(session, "leader")
            yield Finding("scheduler", leader is not None, leader or "none leads; start `bisectbot serve`")
            for host in hosts(context):
                good = host.attached or host.silent_s is not None
                detail = host.state if good else "no worker was ever attached; start `bisectbot worker` for it"
                yield Finding(f"host {host.name}", good and host.state not in {"suspect", "bad"}, detail)
    except BisectbotError as error:
        yield Finding("database", False, str(error))
    finally:
        context.database.dispose()


def _file_system(path: Path) -> str:
    """The kind of file system that ``path`` is on."""
    best = ("", "")
    for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines():
        _, mount, kind, *_ = line.split()
        if str(path.absolute()).startswith(mount) and len(mount) > len(best[0]):
            best = (mount, kind)
    return best[1]


def _broker(config: Config) -> Finding:
    url = config.broker_url.replace("redis+socket://", "unix://")
    try:
        with redis.Redis.from_url(url, socket_connect_timeout=3) as client:
            client.ping()
    except (redis.RedisError, OSError, ValueError) as error:
        remedy = "start `bisectbot serve`" if config.broker == "embedded" else "start it, or correct `broker`"
        return Finding("broker", False, f"does not answer ({error}); {remedy}")
    return Finding("broker", True, "embedded" if config.broker == "embedded" else "answers")


def _token(config: Config) -> Finding:
    path = config.token_path
    if not path.is_file():
        return Finding(
            "worker token", False, f"{path} is missing; `bisectbot serve` makes it, or write a secret into it"
        )
    if path.stat().st_mode & 0o077:
        return Finding("worker token", False, f"{path} can be read by others; chmod 600 it")
    return Finding("worker token", True, str(path))


def _tree(name: str, url: str) -> Finding:
    try:
        Git(Path("/")).run("ls-remote", "--quiet", "--heads", "--end-of-options", url, timeout=60.0)
    except BisectbotError as error:
        return Finding(f"tree {name}", False, " ".join(str(error).split()))
    return Finding(f"tree {name}", True, url)


def _mail(config: Config) -> Finding:
    mail = config.mail
    if mail.policy is not MailPolicy.FILES and not mail.operators:
        return Finding("mail", False, "nobody is told of trouble; name mail.operators")
    folder = mail.inbox.maildir
    if folder is not None and not (folder / "new").is_dir():
        return Finding("mail", False, f"mail.inbox.maildir: {folder} is no maildir; create it with new, cur and tmp")
    return Finding("mail", True, f"goes as far as: {mail.policy.value}")
