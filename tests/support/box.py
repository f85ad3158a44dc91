"""A box that is as near to real iron as a virtual machine comes: a disk with Debian and GRUB, sshd, a serial console
behind a console server, and a power switch behind an IPMI controller (OpenIPMI's ``ipmi_sim``).

The disk is made once (some minutes) and kept in the user's cache; a box runs on a layer above it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

VERSION = "2"  # of what is made here: a change makes a new disk
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bisectbot-tests"
PACKAGES = "linux-image-cloud-amd64,openssh-server,grub-common,grub2-common,systemd-sysv,iproute2,kexec-tools,udev"
SIZE = 1536 * 2**20
FIRST = 2048  # sector of the file system
MASKED = (
    "apt-daily.timer apt-daily-upgrade.timer e2scrub_all.timer fstrim.timer dpkg-db-backup.timer e2scrub_reap.service"
)
GRUB = Path("/usr/lib/grub/i386-pc")
GRUB_MODULES = (
    "biosdisk part_msdos ext2 normal linux serial terminal loadenv test echo configfile search search_fs_uuid"
)
GRUB_CFG = """\
serial --unit=0 --speed=115200
terminal_input serial
terminal_output serial
load_env
if [ "${next_entry}" ]; then
  set default="${next_entry}"
  set next_entry=
  save_env next_entry
else
  set default=good
fi
set timeout=1
menuentry 'known good' --id good {
  linux /vmlinuz root=/dev/vda1 ro console=ttyS0,115200 panic=5 quiet
  initrd /initrd.img
}
if [ -f /boot/grub/custom.cfg ]; then source /boot/grub/custom.cfg; fi
"""


CHASSIS = """\
#!/bin/sh
# Called by the controller: get|set|check power|reset|... [VALUE]
echo "$@" >> {folder}/chassis.log
pid=$(cat {folder}/pid 2> /dev/null)
alive() {{ [ -n "$pid" ] && kill -0 "$pid" 2> /dev/null && [ "$(cut -d' ' -f3 /proc/"$pid"/stat)" != Z ]; }}
off() {{ alive && kill -9 "$pid" && while alive; do sleep 0.1; done; }}
on() {{ alive || {{ setsid {qemu} > {folder}/qemu.log 2>&1 < /dev/null & echo $! > {folder}/pid; }}; }}
what=$1
shift
while [ $# -gt 0 ]; do
    case "$what $1" in
        "get power") if alive; then echo power:1; else echo power:0; fi ;;
        get*) echo "$1:0" ;;
        "set power") if [ "$2" = 1 ]; then on; else off; fi; shift ;;
        "set reset") off; pid=; on; shift ;;
        set*) shift ;;
    esac
    shift
