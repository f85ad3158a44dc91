"""will-it-scale: ``nr_task`` copies of one operation, as processes or threads.

``runtime`` seconds, of which the first five warm up. Printed is the table of its own runtest.py, with the one row that
was asked for; the idle share comes from /proc/stat. ``no_affinity`` leaves the copies unbound, ``smt`` packs them.
"""

from __future__ import annotations

from workers.benchmarks.base import Known

_LINE = r"""
busy() { awk '$1 == "cpu" { for (i = 2; i <= 9; i++) all += $i; print all, $5 }' /proc/stat; }
case $mode in process) kind=processes ;; thread) kind=threads ;; *) echo "mode $mode?" >&2; exit 2 ;; esac
program=./${test}_$kind
[ -x "$program" ] || program=$(command -v "${test}_$kind") || { echo "no ${test}_$kind here" >&2; exit 2; }
set -- -t "$nr_task" -s $((runtime - 5))
[ -z "$no_affinity" ] || set -- "$@" -n
[ -z "$smt" ] || set -- "$@" -m
before=$(busy)
said=$("$program" "$@") || exit
printf '%s\n%s\n%s\n' "$before" "$(busy)" "$said" | awk -v tasks="$nr_task" -v kind=$kind '
  NR <= 2 { all[NR] = $1; idle[NR] = $2 }
  /^average:/ { split($0, word, ":"); ops = word[2] }
  END {
    if (ops == "") { print "no average in what it printed" > "/dev/stderr"; exit 2 }
    free = all[2] > all[1] ? 100 * (idle[2] - idle[1]) / (all[2] - all[1]) : 0
    print "tasks,processes,processes_idle,threads,threads_idle,linear"
    print "0,0,100,0,100,0"
    if (kind == "processes") printf "%d,%d,%.2f,0,0.00,0\n", tasks, ops, free
    else printf "%d,0,0.00,%d,%.2f,0\n", tasks, ops, free
  }'
"""

WILL_IT_SCALE = Known("will-it-scale", _LINE, {"runtime": "300", "no_affinity": "", "smt": ""})
