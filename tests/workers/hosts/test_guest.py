"""The guest's initramfs and the records that come out of it, without a guest."""

from __future__ import annotations

import io
import subprocess
import tarfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from workers.guest import GuestJob, Records, files_of, write_initramfs

NAMES = st.sampled_from(["before", "after", "stdout", "end"])


def sent(records: list[tuple[str, bytes]]) -> bytes:
    return b"".join(b"bisectbot %s %d\n" % (name.encode(), len(content)) + content for name, content in records)


@given(st.lists(st.tuples(NAMES, st.binary(max_size=300))), st.lists(st.integers(1, 50)))
def test_records_arrive_whole_however_they_are_cut(records: list[tuple[str, bytes]], sizes: list[int]):
    stream, got, at = sent(records), [], 0
    reader = Records()
    for size in sizes:
        got += reader.feed(stream[at : at + size])
        at += size
    got += reader.feed(stream[at:])
    assert got == records
    assert reader.skipped == 0


@given(st.binary(max_size=400).filter(lambda noise: b"bisectbot" not in noise), st.binary(max_size=200))
def test_noise_before_a_record_is_skipped(noise: bytes, content: bytes):
    reader = Records()
    assert reader.feed(noise + sent([("end", content)])) == [("end", content)]
    assert reader.skipped == len(noise)


@given(st.binary(max_size=2000))
def test_nothing_that_a_guest_sends_breaks_it(data: bytes):
    Records().feed(data)
    files_of(data)


def test_a_record_that_says_it_is_endless_is_noise():
    reader = Records()
    assert reader.feed(b"bisectbot stdout 99999999999\nx" + sent([("end", b"0")])) == [("end", b"0")]


def test_files_of_a_tar(tmp_path: Path):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        member = tarfile.TarInfo("./proc/version")
        member.size = 5
        tar.addfile(member, io.BytesIO(b"Linux"))
    assert files_of(packed.getvalue()) == {"/proc/version": b"Linux"}
    assert files_of(packed.getvalue()[:40]) == {}


def test_the_initramfs_is_what_cpio_reads_and_always_the_same(tmp_path: Path):
    overlay, work = tmp_path / "overlay", tmp_path / "work"
    (overlay / "usr/bin").mkdir(parents=True)
    (overlay / "usr/bin/bench").write_text("#!/bin/sh\n")
    (overlay / "usr/bin/bench").chmod(0o700)
    (overlay / "usr/bin/link").symlink_to("bench")
    work.mkdir()
    (work / "data").write_text("42\n")
    job = GuestJob("./run", {"n": "it's"}, work, overlay, 4096, ("/proc/version",))
    write_initramfs(job, tmp_path / "one")
    write_initramfs(job, tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    with (tmp_path / "one").open("rb") as archive:
        listing = subprocess.run(["cpio", "-itv"], stdin=archive, capture_output=True, text=True, check=True).stdout
    lines = {line.split()[-1]: line for line in listing.splitlines()}
    assert {"init", "bin/busybox", "job/line", "work/data", "dev/console"} <= set(lines)
    assert lines["init"].startswith("-rwxr-xr-x")
    assert lines["dev/ttyS1"].startswith("crw")
    assert "usr/bin/link -> bench" in lines["bench"]
    with (tmp_path / "one").open("rb") as archive:
        command = ["cpio", "-i", "--quiet", "--to-stdout", "job/environment", "job/snapshot"]
        text = subprocess.run(command, stdin=archive, capture_output=True, text=True, check=True).stdout
    assert text == "export n='it'\\''s'\n/proc/version\n"


def test_init_is_sound_shell():
    subprocess.run(["busybox", "sh", "-n", str(Path("workers/guest/init").resolve())], check=True)
