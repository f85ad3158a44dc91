"""Everything that an lkp-tests on the host knows: it runs the job file, and its result root is read.

``LKP_SRC`` or the job's source says where it is. The job file holds the testcase and the parameters; what it leaves
below ``$LKP_RESULTS`` (``/lkp/result`` unless set) comes home as a tar of the one run's folder.
"""

from __future__ import annotations

import tarfile
from pathlib import Path

import yaml

from bisectbot.errors import InfraError, UserError
from bisectbot.jobs.assignment import Job
from bisectbot.results import resultroot
from bisectbot.results.delivery import Outcome
from bisectbot.results.output import Reading
from workers.benchmarks.base import Output, chosen, last_line
from workers.hosts.base import Program
from workers.process import Ended

RESULT = "lkp.tar"

_LINE = f"""
lkp=${{LKP_SRC:-.}}/bin/lkp; [ -x "$lkp" ] || lkp=$(command -v lkp) || {{ echo "no lkp on this host" >&2; exit 2; }}
work=$(mktemp -d) || exit
printf '%s' "$BISECTBOT_JOB" > "$work/job.yaml"
"$lkp" run "$work/job.yaml"; status=$?
results=${{LKP_RESULTS:-/lkp/result}}
found=$(find "$results/" -path '*/[0-9]*/job.yaml' -newer "$work/job.yaml" 2> /dev/null | tail -n 1)
if [ -n "$found" ]; then tar -C "${{found%/job.yaml}}" -cf "$BISECTBOT_RESULTS/{RESULT}" .
elif [ $status = 0 ]; then echo "lkp left no result root" >&2; status=2; fi
rm -rf "$work"
exit $status
"""


class LkpBenchmark:
    """KPIs are LKP's own stats: ``will-it-scale.per_process_ops``."""

    def program(self, job: Job) -> Program:
        text = job.command or yaml.safe_dump(_job_file(job), sort_keys=False)
        return Program(_LINE, {"BISECTBOT_JOB": text}, job.timeout_s, job.output_limit)

    def read(self, job: Job, ended: Ended, output: Output) -> Reading:
        if RESULT not in output.files:
            message = f"lkp ended with status {ended.status}: {last_line(output.stderr)}"
            return Reading(Outcome.FAILED, message=message)
        root = output.stdout.with_name("lkp-result")
        _unpack(output.files[RESULT], root)
        try:
            read = resultroot.read(root)
        except UserError as error:
            return Reading(Outcome.FAILED, message=f"its result root: {error}")
        stats = {name: row[-1] for name, row in read.matrix.stats.items() if row and row[-1] is not None}
        return chosen(job, stats, "lkp", output)


def _job_file(job: Job) -> dict[str, object]:
    """A unit job as LKP reads it: the testcase's own parameters below its name, so that all are its options."""
    parameters = dict(job.parameters)
    return {"suite": job.testcase, "testcase": job.testcase, "category": "benchmark", job.testcase: parameters}


def _unpack(tar: Path, folder: Path) -> None:
    folder.mkdir()
    try:
        with tarfile.open(tar) as members:
            members.extractall(folder, filter="data")
    except (tarfile.TarError, OSError) as error:
        raise InfraError(f"the result root did not come home whole: {error}") from error
