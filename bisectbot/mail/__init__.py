"""To whom, and that it arrives: recipients, outbox, SMTP, replies."""
