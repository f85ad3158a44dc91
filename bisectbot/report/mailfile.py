"""Plain text out of a mail as people have it: .eml, mbox, or pasted from a page or a reader.

Knows transfer encodings, multipart, charsets that lie, format=flowed and quoted replies; nothing of reports.
"""

from __future__ import annotations

import email
import email.header
import email.message
import email.utils
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from email.errors import HeaderParseError

from bisectbot.report.model import Person

_HEADER_NAMES = rb"from|to|subject|date|message-id|received|return-path|delivered-to|mime-version|content-type|x-[\w-]+"
_HEADER = re.compile(rb"(?:" + _HEADER_NAMES + rb"):[ \t]", re.IGNORECASE)
_MBOX_FROM = re.compile(rb"^From \S+ .*\d{1,2}:\d{2}.*\n", re.MULTILINE)
_QUOTE = re.compile(r"(?:> ?)+")
_DASHES = re.compile(r"-{15,}[- ]*")
_BARS = re.compile(r"[ |]*[\\|][ |\\]*")


@dataclass(frozen=True, slots=True)
class MailFile:
    """One mail: the text of its first plain part, lines ended by LF, and what its headers say."""

    text: str
    subject: str = ""
    sender: Person | None = None
    date: str = ""
    message_id: str = ""


def read_mails(data: bytes) -> list[MailFile]:
    """Read the mails in a file: one, or an mbox of several. Any bytes will do; what has no headers is a text."""
    data = data.replace(b"\r\n", b"\n").removeprefix(b"\xef\xbb\xbf").lstrip(b"\n")
    if not _MBOX_FROM.match(data):
        return [_read(data)]
    starts = [m for m in _MBOX_FROM.finditer(data) if m.start() == 0 or data[: m.start()].endswith(b"\n\n")]
    ends = [m.start() for m in starts[1:]] + [len(data)]
    return [
        _read(re.sub(rb"(?m)^>(>*From )", rb"\1", data[m.end() : end])) for m, end in zip(starts, ends, strict=True)
    ]


def quoted_depth(text: str, marks: re.Pattern[str]) -> int:
    """Give the depth of quoting of the first line in which ``marks`` matches: 0 if it is not quoted, or nowhere."""
    found = next((line for line in text.split("\n") if marks.match(_QUOTE.sub("", line, count=1))), "")
    return _depth(found)


def unquoted(lines: Iterable[str], depth: int) -> Iterator[tuple[int, str]]:
    """Take that much quoting off and number the lines; those quoted less deep are the reply itself and left out."""
    for number, line in enumerate(lines):
        if _depth(line) >= depth:
            yield number, _peeled(line, depth)


def layers(lines: Sequence[str]) -> dict[int, list[tuple[int, str]]]:
    """Sort numbered lines by how deep they are quoted, without the quoting: what each writer wrote, deepest last."""
    found: dict[int, list[tuple[int, str]]] = {}
    for number, line in enumerate(lines):
        depth = _depth(line)
        found.setdefault(depth, []).append((number, _peeled(line, depth)))
    return dict(sorted(found.items()))


def _read(data: bytes) -> MailFile:
    if not _HEADER.match(data):
        return MailFile(textwrap.dedent(_decoded(data, None)))  # a page shows a mail indented
    message = email.message_from_bytes(data)
    name, address = email.utils.parseaddr(_header(message, "From"))
    return MailFile(
        "\n".join(_texts(message)),
        _header(message, "Subject"),
        Person(name, address) if name or address else None,
        _header(message, "Date") or _header(message, "X-Commit-Date"),
        _header(message, "Message-ID"),
    )


def _header(message: email.message.Message, name: str) -> str:
    raw = str(message.get(name, ""))
    try:
        text = str(email.header.make_header(email.header.decode_header(raw)))
    except (LookupError, UnicodeError, HeaderParseError):
        text = raw
    return " ".join(text.split())


def _texts(message: email.message.Message) -> Iterator[str]:
    """Give the plain texts that are shown with the mail; attachments are not."""
    plain = [part for part in message.walk() if part.get_content_type() == "text/plain"]
    shown = [part for part in plain if part.get_content_disposition() != "attachment"]
    for part in shown or plain:
        payload = part.get_payload(decode=True)
        text = _decoded(payload if isinstance(payload, bytes) else b"", part.get_content_charset())
        flowed = part.get_param("format") == "flowed"
        yield _joined(text, delete_space=part.get_param("delsp") == "yes") if flowed else text


def _decoded(data: bytes, charset: str | None) -> str:
    """Decode by UTF-8 if that fits, else as declared: mails say us-ascii and hold a plus-minus sign."""
    for name in ("utf-8", charset or "latin-1"):
        try:
            text = data.decode(name)
            break
        except (UnicodeError, LookupError):
            continue
    else:
        text = data.decode("latin-1")
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\xa0", " ").removeprefix("\ufeff")


def _joined(text: str, *, delete_space: bool) -> str:
    """Undo format=flowed (RFC 3676): a line that ends in a blank goes on in the next of the same quote depth."""
    lines = text.split("\n")
    stuffed = " " * 10 + "%stddev" in text or "%stddev" not in text  # some senders claim it and do not do it
    joined: list[str] = []
    for line in lines:
        depth = _depth(line)
        content = _peeled(line, depth)
        content = content.removeprefix(" ") if depth == 0 and stuffed else content
        above = _peeled(joined[-1], depth) if joined and _depth(joined[-1]) == depth else ""
        if above.endswith(" ") and _flows_on(above, content):
            joined[-1] = (joined[-1][:-1] if delete_space else joined[-1]) + content
        else:
            joined.append(f"{'> ' * depth}{content}")
    return "\n".join(joined)


def _flows_on(above: str, content: str) -> bool:
    """Say whether a line that ends in a blank was broken there. Those of a table's head end so by nature."""
    if above == "-- " or re.fullmatch(r"\w+: ", above):
        return False
    if _DASHES.fullmatch(above):
        return bool(_DASHES.fullmatch(content))
    if _BARS.fullmatch(above):
        return bool(_BARS.fullmatch(content))
    return not _DASHES.fullmatch(content)


def _depth(line: str) -> int:
    match = _QUOTE.match(line)
    return match[0].count(">") if match else 0


def _peeled(line: str, depth: int) -> str:
    for _ in range(depth):
        line = line.removeprefix(">").removeprefix(" ")
    return line
