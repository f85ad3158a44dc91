"""Letters to try things on."""

from __future__ import annotations

from typing import Any

from bisectbot.mail.mailbox import Mailbox
from bisectbot.mail.message import Facts, Identity, Kind, Letter

NOW = 1_700_000_000.0  # 2023-11-14 22:13:20 UTC
IDENTITY = Identity(
    "bot@bisectbot.example.org",
    reply_to=(Mailbox("perf@lists.example.org"),),
    unsubscribe_url="https://bisectbot.example.org/unsubscribe",
)
AUTHOR = Mailbox("ada@example.org", "Ada Lovelace")
REVIEWER = Mailbox("grace@example.net", "Grace Hopper")
LIST = Mailbox("linux-mm@lists.example.net")

BODY = """\


Hello,

bisectbot noticed a 3.2% regression of will-it-scale.per_process_ops on:


commit: 93b7d0a2c4e6f8091a2b3c4d5e6f708192a3b4c5 ("mm/slub: keep partial slabs on their lists")

5f0c1e27a9b3d1c8 93b7d0a2c4e6f8091a2b3c4d5e6
---------------- ---------------------------
         %stddev     %change         %stddev
             \\          |                \\
     53965            -2.6%      52559        will-it-scale.per_process_ops
      3481 ±  9%     -22.2%       2707 ±  2%  vmstat.system.cs


--\x20
bisectbot: how to stop this mail is in its headers
"""


def letter(**changes: Any) -> Letter:
    """A sound report with some fields changed."""
    fields: dict[str, Any] = {
        "key": "93b7d0a2c4e6f809",
        "kind": Kind.REPORT,
        "subject": "[linux-next:master] [mm/slub]  93b7d0a2c4:  will-it-scale.per_process_ops 3.2% regression",
        "body": BODY,
        "to": (AUTHOR,),
        "cc": (REVIEWER, LIST),
        "facts": Facts(
            "R12", "93b7d0a2c4e6f8091a2b3c4d5e6f708192a3b4c5", ("icl-2sp2",), ("will-it-scale.per_process_ops",), 0.993
        ),
    }
    return Letter(**(fields | changes))
