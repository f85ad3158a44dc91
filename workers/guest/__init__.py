"""The inside of a virtual machine: an initramfs that runs one job and hands back what came of it."""

from __future__ import annotations

from workers.guest.initramfs import GuestJob, static_busybox, write_initramfs
from workers.guest.records import Records, files_of

__all__ = ["GuestJob", "Records", "files_of", "static_busybox", "write_initramfs"]
