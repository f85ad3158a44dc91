"""The three errors that decide policy. Everything else is a bug and crashes loudly."""

from __future__ import annotations


class BisectbotError(Exception):
    """Base of the errors that are expected; never raised itself."""

    @property
    def lines(self) -> list[str]:
        """What is said of it on a terminal, a line for each thing that is wrong."""
        return [" ".join(str(self).split())]


class UserError(BisectbotError):
    """Somebody gave something that cannot work: answer in one line that says what, where and the remedy.

    On the command line it ends with exit status 2.
    """


class InfraError(BisectbotError):
    """The machinery failed (host, network, disk): retry, count against the host, never a verdict."""


class Untestable(BisectbotError):  # noqa: N818 - the field's word
    """This commit does not build or boot: it is skipped, which says nothing about its performance."""
