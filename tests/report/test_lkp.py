"""Kernel test robot mails read into our record, and their tables printed back."""

from __future__ import annotations

import quopri
import textwrap
from collections.abc import Callable
from email.message import EmailMessage
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bisectbot.errors import UserError
from bisectbot.report import (
    Commit,
    Difference,
    Direction,
    Finding,
    Machine,
    Person,
    Report,
    Still,
    Tree,
    from_json,
    to_json,
)
from bisectbot.report.lkp import parse_report
from bisectbot.report.render import tables_text

MAILS = Path(__file__).parents[1] / "golden" / "report" / "mails"
SHARED = Path(__file__).parents[2].parent / "shared" / "lkp" / "reports"
CULPRIT = "93b7d0a2c4e6f8091a2b3c4d5e6f708192a3b4c5"
SUBJECT = "[vbabka-slab:slab/for-next] [mm/slub]  93b7d0a2c4: will-it-scale.per_process_ops -3.4% regression"


def text(name: str) -> str:
    return (MAILS / f"{name}.txt").read_text(encoding="utf-8")


def tables_of(mail: str) -> str:
    """The part of a mail from its first table to the end of its last."""
    lines = mail.split("\n")
    start = next(i for i, line in enumerate(lines) if line.startswith("=" * 60))
    last = next(i for i in reversed(range(len(lines))) if lines[i].startswith(("     18600", "   2000000")))
    return "\n".join(lines[start : last + 1]) + "\n"


def mail(body: str, **headers: str) -> EmailMessage:
    message = EmailMessage()
    for name, value in {"Subject": SUBJECT, "From": "kernel test robot <robot@example.org>", **headers}.items():
        message[name] = value
    message.set_content(body)
    return message


def test_2023():
    report = parse_report(
        mail(text("2023"), **{"Message-ID": "<1@example.org>", "Date": "Sun, 08 Oct 2023 06:40:00 +0000"}).as_bytes()
    )
    assert report.commit == Commit(CULPRIT, 'mm/slub: keep "remote" partial slabs where they came from')
    assert report.parent == Commit("5f0c1e27a9b34d66", "mm/slub: count frees per node")
    assert report.tree == Tree(
        "https://git.example.org/cgit/linux/kernel/git/vbabka/slab.git", "slab/for-next", "vbabka-slab"
    )
    assert report.area == "mm/slub"
    machine = "64 threads 2 sockets Xeon(R) Gold 6346 CPU @ 3.10GHz (Ice Lake) with 256G memory"
    assert report.finding == Finding(
        "will-it-scale.per_process_ops",
        Direction.REGRESSION,
        -3.4,
        "will-it-scale",
        Machine(machine, "lkp-icl-2sp7"),
        (("nr_task", "50%"), ("mode", "process"), ("test", "open1"), ("cpufreq_governor", "performance")),
        "x86_64-rhel-8.3",
        "gcc-12",
    )
    assert report.also == (
        Finding(
            "phoronix-test-suite.memcached.5:1.ops_sec",
            Direction.IMPROVEMENT,
            5.0,
            "phoronix-test-suite",
            Machine("96 threads 2 sockets Xeon(R) Gold 6252 CPU @ 2.10GHz with 512G memory", "lkp-csl-2sp4"),
            (("cpufreq_governor", "performance"), ("option_a", "5:1")),
        ),
        Finding("xfstests.xfs.348.fail", Direction.FAILURE, None, "xfstests", None, (("fs", "xfs"),)),
    )
    assert report.explanation is not None
    assert report.explanation.differences == (
        Difference(
            "boot logs",
            ("[    1.311098][    T0] smpboot: Allowing 168 CPUs, 120 hotplug CPUs",),
            ("[    1.311075][    T0] smpboot: Allowing 48 CPUs, 0 hotplug CPUs",),
        ),
    )
    assert report.notes == ("the change looks unrelated to us, so we ran it again:\nthe numbers are the same.",)
    assert report.thread == "https://lore.kernel.org/oe-lkp/202310081429.a30c99f2-robot@example.org"
    assert report.archive.endswith("20231008/202310081429.a30c99f2-robot@example.org")
    assert report.sender == Person("kernel test robot", "robot@example.org")
    assert (report.message_id, report.date) == ("<1@example.org>", "Sun, 08 Oct 2023 06:40:00 +0000")
    assert [len(table.rows) for table in report.tables] == [4, 1]
    assert [table.edits for table in report.tables] == [(), ()]
    assert tables_text(report) == tables_of(text("2023"))


