"""How long it takes to say who is concerned by 1,000 commits. Run with ``python -m tests.benchmarks.mail [--quick]``.

A made-up MAINTAINERS file of the kernel's size (2,900 sections, 8,200 file patterns, 95 name patterns, 51 keywords),
or the file given with ``--maintainers`` and commits on the files of the tree it stands in.
"""

from __future__ import annotations

import argparse
import random
import time
from pathlib import Path

from bisectbot.mail import maintainers
from bisectbot.mail.mailbox import Mailbox
from bisectbot.mail.recipients import Commit, recipients

GOAL = 5.0  # seconds for 1,000 commits
AREAS = ("drivers", "fs", "net", "arch", "sound", "Documentation", "include", "lib", "kernel", "mm")


def made_up(rng: random.Random) -> tuple[str, list[str]]:
    """A MAINTAINERS file and the files that it is about."""
    directories = [f"{rng.choice(AREAS)}/d{rng.randrange(60)}/e{rng.randrange(90)}" for _ in range(4000)]
    files = [f"{rng.choice(directories)}/file{rng.randrange(1000)}.c" for _ in range(60000)]
    sections = []
    for number in range(2900):
        lines = [f"SECTION {number}"]
        lines += [f"M:\tPerson {rng.randrange(2500)} <person{rng.randrange(2500)}@example.org>" for _ in range(2)]
        lines.append(f"L:\tlist{rng.randrange(300)}@example.org")
        lines += ["S:\tMaintained", *(f"F:\t{_pattern(rng, directories, files)}" for _ in range(rng.randrange(1, 5)))]
        if number % 30 == 0:
            lines.append(f"N:\t[^a-z]chip{number}[a-z]*")
        if number % 57 == 0:
            lines.append(f"K:\t(?:\\b|_)word{number}(?:\\b|_)")
        sections.append("\n".join(lines))
    rest = "THE REST\nM:\tHead <head@example.org>\nL:\tall@example.org\nF:\t*\nF:\t*/"
    return "\n\n".join([*sections, rest]), files


def _pattern(rng: random.Random, directories: list[str], files: list[str]) -> str:
    kind = rng.random()
    if kind < 0.5:
        return f"{rng.choice(directories)}/"
    if kind < 0.85:
        return rng.choice(files)
    return f"{rng.choice(directories)}/*{rng.randrange(100)}*"


def commits(rng: random.Random, files: list[str], count: int) -> list[Commit]:
    """Commits of 1 to 20 files with messages and diffs of the usual size."""
    author = Mailbox("author@example.org", "Author")
    made = []
    for number in range(count):
        touched = tuple(rng.sample(files, min(len(files), 1 + int(rng.expovariate(0.4)))))
        message = (
            f"area: change {number}\n\n{'some words on it. ' * 20}\n\nSigned-off-by: Author <author@example.org>\n"
        )
        diff = "\n".join(f"{rng.choice(' +-')}\tword_{rng.randrange(10**6)} = call(argument);" for _ in range(80))
        made.append(Commit(author, author, message, touched, diff))
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="200 commits instead of 5,000")
    parser.add_argument("--maintainers", type=Path)
    options = parser.parse_args()
    rng = random.Random(1)
    if options.maintainers:
        root = options.maintainers.parent
        text = options.maintainers.read_text(encoding="utf-8")
        files = [str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()]
    else:
        text, files = made_up(rng)
    start = time.process_time()
    kernel = maintainers.parse(text)
    parsed = time.process_time() - start
    todo = commits(rng, files, 200 if options.quick else 5000)
    start = time.process_time()
    found = [recipients(commit, kernel) for commit in todo]
    spent = time.process_time() - start
    people = sum(len(one.people) for one in found) / len(found)
    per_thousand = spent / len(todo) * 1000
    print(f"sections {len(kernel.sections)}, files {len(files)}, commits {len(todo)}, {people:.1f} people each")
    print(f"parse                {parsed:6.2f} s CPU (once per MAINTAINERS file)")
    print(f"1,000 commits        {per_thousand:6.2f} s CPU (goal: {GOAL:.0f} s with parsing: ", end="")
    print("met)" if parsed + per_thousand < GOAL else "NOT met)")


if __name__ == "__main__":
    main()
