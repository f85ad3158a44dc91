"""perf: counters every second, a profile from the middle of the run, and, for those who ask, waits and cache lines.

What the processor or the kernel does not count is left out, with a note; without hardware counters perf-stat still has
the software's.
"""

from __future__ import annotations

from workers.monitors.base import Tool

_GROUPS = (
    "{cpu-cycles,instructions,cache-references,cache-misses,branch-instructions,branch-misses}",
    "{dTLB-loads,dTLB-load-misses}",
    "{dTLB-stores,dTLB-store-misses}",
    "{iTLB-loads,iTLB-load-misses}",
    "{node-loads,node-load-misses}",
    "{node-stores,node-store-misses}",
)
_SOFTWARE = "cpu-clock,task-clock,page-faults,context-switches,cpu-migrations,minor-faults,major-faults"

_PROBE = f"""perf stat -a -x , -e {_SOFTWARE} true > /dev/null 2>&1 || {{ echo 'perf may not count here'; exit 1; }}
for g in {" ".join(f"'{group}'" for group in _GROUPS)}; do
  perf stat -a -x , -e "$g" true 2>&1 | grep -q -e 'not supported' -e rror || printf '%s,' "$g"
done > "$BISECTBOT_RESULTS/.events"
[ -s "$BISECTBOT_RESULTS/.events" ] || echo 'no hardware counters here: software events only'"""

_LONG_ENOUGH = """[ "${BISECTBOT_RUNTIME:-0}" -ge 20 ] || { echo 'too short a run, or one of unknown length'; exit 1; }
"""

_CYCLES = """for e in cycles:pp cycles; do
  perf record -q -a --count=1000003 -e $e -o /dev/null true > /dev/null 2>&1 && break
  e=
done
[ -n "$e" ] || { echo 'no hardware counter of cycles here: no profile'; exit 1; }
echo "$e" > "$BISECTBOT_RESULTS/.cycles"
"""

_MEMORY = """perf c2c record -q -a -o /dev/null -- true > /dev/null 2>&1 || { echo 'no memory events here'; exit 1; }
"""

_DATA = '"$BISECTBOT_RESULTS/.{}.data"'


_REPORT = """if [ -s {data} ]; then {report}; else echo '{name}: the run ended before its middle' >&2; fi
rm -f {data}"""


def _record(name: str, command: str, report: str, prepare: str = "", seconds: int = 10) -> Tool:
    """Something that records ``seconds`` from the middle of the run, and reports when it is over."""
    data = _DATA.format(name)
    wait = "trap 'kill $!; exit' TERM; sleep $((BISECTBOT_RUNTIME / 2)) & wait $!; trap - TERM"
    line = f"{wait}; exec {command} -o {data} -- sleep {seconds} > /dev/null"
    return Tool(
        name, "perf", line, prepare, after=_REPORT.format(name=name, data=data, report=report.format(data=data))
    )


PERF = (
    Tool(
        "perf-stat",
        "perf",
        f'exec perf stat -a --scale -I 1000 -x , -e "$(cat "$BISECTBOT_RESULTS/.events"){_SOFTWARE}" --log-fd 1',
        prepare=_PROBE,
        end="INT",
    ),
    _record(
        "perf-profile",
        'perf record -q -g -a --count=1000003 -e "$(cat "$BISECTBOT_RESULTS/.cycles")"',
        "perf report --header --children -U -g folded,0.5,callee --sort=dso,symbol -i {data}",
        prepare=_LONG_ENOUGH + _CYCLES,
    ),
    _record(
        "perf-sched",
        "perf sched record -q -g",
        "perf sched timehist -i {data}",
        prepare=_LONG_ENOUGH,
        seconds=1,
    ),
    _record(
        "perf-c2c",
        "perf c2c record -q -a",
        "perf c2c report --stats -i {data}",
        prepare=_LONG_ENOUGH + _MEMORY,
    ),
)
