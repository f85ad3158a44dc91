"""Who may do what: ``people.yaml``. People are known by the ids that a transport vouches for, never by names shown."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import Field, field_validator

from bisectbot.chat.grammar import Role
from bisectbot.yamlfile import ConfigError, Document, Name, Problem, Section, read, validate

TRANSPORTS = ("slack", "mattermost", "matrix", "irc", "zulip", "mail")
_CASELESS = {"mail", "irc"}


@dataclass(frozen=True)
class Identity:
    """Somebody as a transport knows them: ``T1/U2``, ``server/id``, ``@x:server``, ``network/account``,
    ``realm/id``, an address. "" is somebody whom nobody vouches for."""

    transport: str
    id: str

    @property
    def key(self) -> tuple[str, str]:
        """What two spellings of one identity share."""
        return self.transport, self.id.casefold() if self.transport in _CASELESS else self.id

    def __str__(self) -> str:
        return f"{self.transport}:{self.id or '?'}"


@dataclass(frozen=True)
class Person:
    """Somebody who speaks to us. ``listed``: in people.yaml, under ``name``.

    ``mails`` are in lower case, the one to write to first.
    """

    name: str
    role: Role = Role.ANYONE
    listed: bool = False
    mails: tuple[str, ...] = ()


class _Entry(Section):
    role: str = "developer"
    slack: tuple[str, ...] = ()
    mattermost: tuple[str, ...] = ()
    matrix: tuple[str, ...] = ()
    irc: tuple[str, ...] = ()
    zulip: tuple[str, ...] = ()
    mail: tuple[str, ...] = ()

    @field_validator(*TRANSPORTS, mode="before")
    @classmethod
    def _several(cls, value: object) -> object:
        return [value] if isinstance(value, str) else value

    @field_validator("role")
    @classmethod
    def _known(cls, value: str) -> str:
        if value.upper() not in Role.__members__:
            raise ValueError(f"{value!r} is no role; there are: {', '.join(role.name.lower() for role in Role)}")
        return value

    def identities(self) -> Iterable[Identity]:
        return (Identity(kind, one) for kind in TRANSPORTS for one in getattr(self, kind))


class _File(Section):
    people: dict[Name, _Entry] = Field({})


@dataclass(frozen=True)
class People:
    """Everybody who is listed, by identity."""

    known: dict[tuple[str, str], Person] = field(default_factory=dict)

    def of(self, identity: Identity) -> Person:
        """Who ``identity`` is; somebody unknown is anyone, under the identity's own name.

        An address that mail vouches for is a person's own even if nobody lists it: commits are blamed by address.
        """
        person = self.known.get(identity.key) if identity.id else None
        if person is not None:
            return person
        mails = (identity.id.lower(),) if identity.transport == "mail" and identity.id else ()
        return Person(str(identity), mails=mails)


def load_people(path: Path | None) -> People:
    """Read people.yaml; nobody is known without one. Raises ConfigError with everything that is wrong in it."""
    if path is None:
        return People()
    document = read(path)
    entries = validate(document, _File).people
    known: dict[tuple[str, str], Person] = {}
    problems: list[Problem] = []
    for name, entry in entries.items():
        mails = tuple(address.lower() for address in entry.mail)
        person = Person(name, Role[entry.role.upper()], listed=True, mails=mails)
        for identity in entry.identities():
            problems += _check(document, name, identity, known)
            known[identity.key] = person
    if problems:
        raise ConfigError(problems)
    return People(known)


_SHAPES = {
    "slack": ("/", "TEAM/USER, as in T1DC2JH3J/U2CERLKJA"),
    "mattermost": ("/", "SERVER/USER-ID"),
    "zulip": ("/", "REALM/USER-ID"),
    "irc": ("/", "NETWORK/ACCOUNT"),
    "matrix": (":", "@name:server"),
    "mail": ("@", "an address"),
}


def _check(document: Document, name: str, identity: Identity, known: dict[tuple[str, str], Person]) -> list[Problem]:
    place = ("people", name, identity.transport)
    separator, shape = _SHAPES[identity.transport]
    left, found, right = identity.id.partition(separator)
    if not (left and found and right) or identity.id != "".join(identity.id.split()):
        return [document.problem(place, f"people.{name}.{identity.transport}: {identity.id!r} is not {shape}")]
    if identity.key in known:
        other = known[identity.key].name
        return [document.problem(place, f"people.{name}.{identity.transport}: {identity.id} is {other}'s already")]
    return []
