"""AIM Independent Resource Benchmark, Suite IX: one operation, again and again for ``testtime`` seconds."""

from __future__ import annotations

from workers.benchmarks.base import Known

_LINE = r"""
program=./singleuser
[ -x "$program" ] || program=$(command -v singleuser) || { echo "no singleuser here" >&2; exit 2; }
printf '%s\n%s\n%s\n%s\n' "$(uname -n)" "$test" "$testtime" "${TMPDIR:-/tmp}" | "$program" -nl
"""

AIM9 = Known("aim9", _LINE, {"testtime": "300"})
