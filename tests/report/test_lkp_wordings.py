# ruff: noqa: W291 - lines of a table's head end in blanks
"""Mails of other kinds than the monthly report: replies with tables of their own, boot failures, pasted pieces."""

from __future__ import annotations

import textwrap

import pytest

from bisectbot.report import Direction, from_json, to_json
from bisectbot.report.lkp import parse_report
from bisectbot.report.render import render_mail, tables_text
from bisectbot.results.occurrences import Box

COMMIT = 'commit: 93b7d0a2c4e6f8091a2b3c4d5e6f708192a3b4c5 ("mm/slub: keep partial slabs")'
BOX = """\
+------------------------------------------+------------+------------+
|                                          | 5f0c1e27a9 | 93b7d0a2c4 |
+------------------------------------------+------------+------------+
| boot_successes                           | 12         | 0          |
| boot_failures                            | 0          | 14         |
| BUG:sleeping_function_called_from_slub.c | 0          | 14         |
+------------------------------------------+------------+------------+
"""
QUOTED = """\
5f0c1e27a9b34d66 93b7d0a2c4e6f8091a2b3c4d5e6 
---------------- --------------------------- 
         %stddev     %change         %stddev
             \\          |                \\  
     45589           -15.1%      38687 ±  2%  fxmark.works/sec
"""
OWN = """\
commit: 
  5f0c1e27a9 ("mm/slub: count frees per node")
  93b7d0a2c4 ("mm/slub: keep partial slabs")
  aaaaaaaaaa ("the fix")

5f0c1e27a9b34d66 93b7d0a2c4e6f8091a2b3c4d5e6 aaaaaaaaaa0123456789abcdef0 
---------------- --------------------------- --------------------------- 
         %stddev     %change         %stddev     %change         %stddev
             \\          |                \\          |                \\  
     45589           -15.1%      38687 ±  2%      +0.3%      45721        fxmark.works/sec
"""


def quoted(text: str, by: str = "> > ") -> str:
    return "".join(f"{by}{line}\n" for line in text.splitlines())


def test_a_reply_s_own_table_follows_the_one_it_quotes():
    head = f"kernel test robot noticed a -15.1% regression of fxmark.works/sec on:\n\n{COMMIT}\n\n"
    reply = (
        f"hi,\n\n> On Monday, the robot wrote:\n{quoted(head + QUOTED)}> please try this\n\nbetter:\n\n{OWN}\nthanks\n"
    )
    report = parse_report(reply.encode())
    assert tables_text(report) == QUOTED + OWN
    assert report.finding.percent == -15.1
    assert [len(table.columns) for table in report.tables] == [2, 3]
    assert tables_text(from_json(to_json(report))) == QUOTED + OWN


def test_a_quoted_table_goes_on_after_a_remark():
    head = f"kernel test robot noticed a -15.1% regression of fxmark.works/sec on:\n\n{COMMIT}\n\n"
    more = "     12.00           -15.1%      10.19        fxmark.idle_sec\n"
    reply = f"{quoted(head + QUOTED, '> ')}\nindeed\n\n{quoted(more, '> ')}"
    assert tables_text(parse_report(reply.encode())) == QUOTED + more


def test_pasted_rows_keep_their_titles():
    titles = "".join(QUOTED.splitlines(keepends=True)[2:])
    report = parse_report(f"{COMMIT}\n\nagain, with another scheduler:\n\n{titles}\nand that was it\n".encode())
    assert tables_text(report) == titles


def test_pasted_rows_that_lost_their_place():
    row = "  2015880 ±  3%     +92.0%    3870164        fsmark.app_overhead\n"
    report = parse_report(f"{COMMIT}\n\nstill similar:\n\n{row}\nwe grew 3 +2% 5 times\n".encode())
    assert tables_text(report) == row
    assert (report.finding.stat, report.finding.percent) == ("fsmark.app_overhead", 92.0)


