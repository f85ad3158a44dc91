"""How many messages a second the grammar reads: ``python -m tests.benchmarks.chat``. CPU seconds of one core."""

from __future__ import annotations

import sys
import time

from bisectbot.chat.grammar import MAIL, MENTION, Dialect, parse

TALK = (
    "I think the regression in will-it-scale is real, see the numbers above.",
    "lgtm",
    "@ada can you look at R12?\n> quoted\nthanks",
    "see https://example.org/a/very/long/path?with=arguments and " + "words " * 40,
)
ASKED = (
    "status B77",
    "bisect will-it-scale.per_process_ops good=next-20221113 bad=next-20221115 host=icl",
    "cancel B7 box needed, please",
)


def rate(messages: list[str], dialect: Dialect) -> float:
    start = time.process_time()
    for message in messages:
        parse(message, dialect)
    return len(messages) / (time.process_time() - start)


def main() -> None:
    times = 2_000 if "--quick" in sys.argv else 20_000
    patch = "#bisectbot test base=v6.1\n\nThis should help.\n---\n" + "+\tline of a patch\n context\n" * 500
    commands = [f"@bisectbot {asked}" for asked in ASKED]
    rows = [
        ("talk", list(TALK) * times, MENTION),
        ("a channel: one command in twenty", (list(TALK) * 14 + commands) * (times // 10), MENTION),
        ("commands alone", commands * times, MENTION),
        ("mails with a patch of 1000 lines", [patch] * (times // 20), MAIL),
    ]
    print(f"{'messages':36} {'a second':>12}")
    for name, messages, dialect in rows:
        print(f"{name:36} {rate(messages, dialect):12,.0f}")


if __name__ == "__main__":
    main()
