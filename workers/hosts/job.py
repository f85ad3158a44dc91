"""A job on a box: started there, on its own while it runs, polled, brought home. Scripts for its shell.

It runs as a unit of systemd's: whatever it leaves behind, daemons included, is counted and killed with it.
"""

from __future__ import annotations

from collections.abc import Mapping

from workers.hosts.base import RESULTS
from workers.hosts.shell import quote

FOLDER = "/run/bisectbot"
UNIT = "bisectbot-job"
_JOB = f"""#!/bin/sh
cd {FOLDER}/work || exit 1
read -r began _ < /proc/uptime
( . {FOLDER}/environment; exec sh -c "$(cat {FOLDER}/line)" ) < /dev/null > {FOLDER}/out/stdout 2> {FOLDER}/out/stderr
status=$?
read -r ended _ < /proc/uptime
group=/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup)
left=0
while read -r pid; do [ "$pid" = $$ ] || [ ! -d "/proc/$pid" ] || left=$((left + 1)); done < "$group/cgroup.procs"
echo "$status $began $ended $left" > {FOLDER}/end.new
mv {FOLDER}/end.new {FOLDER}/end
"""


def stop_script() -> str:
    """Stop what runs, if anything does; prints how many processes there were."""
    return f"""
group=/sys/fs/cgroup/system.slice/{UNIT}.service/cgroup.procs
[ -f "$group" ] && wc -l < "$group" || echo 0
systemctl kill --signal=KILL {UNIT}.service 2> /dev/null
systemctl stop {UNIT}.service 2> /dev/null
systemctl reset-failed {UNIT}.service 2> /dev/null
umount {FOLDER}/out 2> /dev/null
true
"""


def start_script(line: str, environment: Mapping[str, str], output_limit: int, results: str) -> str:
    """Begin; the shell is left at once. ``environment``'s values stand in a file, not in a command line."""
    variables = {RESULTS: results, **environment}
    exported = "".join(f"export {name}={quote(value)}\n" for name, value in sorted(variables.items()))
    return f"""
set -e
rm -rf {FOLDER}/work {FOLDER}/end {results}
mkdir -p {FOLDER}/work {FOLDER}/out {results}
mount -t tmpfs -o size={output_limit} tmpfs {FOLDER}/out
printf '%s\\n' {quote(line)} > {FOLDER}/line
printf '%s' {quote(exported)} > {FOLDER}/environment
printf '%s' {quote(_JOB)} > {FOLDER}/job
sync
echo 3 > /proc/sys/vm/drop_caches
systemd-run --quiet --collect --unit={UNIT} -p KillMode=control-group -p TimeoutStopSec=5 /bin/sh {FOLDER}/job
"""
