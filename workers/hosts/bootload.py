"""How a kernel is put on a box and started there once: by GRUB's one-shot entry, or by kexec. Scripts for its shell.

GRUB forgets a one-shot entry before it starts it: a kernel that dies is followed by the known-good one without
anybody's help. Both ways install into the same folder; a comparison never mixes them, since the driver's facts name
the way.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from workers.hosts.shell import quote
from workers.hosts.watch import MARKER

FOLDER = "/boot/bisectbot"
KEY = "bisectbot.boot"
"""Kernel argument that carries the boot's key: up with it, and it is this boot of this kernel."""
KEPT = 4  # kernels that stay installed

_KEEP = re.compile(r"^(root|rootfstype|rootflags|rootwait|ro|rw|console|crashkernel|ip|nfsroot|net\.ifnames)(=|$)")


@dataclass(frozen=True)
class Installed:
    """A kernel on the box's disk: a folder of its own with ``vmlinuz`` and perhaps ``initrd``."""

    folder: str
    initrd: bool
    arguments: str

    def command_line(self, key: str) -> str:
        return f"{self.arguments} {KEY}={key}"


def arguments(known_good: str, extra: str) -> str:
    """The command line of measured boots: where the root is, as the known-good kernel was told, and the host's own."""
    kept = [word for word in known_good.split() if _KEEP.match(word)]
    return " ".join([*kept, *extra.split()])


def free_script(need_bytes: int, keep: str) -> str:
    """Make room: kernels that were used long ago go, and what remains must do. Fails when the disk is full."""
    return f"""
mkdir -p {FOLDER} && cd {FOLDER} || exit 1
for old in $(ls -t | tail -n +{KEPT + 1}); do [ "$old" = {quote(keep)} ] || rm -rf "./$old"; done
free=$(df -Pk {FOLDER} | awk 'NR == 2 {{print $4}}')
[ "$free" -gt {need_bytes // 1024 + 1024} ] || {{ echo "only $free KiB are free in {FOLDER}" >&2; exit 1; }}
mkdir -p {quote(keep)} && touch {quote(keep)}
"""


def grub_script(kernel: Installed, key: str) -> str:
    """Write the entry and arm it for one boot. Fails where GRUB would not take it."""
    initrd = 'echo "  initrd $path/initrd"' if kernel.initrd else ":"
    return f"""
set -e
grep -qs next_entry /boot/grub/grub.cfg || {{
    echo 'GRUB knows no one-shot entry: GRUB_DEFAULT=saved, update-grub' >&2
    exit 1
}}
path=$(grub-mkrelpath {quote(kernel.folder)})
uuid=$(grub-probe --target=fs_uuid {quote(kernel.folder)})
{{
    echo "menuentry 'bisectbot' --id bisectbot {{"
    echo "  search --no-floppy --fs-uuid --set=root $uuid"
    echo "  echo '{MARKER}{key}'"
    echo "  linux $path/vmlinuz {kernel.command_line(key)}"
    {initrd}
    echo "}}"
}} > /boot/grub/custom.cfg.new
mv /boot/grub/custom.cfg.new /boot/grub/custom.cfg
grub-reboot bisectbot
grub-editenv /boot/grub/grubenv list | grep -qx next_entry=bisectbot
sync
"""


def kexec_script(kernel: Installed, key: str) -> str:
    """Load the kernel; it starts a moment after the shell has been left."""
    initrd = f"--initrd={quote(kernel.folder + '/initrd')}" if kernel.initrd else ""
    start = f"sleep 1; sync; echo '{MARKER}{key}' > /dev/console; kexec -e"
    return f"""
set -e
command -v kexec > /dev/null || {{ echo 'no kexec on this box: install kexec-tools' >&2; exit 1; }}
kexec -l {quote(kernel.folder + "/vmlinuz")} {initrd} --command-line={quote(kernel.command_line(key))}
setsid sh -c {quote(start)} > /dev/null 2>&1 < /dev/null &
"""


def disarm_script() -> str:
    """A one-shot entry that was never taken is forgotten."""
    return "grub-editenv /boot/grub/grubenv unset next_entry 2> /dev/null; sync; true"
