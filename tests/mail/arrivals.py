"""Mails as they come in, each as the program concerned lays it out."""

from __future__ import annotations

REPORT_ID = "<202311142213.93b7d0a2-bisectbot@bisectbot.example.org>"

ANSWER = f"""\
Return-Path: <ada@example.org>
Delivered-To: bot@bisectbot.example.org
From: =?utf-8?q?Ada_L=C3=B6velace?= <ada@example.org>
To: bisectbot <bot@bisectbot.example.org>
Cc: Grace Hopper <grace@example.net>, linux-mm@lists.example.net
Subject: Re: [linux-next:master] [mm/slub]  93b7d0a2c4:
  will-it-scale.per_process_ops 3.2% regression
Date: Wed, 15 Nov 2023 09:00:00 +0100
Message-ID: <answer@example.org>
In-Reply-To: {REPORT_ID}
References: <patch@example.org> {REPORT_ID}
Content-Type: text/plain; charset=utf-8
Content-Transfer-Encoding: quoted-printable

Thanks, that is =C3=B6dd.

On Tue, Nov 14, 2023 at 10:13:20PM +0000, bisectbot wrote:
> Hello,
>=20
> #bisectbot retry R12

Does it go away with this?

#bisectbot test base=3D93b7d0a2c4
#bisectbot status

```
#bisectbot cancel B1
```

diff --git a/mm/slub.c b/mm/slub.c
--- a/mm/slub.c
+++ b/mm/slub.c
@@ -1 +1 @@
-a
+b
--=20
Ada
#bisectbot pause
"""

THROUGH_A_LIST = f"""\
Return-Path: <linux-mm+bounces-1-bot=bisectbot.example.org@lists.example.net>
From: Grace Hopper <grace@example.net>
To: Ada <ada@example.org>
Cc: bot@bisectbot.example.org
Subject: Re: a regression
Message-ID: <listed@example.net>
In-Reply-To: <answer@example.org>
References: {REPORT_ID}
  <answer@example.org>
List-Id: <linux-mm.lists.example.net>
Precedence: bulk
X-Loop: linux-mm@lists.example.net

Agreed.
"""

VACATION = f"""\
Return-Path: <>
From: Ada <ada@example.org>
To: bounce+7@bisectbot.example.org
Subject: Out of office: [linux-next:master] regression
Auto-Submitted: auto-replied
Message-ID: <vacation@example.org>
In-Reply-To: {REPORT_ID}

I am away.
#bisectbot status
"""

POSTFIX_BOUNCE = f"""\
Return-Path: <>
Delivered-To: bounce+7@bisectbot.example.org
Received: by mx.example.net (Postfix) id 5A2B41C0; Tue, 14 Nov 2023 22:13:25 +0000 (UTC)
Date: Tue, 14 Nov 2023 22:13:25 +0000 (UTC)
From: MAILER-DAEMON@mx.example.net (Mail Delivery System)
Subject: Undelivered Mail Returned to Sender
To: bounce+7@bisectbot.example.org
Auto-Submitted: auto-replied
MIME-Version: 1.0
Content-Type: multipart/report; report-type=delivery-status;
	boundary="3F00/mx.example.net"
Message-Id: <20231114221325.5A2B41C0@mx.example.net>

This is a MIME-encapsulated message.

--3F00/mx.example.net
Content-Description: Notification
Content-Type: text/plain; charset=us-ascii

I'm sorry to have to inform you that your message could not be delivered.

--3F00/mx.example.net
Content-Description: Delivery report
Content-Type: message/delivery-status

Reporting-MTA: dns; mx.example.net
Arrival-Date: Tue, 14 Nov 2023 22:13:21 +0000 (UTC)

Final-Recipient: rfc822; new@example.net
Original-Recipient: rfc822;grace@example.net
Action: failed
Status: 5.1.1
Remote-MTA: dns; mail.example.net
Diagnostic-Code: smtp; 550 5.1.1 <new@example.net>: Recipient
    address rejected: User unknown

Final-Recipient: rfc822; ada@example.org
Action: delayed
Status: 4.4.1

--3F00/mx.example.net
Content-Description: Undelivered Message Headers
Content-Type: text/rfc822-headers

From: bisectbot <bot@bisectbot.example.org>
To: Ada <ada@example.org>
Subject: [linux-next:master] regression
Message-ID: {REPORT_ID}

--3F00/mx.example.net--
"""

WHOLE_LETTER_BOUNCE = POSTFIX_BOUNCE.replace("text/rfc822-headers", "message/rfc822").replace(
    f"Message-ID: {REPORT_ID}\n", f"Message-ID: {REPORT_ID}\n\nHello,\n"
)

PLAIN_BOUNCE = """\
From: MAILER-DAEMON@old.example.net
To: bounce+7@bisectbot.example.org
Subject: failure notice
Message-ID: <plain@old.example.net>

Hi. This is the mail program at old.example.net.
<ada@example.org>: Sorry, no mailbox here by that name.
"""
