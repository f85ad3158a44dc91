"""Names that LKP's tools and reports know a unit job by. Axes here are ``key → value`` with text values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from bisectbot.jobs.axes import Axis
from bisectbot.jobs.evaluate import as_text

VALUE_LENGTH = 31  # characters of one value in a path

RESULT_ROOT = "/lkp/result"


def path_value(value: object) -> str:
    """A value as paths show it: at most 31 characters, others than ``-a-zA-Z0-9+=:.%`` become ``_``."""
    return clean(as_text(value)[:VALUE_LENGTH])


def clean(text: str) -> str:
    """A text with ``_`` for each character other than ``-a-zA-Z0-9+=:.%``."""
    return re.sub(r"[^-a-zA-Z0-9+=:.%]", "_", text)


def path_params(axes: Iterable[Axis]) -> str:
    """Values of a job's parameters sorted by key, joined with ``-``; ``defaults`` where there are none."""
    shown = {axis.key: axis for axis in axes if axis.in_path}
    texts = {key: path_value(shown[key].value) for key in sorted(shown)}
    words = [f"{key}={text}" if shown[key].assigned else text for key, text in texts.items() if text]
    return "-".join(words) or "defaults"


def unit_name(prefix: str, axes: Sequence[Axis]) -> str:
    """The file name of a unit job: prefix, parameters, commits, root file system."""
    others = {axis.key: axis.value for axis in axes if not axis.in_path}
    commits = [clean(as_text(others[key])) for key in sorted(others) if "commit" in key]
    rootfs = clean(as_text(others.get("rootfs")).rpartition("/")[2])
    words = [prefix, path_params(axes), *commits, rootfs]
    return "-".join(word for word in words if word) + ".yaml"


def axes_line(axes: Mapping[str, str], compared: str = "commit") -> tuple[str, str]:
    """Keys and values as a report's table heads them, without the compared one.

    Sorted as the texts ``key=value``, which puts ``fs2=…`` before ``fs=…``: ``2`` sorts before ``=``.
    """
    pairs = sorted(f"{key}={value.replace('/', '_')}" for key, value in axes.items() if key != compared and value)
    return "/".join(pair.partition("=")[0] for pair in pairs), "/".join(pair.partition("=")[2] for pair in pairs)
