"""The tables (DESIGN §3), by subject: code, farm, verdicts, people."""

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
    Outbox,
    OutboxState,
    Person,
    Reply,
    Report,
    ReportState,
    Request,
    RequestState,
    Subscription,
    Token,
)
from bisectbot.store.tables.verdicts import (
    Bisection,
    BisectionState,
    Experiment,
    ExperimentState,
    Step,
    StepState,
)

__all__ = [
    "Artifact", "Base", "Bisection", "BisectionState", "Boot", "Branch", "Build", "BuildState", "Change",
    "CommandLog", "Commit", "Conversation", "Environment", "Experiment", "ExperimentState", "FailureKind",
    "Finding", "Head", "HeadState", "Host", "HostGroup", "HostState", "Job", "Judged", "Judgement", "Kpi", "Lease",
    "Outbox", "OutboxState", "Person", "Purpose", "Reply", "Report", "ReportState", "Request", "RequestState",
    "Run", "RunState", "Sample", "Series", "Step", "StepState", "Subscription", "Token", "Tree",
]  # fmt: skip
