"""The command adapter: parameters become the program's environment."""

from __future__ import annotations

from bisectbot.jobs.assignment import Job
from workers.benchmarks import find


def test_parameters_are_variables_with_what_they_come_to_on_the_host() -> None:
    parameters = (("nr_task", "50%"), ("mode", "process"), ("il-mode", "x"))
    job = Job("j", "t", "command", "g", (), "./run", parameters, params=(("nr_task", "64"),))
    program = find("command").program(job)
    assert program.line == "./run"
    assert program.environment == {"nr_task": "64", "mode": "process", "il_mode": "x"}
