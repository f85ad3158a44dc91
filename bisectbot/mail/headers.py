"""Header lines that survive every server: 7 bits, folded, with encoded words (RFC 5322, RFC 2047).

Written here rather than left to ``email.policy``, whose folding of long mixed texts differs between Python
releases: what is stored in the outbox must be the same bytes everywhere.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable

from bisectbot.mail.mailbox import Mailbox

EOL = "\r\n"
_WIDTH = 78  # the line length that RFC 5322 recommends
_WORD = 75  # the longest encoded word that RFC 2047 allows
_LONGEST_PLAIN = 70  # a longer unbroken word cannot be folded, so it is encoded, which can be split
_Q_SAFE = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789!*+-/")
_ATOM_PHRASE = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~ -]+")


def one_line(text: str) -> str:
    """``text`` on one line: line ends, tabs and control characters as blanks, lone surrogates as U+FFFD."""
    kept = "".join(" " if _breaks(character) else character for character in text)
    return kept.encode("utf-16", "surrogatepass").decode("utf-16", "replace").strip()


def _breaks(character: str) -> bool:
    return ord(character) < 0x20 or 0x7F <= ord(character) <= 0xA0 or character in "\u2028\u2029"


def unstructured(name: str, text: str) -> str:
    """The header ``name`` with free text, folded; lossless but for what `one_line` replaces."""
    return _fold(name, re.split(r"( +)", _encode(one_line(text))))


def mailboxes(name: str, boxes: Iterable[Mailbox]) -> str:
    """An address header, folded between mailboxes."""
    parts: list[str] = []
    for box in boxes:
        if parts:
            parts[-1] += ","
            parts.append(" ")
        written = _mailbox(box)
        parts += re.split(r"( +)", written) if len(written) > _LONGEST_PLAIN else [written]
    return _fold(name, parts)


def tokens(name: str, words: Iterable[str], separator: str = "") -> str:
    """A header of ASCII words that may be folded between any two, such as References."""
    listed = list(words)
    parts: list[str] = []
    for number, word in enumerate(listed):
        parts += [" "] if number else []
        parts.append(word + (separator if number < len(listed) - 1 else ""))
    return _fold(name, parts)


def _fold(name: str, parts: list[str]) -> str:
    """``parts`` alternate between words and the blanks between them."""
    lines = [f"{name}: {parts[0]}"]
    for blanks, word in zip(parts[1::2], parts[2::2], strict=True):
        if len(lines[-1]) + len(blanks) + len(word) > _WIDTH:
            lines.append(blanks + word)
        else:
            lines[-1] += blanks + word
    return EOL.join(lines) + EOL


def _mailbox(box: Mailbox) -> str:
    name = re.sub(" +", " ", one_line(box.name))  # the blanks of a phrase are not kept by everybody
    if not name:
        return box.address
    if _ATOM_PHRASE.fullmatch(name) and "=?" not in name:
        phrase = name
    elif name.isascii() and "=?" not in name and len(name) <= _LONGEST_PLAIN:
        escaped = name.replace("\\", "\\\\").replace('"', '\\"')
        phrase = f'"{escaped}"'
    else:
        phrase = " ".join(_encoded_words(name))
    return f"{phrase} <{box.address}>"


def _encode(text: str) -> str:
    """``text`` in ASCII: encoded from its first word that needs it to its last, so that people can read the rest."""
    pieces = re.split(r"( +)", text)
    needy = [index for index, piece in enumerate(pieces) if _needs_encoding(piece)]
    if not needy:
        return text
    before, after = "".join(pieces[: needy[0]]), "".join(pieces[needy[-1] + 1 :])
    stretch = "".join(pieces[needy[0] : needy[-1] + 1])
    # Only a single blank survives between plain and encoded words in every reader.
    inside = before[len(before.rstrip(" ")) :][1:]
    behind = after[: len(after) - len(after.lstrip(" "))][1:]
    before, after = before.removesuffix(inside), after.removeprefix(behind)
    return before + " ".join(_encoded_words(inside + stretch + behind)) + after


def _needs_encoding(word: str) -> bool:
    return not word.isascii() or "=?" in word or len(word) > _LONGEST_PLAIN


def _encoded_words(text: str) -> list[str]:
    mostly_ascii = 2 * sum(character.isascii() for character in text) > len(text)
    return _split(text, _q if mostly_ascii else _b)


def _split(text: str, encode: Callable[[str], str]) -> list[str]:
    """``text`` as encoded words that each hold whole characters."""
    words: list[str] = []
    start = 0
    for end in range(1, len(text) + 1):
        if len(encode(text[start : end + 1])) > _WORD or end == len(text):
            words.append(encode(text[start:end]))
            start = end
    return words


def _q(text: str) -> str:
    body = "".join(chr(b) if b in _Q_SAFE else "_" if b == 0x20 else f"={b:02X}" for b in text.encode())
    return f"=?utf-8?q?{body}?="


def _b(text: str) -> str:
    return f"=?utf-8?b?{base64.b64encode(text.encode()).decode()}?="
