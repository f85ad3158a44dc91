"""Programs that watch the whole machine for as long as the benchmark runs."""

from __future__ import annotations

from workers.monitors.base import Around, Tool

TIME = Around("time", "/usr/bin/time", '/usr/bin/time -v -o "$R/time"')

TOOLS = (
    Tool("vmstat", "vmstat", "vmstat --timestamp -n 1", prepare="vmstat --version > /dev/null"),
    Tool("iostat", "iostat", "iostat -tkx 1", prepare="iostat -V > /dev/null"),
    Tool("mpstat", "mpstat", "mpstat -o JSON 1", prepare="mpstat -V > /dev/null", end="INT"),
    Tool(
        "turbostat",
        "turbostat",
        'turbostat --quiet --out "$BISECTBOT_RESULTS/.turbostat" sleep 86400',
        prepare="turbostat --quiet --num_iterations 1 --interval 0.1 > /dev/null",
        end="INT",
        after='cat "$BISECTBOT_RESULTS/.turbostat"',
    ),
)
