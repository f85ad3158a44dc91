"""The demo's example history: a small record store in C with its own benchmark, grown over some forty commits.

Every commit adds one feature to the sources; a commit's files follow from the features that it and its ancestors
have. So merges never conflict, and a seed decides what comes when, who did it, and how much slower the culprit is.

The benchmark looks up records of many sizes by keys that it draws anew for each run: the fewer lookups a run makes, the
more it differs from the next, on the quietest machine.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path

from bisectbot.source.git import Git

BRANCH = "main"
HEADS = 17
"""Pushes after the first one."""
EFFECT = (0.08, 0.15)
"""The culprit makes a lookup so much slower; drawn from the seed."""
_WORDS = 256
_PEOPLE = ("Ada Byron", "Grace Murray", "Edsger Rotterdam", "Barbara Clu", "Dennis Bell")

_MAKEFILE = """\
CFLAGS = -O2 -fno-inline -falign-functions=64 -std=c11 -Wall
bench: bench.c store.c store.h
\t$(CC) $(CFLAGS) -o $@ bench.c store.c
"""

_HEADER = """\
#ifndef STORE_H
#define STORE_H
#include <stdint.h>

#define WORDS {words}
#define SLOTS 64

struct record {{
	uint32_t words;
	uint32_t payload[WORDS];
}};

void store_fill(struct record *slots);
uint32_t store_get(const struct record *slots, uint32_t key);
{declarations}
#endif
"""

_STORE = """\
#include "store.h"

{top}static uint32_t mix(uint32_t h)
{{
	h ^= h >> 16;
	h *= 0x7feb352du;
	h ^= h >> 15;
	return h;
}}

void store_fill(struct record *slots)
{{
	for (uint32_t slot = 0; slot < SLOTS; slot++) {{
		slots[slot].words = WORDS / 16 + mix(slot + 1) % (WORDS - WORDS / 16);
		for (uint32_t i = 0; i < WORDS; i++)
			slots[slot].payload[i] = mix(slot * WORDS + i + 1);
	}}
}}

{before}uint32_t store_get(const struct record *slots, uint32_t key)
{{
	const struct record *{record} = &slots[key % SLOTS];
	uint32_t {sum} = key;

{guard}	for (uint32_t i = 0; i < {record}->words; i++)
		{sum} = mix({sum} ^ {record}->payload[i]);
{tail}	return {sum};
}}
{after}"""

_BENCH = """\
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "store.h"

#define ROUNDS 5

static struct record slots[SLOTS];

static double seconds(void)
{{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec * 1e-9;
}}

/* Keys come as they come: each run draws its own. */
static uint32_t draw(uint32_t *state)
{{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return *state;
}}

static int ascending(const void *a, const void *b)
{{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}}

