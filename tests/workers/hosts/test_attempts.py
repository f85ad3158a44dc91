"""Attempts to boot: two dead ones decide, whoever is to blame, and a worker that dies forgets none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bisectbot.errors import InfraError, Untestable
from workers.hosts.attempts import Attempt, DiedError, Journal, boot
from workers.hosts.watch import Failure, Phase, death

SIGNATURE = "5" * 64


class Machine:
    """Boots as it is told: each entry is a failure or the seconds that a sound boot takes."""

    def __init__(self, folder: Path, *story: Failure | float) -> None:
        self.folder = folder
        self.story = list(story)
        self.journal = Journal(folder, "box")

    def boot(self):
        return boot(self.journal, SIGNATURE, self.attempt, lambda: 100.0)

    def attempt(self, this: Attempt) -> float:
        assert this.signature == SIGNATURE
        self.journal.reach(Phase.KERNEL_STARTED)
        on_disk = json.loads((self.folder / "boots.json").read_text())
        assert on_disk["current"]["phase"] == "kernel_started"  # before anything is risked
        what = self.story.pop(0)
        if isinstance(what, Failure):
            raise DiedError(death(what, Phase.KERNEL_STARTED, "said so"))
        return what


def told(journal: Journal) -> list[tuple[str, str, str]]:
    return [(record.failure, record.blame, record.phase) for record in journal.take()]


def test_a_sound_boot_is_one_row(tmp_path: Path):
    machine = Machine(tmp_path, 42.0)
    record = machine.boot()
    assert (record.seconds, record.failure, record.phase) == (42.0, "", "verified")
    assert machine.journal.take() == (record,)
    assert machine.journal.take() == ()


def test_one_dead_boot_is_tried_again(tmp_path: Path):
    machine = Machine(tmp_path, Failure.PANIC, 42.0)
    assert machine.boot().seconds == 42.0
    assert told(machine.journal) == [("panic", "kernel", "kernel_started"), ("", "", "verified")]
    assert machine.journal.dead == {}


def test_two_dead_boots_are_untestable(tmp_path: Path):
    machine = Machine(tmp_path, Failure.PANIC, Failure.KERNEL_HANG)
    with pytest.raises(Untestable, match="2 boots died on box: kernel_hang"):
        machine.boot()
    assert [row[0] for row in told(machine.journal)] == ["panic", "kernel_hang"]


@pytest.mark.parametrize(
    "failure", [Failure.NO_POWER, Failure.NO_FIRMWARE, Failure.NO_KERNEL, Failure.WRONG_KERNEL, Failure.SICK]
)
def test_the_machines_fault_is_never_the_commits(tmp_path: Path, failure: Failure):
    machine = Machine(tmp_path, failure)
    with pytest.raises(InfraError, match=failure.value):
        machine.boot()
    assert machine.journal.dead == {}
    assert told(machine.journal) == [(failure.value, "machine", "kernel_started")]


def test_a_dead_boot_outlives_the_worker(tmp_path: Path):
    with pytest.raises(InfraError):
        Machine(tmp_path, Failure.PANIC, Failure.NO_POWER).boot()
    again = Machine(tmp_path, Failure.PANIC)
    with pytest.raises(Untestable):
        again.boot()
    assert [row[0] for row in told(again.journal)] == ["panic", "no_power", "panic"]


def test_a_worker_that_dies_in_a_boot_blames_nobody(tmp_path: Path):
    first = Journal(tmp_path, "box")
    first.begin(SIGNATURE, 1.0)
    first.reach(Phase.RESETTING)
    second = Journal(tmp_path, "box")
    assert told(second) == [("interrupted", "nobody", "resetting")]
    assert second.dead == {}


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"current": 1}', '{"current": null, "dead": {"x": "y"}, "records": []}']
)
def test_a_damaged_journal_is_begun_anew(tmp_path: Path, text: str):
    (tmp_path / "boots.json").write_text(text)
    journal = Journal(tmp_path, "box")
    assert (journal.records, journal.dead) == ([], {})
    journal.begin(SIGNATURE, 1.0)


def test_a_full_disk_is_the_machines_fault(tmp_path: Path):
    journal = Journal(tmp_path / "gone", "box")
    with pytest.raises(InfraError, match="cannot be written"):
        journal.begin(SIGNATURE, 1.0)
