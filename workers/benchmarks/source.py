"""A benchmark from its source onto a host: once, checked by hash, kept for all runs that follow.

It happens on the host, before anything is watched or measured. A host that cannot fetch (no network, no package
manager) needs the benchmark in its image; then a job has no source.
"""

from __future__ import annotations

import hashlib
import shlex
from dataclasses import replace

from bisectbot.jobs.assignment import Job, Source
from workers.hosts.base import Program

FAILED = 113
"""Exit status of an installation that failed: the machine's fault, never the commit's."""
PATIENCE_S = 900.0

_FETCH_GIT = """git init -q src && git -C src fetch -q --depth 1 {url} {hash} && git -C src checkout -q FETCH_HEAD &&
[ "$(git -C src rev-parse HEAD)" = {hash} ]"""
_FETCH_TAR = """{{ curl -fsSL -o source.tar {url} || wget -q -O source.tar {url}; }} &&
echo "{hash}  source.tar" | sha256sum -c - > /dev/null && mkdir src && tar -xf source.tar -C src --strip-components=1"""
_FETCH_PACKAGE = """mkdir src && {{ dpkg-query -W {package} > /dev/null 2>&1 ||
{{ apt-get update -qq; DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends {wanted}; }}; }} &&
{{ [ -z {version} ] || [ "$(dpkg-query -W -f '${{Version}}' {package})" = {version} ]; }}"""
_INSTALL = """folder=${{BISECTBOT_CACHE:-/var/cache/bisectbot}}/{name}
if [ ! -e "$folder/ready" ]; then
  rm -rf "$folder.new" && mkdir -p "$folder.new" && cd "$folder.new" && {{
{fetch}
}} >&2 && cd src && {{
{build}
}} >&2 && touch ../ready && cd / && rm -rf "$folder" && mv "$folder.new" "$folder" ||
  {{ echo "{what} could not be installed" >&2; exit {failed}; }}
fi
cd "$folder/src" || exit {failed}
"""


def installed(program: Program, job: Job) -> Program:
    """``program`` in the folder of the job's installed source; as it is when the job has none."""
    if job.source is None:
        return program
    line = script(job.source) + program.line
    return replace(program, line=line, timeout_s=program.timeout_s + PATIENCE_S)


def script(source: Source) -> str:
    """Shell lines that install ``source`` unless it is there, and go to its folder."""
    url, build = shlex.quote(source.url), source.build or ":"
    if source.package:
        name, _, version = source.package.partition("=")
        fetch = _FETCH_PACKAGE.format(
            package=shlex.quote(name), wanted=shlex.quote(source.package), version=shlex.quote(version)
        )
    elif source.commit:
        fetch = _FETCH_GIT.format(url=url, hash=source.commit)
    else:
        fetch = _FETCH_TAR.format(url=url, hash=source.sha256)
    digest = hashlib.sha256(f"{fetch}\0{build}".encode()).hexdigest()[:16]
    what = source.package or source.url
    return _INSTALL.format(name=digest, fetch=fetch, build=build, what=what.replace('"', ""), failed=FAILED)