def test_the_older_tool_s_table():
    table = (
        "06c4d00466eb3748  d369f9be1ad1e22da4e8f03557  testcase/testparams/testbox\n"
        "----------------  --------------------------  ---------------------------\n"
        "         %stddev      change         %stddev\n"
        "             \\          |                \\  \n"
        "     93200             114%     199599        will-it-scale/performance-process-16-read2/lkp-ivb-d02\n"
        "     93200             114%     199599        GEO-MEAN will-it-scale.per_process_ops\n"
    )
    assert tables_text(parse_report(f"{COMMIT}\n\nthe patch can fix it:\n\n{table}\nBest Regards\n".encode())) == table


@pytest.mark.parametrize(
    ("subject", "sentence", "stat"),
    [
        ("[mm/slub]  93b7d0a2c4: BUG:kernel_NULL_pointer_dereference,\n address", "the following commit", None),
        ("Re: [PATCH 2/2] mm: fix style", "xfstests.btrfs.047.fail due to commit", "xfstests.btrfs.047.fail"),
        ("[btrfs]  93b7d0a2c4: xfstests.generic.311.fail\n xfstests.generic.547.fail", "the following commit", None),
        ("[nvme] 93b7d0a2c4: nvme nvme0: Identify Controller failed (16641)", "the following commit", None),
    ],
)
def test_failures_are_told_in_many_ways(subject: str, sentence: str, stat: str | None):
    expected = stat or {
        "BUG": "BUG:kernel_NULL_pointer_dereference,address",
        "xfs": "xfstests.generic.311.fail",
        "nvm": "nvme_nvme#:Identify_Controller_failed(#)",
    }.get(subject.rsplit("93b7d0a2c4: ", 1)[1][:3])
    body = f"Greeting,\n\nFYI, we noticed {sentence} (built with gcc-11):\n\n{COMMIT}\nurl: https://example.org/x\n"
    report = parse_report(f"From: kernel test robot <r@example.org>\nSubject: {subject}\n\n{body}".encode())
    assert (report.finding.stat, report.finding.direction) == (expected, Direction.FAILURE)
    assert report.commit.id.startswith("93b7d0a2c4")


def test_the_box_of_a_boot_failure():
    body = f"FYI, we noticed the following commit:\n\n{COMMIT}\n\nin testcase: boot\n\n{BOX}\n[  3.1] oops\n"
    report = parse_report(body.encode())
    assert report.boxes == (
        Box(
            ("5f0c1e27a9", "93b7d0a2c4"),
            (
                ("boot_successes", ("12", "0")),
                ("boot_failures", ("0", "14")),
                ("BUG:sleeping_function_called_from_slub.c", ("0", "14")),
            ),
        ),
    )
    assert report.finding.stat == "BUG:sleeping_function_called_from_slub.c"
    assert tables_text(from_json(to_json(report))) == BOX
    assert BOX in render_mail(report).body
    reply = f"> {body}".replace("\n", "\n> ")
    assert tables_text(parse_report(reply.encode())) == BOX


def test_a_box_that_lost_its_longest_row_keeps_its_width():
    box = "".join(line for line in BOX.splitlines(keepends=True) if "BUG" not in line)
    report = parse_report(f"FYI, we noticed last_state.booting due to commit\n\n{COMMIT}\n\n{box}\n".encode())
    assert tables_text(report) == box


def test_a_page_that_shows_the_mail_indented():
    body = f"kernel test robot noticed a -15.1% regression of fxmark.works/sec on:\n\n{COMMIT}\n\n{QUOTED}"
    assert tables_text(parse_report(textwrap.indent(body, "    ").encode())) == QUOTED


def test_logs_of_a_failed_test_are_no_notes():
    body = (
        f'kernel test robot noticed "ltp.ksm01.fail" on:\n\n{COMMIT}\n\nthe parent is clean.\n\n'
        "If you fix the issue in a separate patch/commit, kindly add following tags\n| Reported-by: x\n\n"
        "Running tests.......\nksm01 0 TINFO\n"
    )
    assert parse_report(body.encode()).notes == ("the parent is clean.",)


def test_how_sure_it_is_does_not_name_the_area():
    headers = "Subject: [genirq/msi] [confidence: ]  93b7d0a2c4: stack_segment:#[##]\nFrom: r@example.org\n\n"
    report = parse_report(f'{headers}kernel test robot noticed "stack_segment:#[##]" on:\n\n{COMMIT}\n'.encode())
    assert report.area == "genirq/msi"
