"""What an operator edits, as frozen objects: ``bisectbot.yaml`` and the files it names.

Paths are relative to the file that names them. Durations are ``90``, ``90s``, ``10m``, ``2h`` or ``1d``.
"""

from bisectbot.config.builds import Build
from bisectbot.config.hosts import Host, LocalDriver, QemuDriver, ReadySpec, SimulatedDriver, SshDriver
from bisectbot.config.jobs import JobSpec, KpiSpec, SourceSpec, job_folders
from bisectbot.config.policy import BisectionPolicy, CanarySpec, CostsSpec, Server, VerifyPolicy, WorkerSpec
from bisectbot.config.reading import load
from bisectbot.config.trees import Branch, BranchKind, Tree
from bisectbot.config.whole import Config

__all__ = [
    "BisectionPolicy",
    "Branch",
    "BranchKind",
    "Build",
    "CanarySpec",
    "Config",
    "CostsSpec",
    "Host",
    "JobSpec",
    "KpiSpec",
    "LocalDriver",
    "QemuDriver",
    "ReadySpec",
    "Server",
    "SimulatedDriver",
    "SourceSpec",
    "SshDriver",
    "Tree",
    "VerifyPolicy",
    "WorkerSpec",
    "job_folders",
    "load",
]
