"""Real mail servers from the distribution, each in a folder of its own on ports of its own: Postfix and Dovecot."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bisectbot.mail.inbox import Maildir
from bisectbot.mail.smtp import Settings
from tests.mail.packages import require
from tests.mail.servers import free_port

DOMAIN = "bisectbot.example.org"
ELSEWHERE = "elsewhere.example.net"

BOXES = ("bounce", "ada", "list")
_MAIN = """\
compatibility_level = 3.6
queue_directory = {folder}/queue
data_directory = {folder}/data
daemon_directory = /usr/lib/postfix/sbin
command_directory = /usr/sbin
mail_owner = postfix
setgid_group = postdrop
maillog_file = {folder}/log
maillog_file_prefixes = {folder}
myhostname = mx.{domain}
mydestination =
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
mynetworks = 127.0.0.0/8
recipient_delimiter = +
virtual_mailbox_domains = {domain}
virtual_mailbox_base = {folder}/drops
virtual_mailbox_maps = inline:{{ {boxes} }}
virtual_uid_maps = static:{uid}
virtual_gid_maps = static:{gid}
virtual_minimum_uid = 1
transport_maps = inline:{{ {elsewhere}=smtp:[127.0.0.1]:{onward} }}
smtp_host_lookup = native
smtpd_relay_restrictions = permit_mynetworks, reject_unauth_destination
smtpd_recipient_restrictions = permit
bounce_notice_recipient = bounce@{domain}
"""
_MASTER = """\
127.0.0.1:{port} inet n - n - - smtpd
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
error unix - - n - - error
retry unix - - n - - error
smtp unix - - n - - smtp
virtual unix - n n - - virtual
proxymap unix - - n - - proxymap
anvil unix - - n - 1 anvil
scache unix - - n - 1 scache
postlog unix-dgram n - n - 1 postlogd
"""


@dataclass(frozen=True)
class Postfix:
    """A running Postfix: it delivers its own domain into maildirs and everything elsewhere to ``onward``."""

    folder: Path
    settings: Settings
    onward: int  # the port of whoever answers for `ELSEWHERE`

    def drop(self, name: str) -> Maildir:
        """The maildir of ``name``."""
        return Maildir(self.folder / "drops" / name)

    def set(self, name: str, value: str) -> None:
        """Change one of its parameters and start it again."""
        etc = str(self.folder / "etc")
        _run("postfix", "-c", etc, "stop")
        _run("postconf", "-c", etc, "-e", f"{name} = {value}")
        _run("postfix", "-c", etc, "start")
        until_open(self.settings.port)


@contextmanager
def postfix(folder: Path) -> Iterator[Postfix]:
    """Postfix from the distribution's package; needs root, as it changes its user."""
    require("postfix", "/usr/lib/postfix/sbin/master")
    # Every maildir is there before Postfix is: one that is made under its hands belongs to root for a moment, and a
    # delivery in that moment is deferred for minutes.
    for part in ("etc", "queue", "data", *(f"drops/{box}/{kind}" for box in BOXES for kind in ("new", "cur", "tmp"))):
        (folder / part).mkdir(parents=True)
    for parent in (folder, *folder.parents[:2]):
        parent.chmod(0o755)
    shutil.chown(folder / "data", "postfix")
    nobody = pwd.getpwnam("nobody")
    port, onward = free_port(), free_port()
    boxes = ", ".join(f"{box}@{DOMAIN}={box}/" for box in BOXES)
    ids = {"uid": nobody.pw_uid, "gid": nobody.pw_gid}
    main = _MAIN.format(folder=folder, domain=DOMAIN, elsewhere=ELSEWHERE, onward=onward, boxes=boxes, **ids)
    (folder / "etc" / "main.cf").write_text(main)
    (folder / "etc" / "master.cf").write_text(_MASTER.format(port=port))
    _give_to_nobody(folder / "drops")
    _run("postfix", "-c", str(folder / "etc"), "start")
    try:
        until_open(port)
        yield Postfix(folder, Settings("127.0.0.1", port, timeout=20.0), onward)
    finally:
        _run("postfix", "-c", str(folder / "etc"), "stop")


def _give_to_nobody(folder: Path) -> None:
    nobody = pwd.getpwnam("nobody")
    for path in (folder, *folder.rglob("*")):
        os.chown(path, nobody.pw_uid, nobody.pw_gid)


_DOVECOT = """\
base_dir = {folder}/run
log_path = {folder}/log
protocols = imap
listen = 127.0.0.1
mail_location = maildir:{folder}/mail
ssl = required
ssl_cert = <{certificate}
ssl_key = <{certificate}
ssl_min_protocol = TLSv1.2
default_internal_user = dovecot
default_login_user = dovenull
first_valid_uid = 1
service imap-login {{
  inet_listener imap {{
    port = 0
  }}
  inet_listener imaps {{
    port = {port}
  }}
}}
passdb {{
  driver = static
  args = password=s3cret
}}
userdb {{
  driver = static
  args = uid={uid} gid={gid} home={folder}/home
}}
"""


@contextmanager
def dovecot(folder: Path, certificate: Path) -> Iterator[tuple[int, Path]]:
    """Dovecot's IMAP over TLS; yields its port and the maildir that it serves to anybody with ``s3cret``."""
    require("dovecot-imapd", "/usr/lib/dovecot/imap")
    nobody = pwd.getpwnam("nobody")
    for parent in (folder, *folder.parents[:2]):
        parent.chmod(0o755)
    for part in ("mail", "mail/new", "mail/cur", "mail/tmp", "home"):
        (folder / part).mkdir()
    port = free_port()
    config = _DOVECOT.format(folder=folder, certificate=certificate, port=port, uid=nobody.pw_uid, gid=nobody.pw_gid)
    (folder / "dovecot.conf").write_text(config)
    _give_to_nobody(folder / "mail")
    _give_to_nobody(folder / "home")
    _run("dovecot", "-c", str(folder / "dovecot.conf"))
    try:
        until_open(port)
        yield port, folder / "mail"
    finally:
        _run("dovecot", "-c", str(folder / "dovecot.conf"), "stop")


def until_open(port: int, seconds: float = 20.0) -> None:
    """Wait until somebody listens on ``port``."""
    end = time.monotonic() + seconds
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1.0).close()
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)
        else:
            return


def _run(program: str, *arguments: str) -> None:
    command = [shutil.which(program, path="/usr/sbin:/usr/bin") or program, *arguments]
    # Into a file: a daemon that the command leaves behind would keep a pipe open.
    with tempfile.TemporaryFile("w+") as output:
        done = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, check=False, timeout=60)
        if done.returncode != 0:
            output.seek(0)
            raise RuntimeError(f"{program} {' '.join(arguments)}: {output.read()}")


@contextlib.contextmanager
def short_folder() -> Iterator[Path]:
    """A folder with a short path: mail servers put Unix sockets below it, whose paths have at most 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="bb-") as name:
        Path(name).chmod(0o755)
        yield Path(name)
