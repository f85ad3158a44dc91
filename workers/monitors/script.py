"""The shell script that runs a benchmark with its monitors around it.

What it adds to a run: before and after, a look at the counters; in between, the tools and one process a second that
reads all counters. Where the benchmark is pinned to some CPUs, for the machine is its controller's too, the monitors
may use all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from workers.monitors.base import Around, Monitor, Sampled, Snapshot, Tool

SAMPLES = ".samples"
"""Where the sampled files are, all in one, as ``FILE:line``; `workers.monitors.logs` takes them apart."""
NOTES = "monitors"
"""Log of what could not be watched, and why."""
PATIENCE_S = 60  # for tools to end and reports to be made

_HEAD = """R=$BISECTBOT_RESULTS
N="$R/monitors"
on=$(cat /sys/devices/system/cpu/online 2> /dev/null)
free="taskset -c $on"; $free true 2> /dev/null || free=
around=
now() { read -r t _ < /proc/uptime; echo "time: $t"; }
"""
_RUN = """eval "$around sh -c 'eval \\"\\$BISECTBOT_LINE\\"'"; status=$?
"""  # what is told of the command line is one line whatever the benchmark's are
_TAIL = """kill $loop $(cat "$R/.sleep" 2> /dev/null) 2> /dev/null; wait $loop 2> /dev/null
{stop}finish
rm -f "$R"/.sleep "$R"/.events "$R"/.cycles "$R"/.turbostat
[ -s "$N" ] || rm -f "$N"
exit $status
"""


def script(monitors: Iterable[Monitor]) -> str:
    """The script; it runs ``$BISECTBOT_LINE`` and ends as that ends."""
    chosen = list(monitors)
    tools = [monitor for monitor in chosen if isinstance(monitor, Tool)]
    parts = [
        _HEAD,
        _looks("begin", chosen, lambda look: look.start),
        _looks("finish", chosen, lambda look: look.end),
        _loop(chosen),
        "begin\n",
        *(_started(tool) for tool in tools),
        '$free sh -c "$every" 2>> "$N" & loop=$!\n',
        *(f"[ -x {each.program} ] && around='{each.line}'\n" for each in chosen if isinstance(each, Around)),
        _RUN,
        _TAIL.format(stop="".join(_stopped(tool) for tool in tools)),
    ]
    return "".join(parts)


def _sampling(chosen: Iterable[Monitor]) -> str:
    globs = " ".join(monitor.files for monitor in chosen if isinstance(monitor, Sampled))
    return f'{{ now; grep "" /dev/null {globs}; }} >> "$R/{SAMPLES}" 2> /dev/null' if globs else ":"


def _look(look: Snapshot) -> str:
    stamp = "now; " if look.timed else ""
    return f'{{ {stamp}{look.look}\n}} >> "$R/{look.name}" 2>> "$N"'


def _looks(name: str, chosen: Iterable[Monitor], wanted: Callable[[Snapshot], bool]) -> str:
    looks = [_look(look) for look in chosen if isinstance(look, Snapshot) and wanted(look)]
    return "\n".join([f"{name}() {{", _sampling(chosen), *looks, "}", ""])


def _loop(chosen: Iterable[Monitor]) -> str:
    """What runs every second, in a shell of its own; its ``sleep`` is killed by name of its number."""
    rarely = [
        f"[ $((n % {look.interval})) != 0 ] || {_look(look)}"
        for look in chosen
        if isinstance(look, Snapshot) and look.interval
    ]
    body = "\n".join(
        [
            'R=$BISECTBOT_RESULTS; N="$R/monitors"; n=0',
            'now() { read -r t _ < /proc/uptime; echo "time: $t"; }',
            'while sleep 1 & echo $! > "$R/.sleep"; wait $!; do n=$((n + 1))',
            _sampling(chosen),
            *rarely,
            "done",
        ]
    )
    return f"every={_quoted(body)}\n"


def _started(tool: Tool) -> str:
    name = tool.name
    variable = name.replace("-", "_")
    ready = f'why=$({tool.prepare or ":"}\n); ok=$?; [ -z "$why" ] || echo "{name}: $why" >> "$N"'
    start = f'$free sh -c {_quoted(_alone(tool.line))} > "$R/{name}" 2>> "$N" & {variable}=$!'
    return f"""{variable}=
if command -v {tool.needs} > /dev/null; then
{ready}
[ $ok != 0 ] || {{ {start}
}}
else echo "{name}: no {tool.needs} on this host" >> "$N"; fi
"""


def _alone(line: str) -> str:
    return line if "exec " in line else f"exec {line}"


def _stopped(tool: Tool) -> str:
    variable = tool.name.replace("-", "_")
    after = f'( {tool.after} ) > "$R/{tool.name}" 2>> "$N"' if tool.after else ":"
    return f"""if [ -n "${variable}" ]; then
kill -{tool.end} ${variable} 2> /dev/null; wait ${variable} 2> /dev/null
{after}
fi
"""


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
