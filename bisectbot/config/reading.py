"""From files to one `Config`, or to everything that is wrong with them."""

from __future__ import annotations

from pathlib import Path

from bisectbot.config.check import Check
from bisectbot.config.hosts import Host
from bisectbot.config.whole import Config
from bisectbot.yamlfile import (
    ConfigError,
    Problem,
    read,
    validate,
    word,
)


def load(path: Path) -> Config:
    """Read ``path`` and the host files beside it (``hosts/*.yaml``).

    Raises ConfigError (a UserError) with everything that is wrong, each with file:line and a remedy.
    """
    document = read(path)
    problems: list[Problem] = []
    hosts: dict[str, Host] = {}
    for file in sorted((path.parent / "hosts").glob("*.yaml")):
        try:
            host_document = read(file)
            if isinstance(host_document.data, dict) and "driver" not in host_document.data:
                continue  # a host group's facts
            hosts[word(file.stem)] = validate(host_document, Host)
        except ConfigError as error:
            problems += error.problems
        except ValueError as error:
            problems.append(Problem(str(file), 0, str(error)))
    try:
        config = validate(document, Config)
    except ConfigError as error:
        raise ConfigError(error.problems + problems) from None
    if problems:
        raise ConfigError(problems)
    config = config.model_copy(update={"hosts": {**hosts, **config.hosts}})
    if config.chat.people is None and (people := path.parent / "people.yaml").is_file():
        config = config.model_copy(update={"chat": config.chat.model_copy(update={"people": people})})
    check = Check(document, config)
    if wrong := check.all():
        raise ConfigError(wrong)
    config._units, config._facts = check.units, check.facts
    return config