int main(int argc, char **argv)
{{
	unsigned long lookups = argc > 1 ? strtoul(argv[1], NULL, 10) : 20000;
	volatile uint32_t sink = 0;
	double taken[ROUNDS];
	struct timespec now;
	uint32_t state;

	clock_gettime(CLOCK_REALTIME, &now);
	state = ((uint32_t)now.tv_nsec ^ (uint32_t)now.tv_sec << 12) | 1;
	store_fill(slots);
	for (unsigned long i = 0; i < SLOTS; i++)
		sink += store_get(slots, (uint32_t)i);
	for (int round = 0; round < ROUNDS; round++) {{
		double start = seconds();

		for (unsigned long i = 0; i < lookups; i++)
			sink += store_get(slots, draw(&state));
		taken[round] = seconds() - start;
	}}
	/* The median: a round in which something else had the CPU says nothing of the store. */
	qsort(taken, ROUNDS, sizeof(taken[0]), ascending);
	printf("store.lookups_per_sec: %.1f\\n", lookups / taken[ROUNDS / 2]);
{report}	return 0;
}}
"""


@dataclass(frozen=True)
class Feature:
    """What one commit does: the piece of which file it fills in, and with what."""

    subject: str
    place: str
    text: str = ""


@dataclass(frozen=True)
class Made:
    """The repository that was made. ``heads`` are what the branch is pushed to, in order, the first one included."""

    heads: tuple[str, ...]
    culprit: str
    effect: float
    commits: int
    unbuildable: str
    inert: str


# All of them touch store_get, and none makes it slower.
_SAME_FUNCTION = (
    Feature("store: call the record by what it is", "record", "found"),
    Feature("store: name the checksum in full", "sum", "checksum"),
    Feature("store: say what a lookup returns", "before", "/* The checksum of the record that `key` falls into. */\n"),
    Feature("store: note that keys wrap around", "guard", "\t/* Every key names a record. */\n"),
)

# Small functions beside the path that is measured: subject, name, what it returns.
_BESIDE = (
    ("store: count the records", "store_slots", "SLOTS"),
    ("store: tell how many words a record may have", "store_words", "WORDS"),
    ("store: tell the size of a record", "store_bytes", "sizeof(struct record)"),
    ("store: tell the size of everything", "store_total", "SLOTS * sizeof(struct record)"),
    ("store: say where a key falls", "store_slot_of", "WORDS % SLOTS"),
    ("store: offer the first word's checksum", "store_probe", "mix(1)"),
    ("store: give the format a version", "store_version", "2"),
    ("store: give the format a magic number", "store_magic", "0x53544f52"),
    ("store: offer a salt", "store_salt", "mix(0x5a17)"),
    ("store: tell the alignment of records", "store_alignment", "_Alignof(struct record)"),
    ("store: tell the largest key", "store_largest", "UINT32_MAX"),
    ("store: offer the checksum of nothing", "store_nothing", "mix(0)"),
    ("store: count pages", "store_pages", "SLOTS * sizeof(struct record) / 4096"),
    ("store: tell the rounds of the checksum", "store_rounds", "WORDS"),
)
_REMARKS = (
    "describe the record layout", "list open questions", "how to run the benchmark", "why lookups are checked",
    "what a slot is", "add a table of sizes", "spell checksum the same everywhere", "explain the mixing function",
    "thank the early testers", "plan for larger records", "link the design discussion", "say who maintains what",
)  # fmt: skip
_SCRIPTS = (
    "add a release script", "check the licence headers", "list contributors", "pack a source archive",
    "run the spell checker", "tidy the work tree", "print the version", "look for trailing blanks",
)  # fmt: skip
_INNOCENT = (
    *(Feature(subject, "beside", f"{name} {value}") for subject, name, value in _BESIDE),
    *(Feature(f"notes: {text}", "notes", text) for text in _REMARKS),
    *(Feature(f"tools: {text}", "tools", text) for text in _SCRIPTS),
)


@dataclass
class _Writer:
    """A git fast-import stream; marks are commits."""

    rng: random.Random
    lines: list[bytes] = field(default_factory=list)
    features: dict[int, tuple[Feature, ...]] = field(default_factory=dict)
    effect: float = 0.1
    when: int = 1_700_000_000

    def commit(self, ref: str, subject: str, parents: list[int], feature: Feature | None = None) -> int:
        mark = len(self.features) + 1
        had = tuple(dict.fromkeys(f for parent in parents for f in self.features[parent]))
        self.features[mark] = had if feature is None else (*had, feature)
        self.when += self.rng.randrange(600, 7200)
        name = self.rng.choice(_PEOPLE)
        who = f"{name} <{name.lower().replace(' ', '.')}@example.org> {self.when} +0000"
        message = f"{subject}\n\nSigned-off-by: {who.rsplit(' ', 2)[0]}\n".encode()
        self.lines.append(f"commit {ref}\nmark :{mark}\nauthor {who}\ncommitter {who}\n".encode())
        self.lines.append(b"data %d\n%s" % (len(message), message))
        for word, parent in zip(("from", *["merge"] * len(parents)), parents, strict=False):
            self.lines.append(f"{word} :{parent}\n".encode())
        self.lines.append(b"deleteall\n")
        for path, text in self._files(self.features[mark]).items():
            content = text.encode()
            self.lines.append(b"M 100644 inline %s\ndata %d\n%s\n" % (path.encode(), len(content), content))
        return mark

    def _files(self, features: tuple[Feature, ...]) -> dict[str, str]:
        pieces: dict[str, str] = {"record": "r", "sum": "sum"}
        gathered = dict.fromkeys(("declarations", "top", "before", "guard", "tail", "after", "report"), "")
        notes, tools = ["# Notes"], ["#!/bin/sh"]
        for feature in features:
            match feature.place:
                case "notes":
                    notes.append(f"- {feature.text}")
                case "tools":
                    tools.append(f"# {feature.text}")
                case "record" | "sum":
                    pieces[feature.place] = feature.text
                case "broken":
                    gathered["top"] = feature.text
                case "beside":
                    name, value = feature.text.split(" ", 1)
                    gathered["declarations"] += f"uint32_t {name}(void);\n"
                    gathered["after"] += f"\nuint32_t {name}(void)\n{{\n\treturn {value};\n}}\n"
                case place:
                    gathered[place] += feature.text
        gathered["tail"] = gathered["tail"].format(**pieces) if gathered["tail"] else ""
        return {
            "Makefile": _MAKEFILE,
            "store.h": _HEADER.format(words=_WORDS, declarations=gathered["declarations"]),
            "store.c": _STORE.format(**pieces, **{k: gathered[k] for k in ("top", "before", "guard", "tail", "after")}),
            "bench.c": _BENCH.format(report=gathered["report"]),
            "NOTES.md": "\n".join(notes) + "\n",
            "tools.sh": "\n".join(tools) + "\n",
        }


def make(path: Path, seed: int) -> Made:
    """Write the example history into a new bare repository at ``path``; nothing is pushed to its branch yet.

    The same seed gives the same commits.
    """
    rng = random.Random(seed)  # noqa: S311 - a history, not a secret
    effect = rng.uniform(*EFFECT)
    words = round(effect * _WORDS)
    slower = Feature(
        "store: check the front of the record twice",
        "tail",
        f"\tfor (uint32_t i = 0, front = {{record}}->words * {words} / WORDS; i < front; i++)\n"
        "\t\t{sum} = mix({sum} ^ {record}->payload[i]);\n",
    )
    writer = _Writer(rng, effect=words / _WORDS)
    plan = _Plan(rng, writer, slower)
    heads = plan.write()
    git = Git(path)
    git.init_bare()
    marks = path / "marks"
    git.run("fast-import", "--quiet", "--date-format=raw", f"--export-marks={marks}", input=b"".join(writer.lines))
    shas = dict(line.removeprefix(":").split() for line in marks.read_text().splitlines())
    marks.unlink()
    named = {mark: shas[str(mark)] for mark in writer.features}
    return Made(
        heads=tuple(named[mark] for mark in heads),
        culprit=named[plan.culprit],
        effect=writer.effect,
        commits=len(writer.features),
        unbuildable=named[plan.unbuildable],
        inert=named[plan.inert],
    )


class _Plan:
    """What comes when: pushes of two to four commits, three of them merges of side branches."""

    def __init__(self, rng: random.Random, writer: _Writer, slower: Feature) -> None:
        self.rng = rng
        self.writer = writer
        self.slower = slower
        self.innocent = list(rng.sample(_INNOCENT, len(_INNOCENT)))
        self.touching = list(rng.sample(_SAME_FUNCTION, len(_SAME_FUNCTION)))
        self.culprit = self.unbuildable = self.inert = 0
        self.tip = 0
        self.side = 0

    def write(self) -> list[int]:
        self.tip = self.writer.commit("refs/demo/line", "store: a record store and its benchmark", [])
        heads = [self.tip]
        guilty = self.rng.randrange(7, 9)
        broken = guilty if self.rng.random() < 0.5 else self.rng.randrange(1, HEADS)
        merges = set(self.rng.sample([n for n in range(1, HEADS) if n != guilty], 2)) | {guilty}
        for number in range(HEADS):
            work = [self.innocent.pop() for _ in range(self.rng.randrange(1, 3) if number % 2 else 1)]
            if number == guilty:
                work += [self.touching.pop(), self.slower, self.touching.pop()]
                self.rng.shuffle(work)
            elif number in {guilty - 2, guilty + 1} and self.touching:
                work.append(self.touching.pop())
            self._push(work, merge=number in merges, broken=number == broken)
            heads.append(self.tip)
        return heads

    def _push(self, work: list[Feature], *, merge: bool, broken: bool) -> None:
        half = self.rng.randrange(1, len(work) + 1) if merge else len(work)
        base = self.tip
        for feature in work[:half]:
            self.tip = self._line("refs/demo/line", [self.tip], feature)
        if broken:
            bad = Feature("store: prepare for larger records", "broken", "this does not compile;\n")
            self.unbuildable = self.tip = self.writer.commit("refs/demo/line", bad.subject, [self.tip], bad)
            good = Feature("store: mend the build", "broken", "")
            self.tip = self.writer.commit("refs/demo/line", good.subject, [self.tip], good)
        if merge:
            self.side += 1
            ref = f"refs/demo/side{self.side}"
            tip = base
            for feature in work[half:] or [self.innocent.pop()]:
                tip = self._line(ref, [tip], feature)
            self.tip = self.writer.commit("refs/demo/line", f"Merge branch 'side{self.side}'", [self.tip, tip])

    def _line(self, ref: str, parents: list[int], feature: Feature) -> int:
        mark = self.writer.commit(ref, feature.subject, parents, feature)
        if feature is self.slower:
            self.culprit = mark
        if feature.place in {"notes", "tools"}:
            self.inert = mark
        return mark
