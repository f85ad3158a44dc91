"""``python -m bisectbot`` is the ``bisectbot`` command."""

from bisectbot.cli import main

main()