done
exit 0
"""


@dataclass(frozen=True)
class Image:
    """``disk`` is raw, ``key`` root's private key, ``vmlinuz`` and ``initrd`` are Debian's, ``known`` its host key."""

    disk: Path
    key: Path
    vmlinuz: Path
    initrd: Path
    known: str


def image() -> Image:
    """The disk image, made if it is not in the cache."""
    folder = CACHE / f"box-{VERSION}"
    if not (folder / "done").is_file():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".box-", dir=CACHE) as made:
            _make(Path(made))
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(made, folder, ignore=shutil.ignore_patterns("root", "root.tar"))
        (folder / "done").touch()
    known = (folder / "ssh_host_ed25519_key.pub").read_text()
    return Image(folder / "disk", folder / "key", folder / "vmlinuz", folder / "initrd.img", known)


def _make(folder: Path) -> None:
    root, packed = folder / "root", folder / "root.tar"
    lean = [f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in ("doc", "locale", "man")]
    _run("mmdebstrap", "--quiet", "--variant=minbase", f"--include={PACKAGES}", *lean, "bookworm", packed)
    root.mkdir()
    _run("tar", "-C", root, "-xf", packed)
    packed.unlink()
    _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / "key")
    _configure(root, (folder / "key.pub").read_text())
    for name in ("vmlinuz", "initrd.img"):
        shutil.copy(root / (root / name).readlink(), folder / name)  # a link within the root
    shutil.copy(root / "etc/ssh/ssh_host_ed25519_key.pub", folder)
    _write_disk(root, folder)
    shutil.rmtree(root)


def _configure(root: Path, key: str) -> None:
    ssh = root / "root/.ssh"
    ssh.mkdir(mode=0o700, exist_ok=True)
    (ssh / "authorized_keys").write_text(key)
    (root / "etc/hostname").write_text("box\n")
    (root / "etc/fstab").write_text("/dev/vda1 / ext4 noatime 0 1\n")
    (root / "etc/systemd/network/lan.network").write_text("[Match]\nName=e*\n[Network]\nDHCP=yes\n")
    patience = root / "etc/systemd/system.conf.d/patience.conf"  # a busy machine emulates a slow one
    patience.parent.mkdir(exist_ok=True)
    patience.write_text("[Manager]\nDefaultTimeoutStartSec=infinity\nDefaultStartLimitIntervalSec=0\n")
    units = root / "etc/systemd/system"
    (units / "multi-user.target.wants").mkdir(exist_ok=True)
    (units / "multi-user.target.wants/systemd-networkd.service").symlink_to(
        "/lib/systemd/system/systemd-networkd.service"
    )
    for unit in MASKED.split():
        (units / unit).unlink(missing_ok=True)
        (units / unit).symlink_to("/dev/null")
    with (root / "etc/ssh/sshd_config").open("a") as sshd:
        sshd.write("UseDNS no\n")
    grub = root / "boot/grub"
    shutil.copytree(GRUB, grub / "i386-pc")
    (grub / "grub.cfg").write_text(GRUB_CFG)
    _run("grub-editenv", grub / "grubenv", "create")


def _write_disk(root: Path, folder: Path) -> None:
    """One partition; GRUB's first sector and its core before it, as its installer lays them."""
    disk, core = folder / "disk", folder / "core.img"
    with disk.open("wb") as file:
        file.truncate(SIZE)
    kib = (SIZE - FIRST * 512) // 1024
    _run("mke2fs", "-q", "-t", "ext4", "-E", f"offset={FIRST * 512}", "-d", root, disk, f"{kib}k")
    _run("grub-mkimage", "-O", "i386-pc", "-o", core, "-p", "(hd0,msdos1)/boot/grub", *GRUB_MODULES.split())
    entry = struct.pack("<BBBBBBBBII", 0x80, 0, 2, 0, 0x83, 0, 2, 0, FIRST, SIZE // 512 - FIRST)
    with disk.open("r+b") as file:
        file.write((GRUB / "boot.img").read_bytes()[:440])
        file.seek(446)
        file.write(entry + bytes(48) + b"\x55\xaa")
        file.write(core.read_bytes())
    core.unlink()


def _run(*words: object) -> None:
    done = subprocess.run([str(word) for word in words], check=False, capture_output=True, text=True)
    assert done.returncode == 0, f"{words[0]}: {done.stderr[-2000:]}"


class ConsoleServer:
    """What stands between a serial port and those who listen: the port is always there, the box comes and goes."""

    def __init__(self) -> None:
        self._box, self._people = socket.create_server(("127.0.0.1", 0)), socket.create_server(("127.0.0.1", 0))
        self.box_port, self.port = self._box.getsockname()[1], self._people.getsockname()[1]
        self._listeners: list[socket.socket] = []
        self._threads = [threading.Thread(target=loop, daemon=True) for loop in (self._serve, self._hear)]
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        for server in (self._box, self._people):
            with contextlib.suppress(OSError):
                server.shutdown(socket.SHUT_RDWR)
            server.close()
        for thread in self._threads:
            thread.join(5.0)
        for listener in self._listeners:
            listener.close()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                self._listeners.append(self._people.accept()[0])

    def _hear(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                with self._box.accept()[0] as box, contextlib.suppress(ConnectionError):
                    while data := box.recv(65536):
                        self._pass_on(data)

    def _pass_on(self, data: bytes) -> None:
        for listener in list(self._listeners):
            try:
                listener.sendall(data)
            except OSError:
                self._listeners.remove(listener)
                listener.close()


@dataclass
class Box:
    """A running box: how to reach it, and its controller."""

    folder: Path
    image: Image
    console: ConsoleServer
    bmc_port: int
    ssh_port: int
    bmc: subprocess.Popen[bytes]

    @property
    def ipmitool(self) -> str:
        """The command line, password in a file, that lacks only what to do."""
        reach = f"-I lanplus -H 127.0.0.1 -p {self.bmc_port} -U operator -f {self.folder / 'bmc.password'}"
        return f"ipmitool {reach} -C 3 -N 2 -R 2"


def _free_port(kind: socket.SocketKind) -> int:
    with socket.socket(socket.AF_INET, kind) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def box(folder: Path, *, memory: int = 768, cpus: int = 2) -> Iterator[Box]:
    """A box in ``folder``, switched off; nothing of it is left afterwards."""
    made = image()
    console = ConsoleServer()
    ports = _free_port(socket.SOCK_DGRAM), _free_port(socket.SOCK_STREAM)
    _run("qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", made.disk, folder / "layer.qcow2")
    (folder / "bmc.password").write_text("secret-of-the-bmc\n")
    (folder / "known_hosts").write_text(f"[127.0.0.1]:{ports[1]} {made.known}")
    qemu = (
        f"qemu-system-x86_64 -accel tcg -M pc -m {memory} -smp {cpus} -nodefaults -no-user-config"
        f" -display none -monitor none -drive if=virtio,format=qcow2,cache=unsafe,file={folder / 'layer.qcow2'}"
        f" -netdev user,id=n,restrict=on,hostfwd=tcp:127.0.0.1:{ports[1]}-:22 -device virtio-net-pci,netdev=n,romfile="
        f" -serial tcp:127.0.0.1:{console.box_port}"
    )
    (folder / "chassis").write_text(CHASSIS.format(qemu=qemu, folder=folder))
    (folder / "chassis").chmod(0o755)
    (folder / "lan.conf").write_text(
        f'name "box"\nset_working_mc 0x20\nstartlan 1\n  addr 127.0.0.1 {ports[0]}\n  priv_limit admin\n'
        "  allowed_auths_admin none md2 md5 straight\n  guid a123456789abcdefa123456789abcdef\nendlan\n"
        f'user 2 true "operator" "secret-of-the-bmc" admin 10 none md2 md5 straight\n'
        f'chassis_control "{folder / "chassis"}"\n'
    )
    (folder / "box.emu").write_text(
        "mc_setbmc 0x20\nmc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02 persist_sdr\nmc_enable 0x20\n"
    )
    (folder / "bmc").mkdir()
    words = ["ipmi_sim", "-n", "-c", str(folder / "lan.conf"), "-f", str(folder / "box.emu"), "-s", str(folder / "bmc")]
    bmc = subprocess.Popen(words, start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        yield Box(folder, made, console, ports[0], ports[1], bmc)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(bmc.pid, signal.SIGKILL)
        bmc.wait()
        for pid in _running(folder / "layer.qcow2"):
            os.kill(pid, signal.SIGKILL)
        console.close()


def _running(disk: Path) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and f"file={disk}".encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
    return found