def test_2019_with_charts_and_a_tag():
    report = parse_report(text("2019").encode())
    assert report.finding.stat == "hackbench.throughput"
    assert report.finding.machine == Machine(
        "72 threads Xeon(R) CPU E5-2699 v3 @ 2.30GHz with 256G memory", "lkp-hsw-ep4"
    )
    assert report.finding.parameters[-1] == ("ucode", "0x43")
    assert report.parent == Commit("v5.4-rc1")
    assert report.reproduce[1] == "cd lkp-tests"
    assert [table.rows[0].cells[1].mean for table in report.tables] == [166284, 17670]
    assert "bisect-good" not in tables_text(report)


def test_functional():
    report = parse_report(text("functional").encode())
    assert report.finding.stat == "xfstests.xfs.348.fail"
    assert report.finding.direction is Direction.FAILURE
    assert report.finding.config == "x86_64-rhel-9.4-func"
    assert report.still == (Still("test failed", "linux-next/master", "8566fc3b96539e3235909d6bdda198e1282beaed"),)
    assert report.tree.url.startswith("https://github.com/example/linux/commits/")
    assert "patch subject: [PATCH v4 2/5] xfs: be stricter" in report.notes
    assert report.tables == ()


def quoted(body: str) -> str:
    marked = textwrap.indent(body, "> ", lambda _: True).replace("> \n", ">\n")
    return f"On Sunday, somebody wrote:\n{marked}".replace(">   5f0c", ">   5f0c") + "\nSo what?\n"


def quoted_printable(body: str) -> bytes:
    head = (
        f"Subject: {SUBJECT}\nContent-Transfer-Encoding: quoted-printable\nContent-Type: text/plain; charset=utf-8\n\n"
    )
    return head.encode() + quopri.encodestring(body.encode())


def attached(body: str) -> bytes:
    message = mail(body)
    message.add_attachment("commit: 0000000000000000000000000000000000000000\n", filename="job.yaml")
    message.add_attachment(b"\xfd7zXZ", maintype="application", subtype="x-xz", filename="kmsg.xz")
    return message.as_bytes()


def encoded(body: str, cte: str, charset: str = "utf-8") -> bytes:
    message = EmailMessage()
    message["Subject"] = SUBJECT
    message.set_content(body, cte=cte, charset=charset)
    return message.as_bytes()


def mbox(body: str) -> bytes:
    other = b"From a@b Sun Oct  8 06:40:00 2023\nSubject: hello\n\nnothing here\n\n"
    return other + b"From mboxrd@z Thu Jan  1 00:00:00 1970\n" + f"Subject: {SUBJECT}\n\n{body}".encode()


def flowed(body: str) -> bytes:
    """As a reader sends it that breaks long rows before their name."""
    lines = []
    for line in body.split("\n"):
        stuffed = f" {line}" if line.startswith((" ", ">", "From ")) else line
        if len(stuffed) > 78 and "  perf-s" in stuffed:
            at = stuffed.rindex(" ") + 1
            lines += [stuffed[:at], stuffed[at:]]
        else:
            lines.append(stuffed)
    head = "Subject: x\nContent-Type: text/plain; charset=utf-8; format=flowed\nContent-Transfer-Encoding: 8bit\n\n"
    return (head + "\n".join(lines)).encode()


@pytest.mark.parametrize(
    "wrap",
    [
        lambda body: body.encode(),
        lambda body: body.replace("\n", "\r\n").encode(),
        lambda body: b"\xef\xbb\xbf" + body.encode(),
        lambda body: f"Subject: {SUBJECT}\nX-Attachments: []\n\n{body}".encode(),
        lambda body: f"Subject: x\nContent-Type: text/plain; charset=us-ascii\n\n{body}".encode(),
        lambda body: f"Subject: x\nContent-Type: text/plain; charset=iso-8859-1\n\n{body}".encode("latin-1"),
        lambda body: f"Subject: x\nContent-Type: text/plain; charset=nonsense\n\n{body}".encode(),
        lambda body: encoded(body, "base64"),
        lambda body: encoded(body, "quoted-printable", "iso-8859-1"),
        lambda body: encoded(body, "8bit"),
        quoted_printable,
        attached,
        mbox,
        flowed,
        lambda body: mail(quoted(body)).as_bytes(),
        lambda body: mail(quoted(quoted(body))).as_bytes(),
    ],
)
def test_however_it_comes(wrap: Callable[[str], bytes]):
    report = parse_report(wrap(text("2023")))
    plain = parse_report(text("2023").encode())
    assert report.commit == plain.commit
    assert report.finding == plain.finding
    assert report.tables[0].rows == plain.tables[0].rows
    stripped = [line.rstrip() for line in tables_text(report).split("\n")]
    assert stripped == [line.rstrip() for line in tables_text(plain).split("\n")]


