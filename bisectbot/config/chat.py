"""How chat is connected: the section ``chat`` of ``bisectbot.yaml``. Secrets are files, never values."""

from __future__ import annotations

import re
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from bisectbot.yamlfile import RelativePath, Seconds, SecretPath, Section

_NEAR = ("127.0.0.1", "localhost", "[::1]", "::1")


def _safe(url: str) -> str:
    match = re.fullmatch(r"(https?)://([^\s/@]+?)(:\d+)?(/\S*)?", url)
    if not match or (match[1] == "http" and match[2] not in _NEAR):
        raise ValueError(f"{url!r}: expected https://HOST; plain http is for this machine alone")
    return url


Url = Annotated[str, AfterValidator(_safe)]


class Slack(Section):
    """An app with a slash command and `app_mention` events. Two signing secrets are valid at once while one is
    replaced; with ``bot_token_file`` it tells of progress."""

    signing_secret_files: tuple[SecretPath, ...] = Field(min_length=1, max_length=2)
    team: str = Field(pattern=r"^T[A-Z0-9]+$")
    bot_user: str = Field(pattern=r"^[UW][A-Z0-9]+$")
    bot_token_file: SecretPath | None = None
    api: Url = "https://slack.com/api"
    response_origins: tuple[Url, ...] = ("https://hooks.slack.com",)


class Mattermost(Section):
    """A slash command of the server at ``url``, which identities begin with (without ``https://``)."""

    url: Url
    token_files: tuple[SecretPath, ...] = Field(min_length=1, max_length=2)
    teams: tuple[str, ...] = ()
    channels: tuple[str, ...] = Field((), description="empty: all of the teams")
    sources: tuple[str, ...] = Field((), description="addresses it may call from; empty: any")
    bot_token_file: SecretPath | None = None


class Zulip(Section):
    """An outgoing webhook bot of the realm at ``url``."""

    url: Url
    bot_email: str
    token_files: tuple[SecretPath, ...] = Field(min_length=1, max_length=2)
    api_key_file: SecretPath | None = None


class Matrix(Section):
    """An account on ``homeserver``. Commands are taken from members of the listed ``servers`` alone."""

    homeserver: Url
    user: str = Field(pattern=r"^@[^:\s]+:\S+$")
    password_file: SecretPath
    servers: tuple[str, ...] = Field(min_length=1)


class Irc(Section):
    """A network. Identities are ``network/account`` with the account that its services vouch for."""

    network: str = Field(pattern=r"^[A-Za-z0-9.-]+$")
    server: str
    port: int = Field(6697, ge=1, le=65535)
    tls: bool = True
    ca_file: RelativePath | None = None
    nick: str = Field("bisectbot", pattern=r"^[A-Za-z\[\]\\`_^{|}][A-Za-z0-9\[\]\\`_^{|}-]*$")
    account: str = Field("", description="of SASL; the nick unless given")
    password_file: SecretPath | None = None
    certificate_file: SecretPath | None = Field(None, description="PEM with key and certificate, for SASL EXTERNAL")
    channels: tuple[str, ...] = ()
    throttle: Seconds = 2.0

    @model_validator(mode="after")
    def _encrypted(self) -> Self:
        if not self.tls and self.server not in _NEAR:
            raise ValueError(f"tls: false is for this machine alone, not for {self.server}")
        return self


class Chat(Section):
    """Who may ask for how much, and the transports that are on. A transport without its section is off."""

    people: RelativePath | None = Field(None, description="people.yaml beside bisectbot.yaml, if it is there")
    confirm_host_hours: float = Field(6.0, ge=0, description="what costs more is confirmed first")
    running: int = Field(3, ge=0, description="requests of a person at a time")
    daily_host_hours: float = Field(12.0, ge=0, description="of a person")
    messages_per_minute: int = Field(20, ge=1, description="of an identity")
    archives: tuple[Url, ...] = Field(
        ("https://lore.kernel.org/all/{id}/raw",), description="where patches are fetched from by Message-ID"
    )
    slack: Slack | None = None
    mattermost: Mattermost | None = None
    zulip: Zulip | None = None
    matrix: Matrix | None = None
    irc: Irc | None = None

    @property
    def connected(self) -> bool:
        """Whether any transport is on."""
        return any((self.slack, self.mattermost, self.zulip, self.matrix, self.irc))
