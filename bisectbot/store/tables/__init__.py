"""The tables, by subject: code, farm, verdicts, people, post."""

from bisectbot.store.tables.base import Base
from bisectbot.store.tables.code import Branch, Change, Commit, Head, HeadState, Tree
from bisectbot.store.tables.farm import (
    Artifact,
    Boot,
    Build,
    BuildState,
    Environment,
    FailureKind,
    Host,
    HostGroup,
    HostState,
    Job,
    Kpi,
    Lease,
    Purpose,
    Run,
    RunState,
    Sample,
    Series,
)
from bisectbot.store.tables.people import (
    CommandLog,
    Conversation,
    Finding,
    Judged,
    Judgement,
    Person,
    Report,
    ReportState,
    Request,
    RequestState,
    Subscription,
    Token,
)
from bisectbot.store.tables.post import Bounce, OptOut, Outbox, OutboxState, Reply, Sighting, Switch
from bisectbot.store.tables.verdicts import (
    Bisection,
    BisectionState,
    Experiment,
    ExperimentState,
    Step,
    StepState,
)

__all__ = [
    "Artifact", "Base", "Bisection", "BisectionState", "Boot", "Bounce", "Branch", "Build", "BuildState",
    "Change", "CommandLog", "Commit", "Conversation", "Environment", "Experiment", "ExperimentState",
    "FailureKind", "Finding", "Head", "HeadState", "Host", "HostGroup", "HostState", "Job", "Judged",
    "Judgement", "Kpi", "Lease", "OptOut", "Outbox", "OutboxState", "Person", "Purpose", "Reply", "Report",
    "ReportState", "Request", "RequestState", "Run", "RunState", "Sample", "Series", "Sighting", "Step",
    "StepState", "Subscription", "Switch", "Token", "Tree",
]  # fmt: skip