def test_encodings_keep_every_byte_of_the_tables():
    for data in (quoted_printable(text("2023")), attached(text("2023")), mbox(text("2023")), flowed(text("2023"))):
        assert tables_text(parse_report(data)) == tables_of(text("2023"))


FOLLOW_UP = """\
hi, Somebody,

your patch brings it back.

commit:
  5f0c1e27a9 ("mm/slub: count frees per node")
  93b7d0a2c4 ("mm/slub: keep them")
  2c43a225261 <--- your patch

5f0c1e27a9b34d66 93b7d0a2c4e6f8091a2b3c4d5e6 2c43a2252614bf1692ef2ad5a46
---------------- --------------------------- ---------------------------
         %stddev     %change         %stddev     %change         %stddev
             \\          |                \\          |                \\
       107            +1.3%       5024            +1.2%       5020        time.system_time
    263173           -11.7%     232411            -0.5%     261953        will-it-scale.per_process_ops

> [ numbers ]
"""


def test_follow_up_without_a_sentence_of_its_own():
    subject = "Re: [linus:master] [mm/slub]  93b7d0a2c4: will-it-scale.per_process_ops 11.7% regression"
    report = parse_report(mail(FOLLOW_UP, Subject=subject).as_bytes())
    assert report.commit == Commit("93b7d0a2c4")
    assert (report.finding.stat, report.finding.percent) == ("will-it-scale.per_process_ops", -11.7)
    assert [column.text for column in report.tables[0].columns][2] == "2c43a225261 <--- your patch"
    assert tables_text(report) in FOLLOW_UP


def test_a_bare_table_tells_its_own_commit():
    report = parse_report(FOLLOW_UP.partition("commit:")[2].encode())
    assert report.commit.id == "2c43a2252614bf1692ef2ad5a46"
    assert report.finding == Finding("will-it-scale.per_process_ops", Direction.CHANGE, -0.5)


def test_what_the_mail_does_not_say_the_axes_do():
    keys, values = "compiler/kconfig/nr_task/tbox_group/test/testcase:", "gcc-9/k/30%/lkp-x/shell8/unixbench"
    axes = f"{'=' * 89}\n{keys}\n  {values}\n\n"
    report = parse_report((axes + FOLLOW_UP.partition("back.\n\n")[2]).encode())
    assert (report.finding.testcase, report.finding.config, report.finding.compiler) == ("unixbench", "k", "gcc-9")
    assert report.finding.parameters == (("nr_task", "30%"), ("test", "shell8"))
    assert report.finding.machine == Machine("", "lkp-x")


def test_folded_by_a_reader():
    folded = (
        text("2019").replace("E5-2699 v3", "E5-2699\nv3").replace('("sched/fair: Rank idle', '("sched/fair: Rank\nidle')
    )
    report = parse_report(folded.encode())
    assert report.commit.subject == "sched/fair: Rank idle tasks later"
    assert report.finding.machine is not None
    assert report.finding.machine.description.startswith("72 threads Xeon(R) CPU E5-2699 v3 @")
    assert report.finding.parameters[0] == ("nr_threads", "50%")


BUILD = b"tree: git://x master\ncommit: 93b7d0a2c4e6f8091a2b3c4d5e6f708192a3b4c5 [1/2] mm\n\nmm.c:1: error: x\n"


@pytest.mark.parametrize(
    "data", [b"", b"\0\xff\xfe", b"Subject: hi\n\nlunch?\n", b"From a Mon 10:00\n\n", b"> > >\n", BUILD]
)
def test_no_report_is_one_line(data: bytes):
    with pytest.raises(UserError, match=r"mail\.eml: no report in it"):
        parse_report(data, "mail.eml")


@given(
    st.sampled_from(["2023", "2019", "functional"]), st.integers(0, 2**32), st.binary(max_size=8), st.integers(0, 80)
)
@settings(max_examples=60, deadline=None)
def test_damage_never_crashes(name: str, where: int, what: bytes, length: int):
    data = quoted_printable(text(name))
    at = where % len(data)
    try:
        report = parse_report(data[:at] + what + data[at + length :])
    except UserError:
        return
    assert from_json(to_json(report)) == report
    assert isinstance(report, Report)


def test_public_mails():
    """The mails at hand print their tables back, and nothing of them needs an edit."""
    for path in sorted(SHARED.glob("*.txt")):
        data = path.read_bytes()
        report = from_json(to_json(parse_report(data, path.name)))
        assert len(report.commit.id) == 40, path.name
        assert report.finding.stat in {row.name for row in report.tables[0].rows}, path.name
        assert report.finding.parameters
        assert len(report.tables) == len(report.also) + 1
        assert tables_text(report) in data.decode()
        assert not any(table.edits for table in report.tables)
