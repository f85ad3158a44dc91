"""What a machine is, from its own files, and where the host file does not fit it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisectbot.errors import UserError
from workers.hosts.inventory import (
    CPU,
    Expected,
    Inventory,
    count_list,
    expected,
    measure,
    mismatches,
    missing,
    throttled,
)
from workers.hosts.kernel import build_id_of, release

ICL = {
    "/proc/version": "Linux version 6.12.0-rc1-00001-gabc (gcc) #1 SMP\n",
    "/proc/cpuinfo": "processor\t: 0\nmodel name\t: Intel(R) Xeon(R) Gold 6338 CPU @ 2.00GHz\nmicrocode\t: 0xd000331\n",
    "/proc/meminfo": "MemTotal:       263700000 kB\n",
    f"{CPU}/online": "0-127\n",
    "/sys/devices/system/node/online": "0-3\n",
    **{f"{CPU}/cpu{n}/topology/physical_package_id": f"{n // 32 % 2}\n" for n in range(128)},
    **{f"{CPU}/cpu{n}/thermal_throttle/core_throttle_count": "2\n" for n in range(4)},
}
FACTS = {"nr_cpu": 128, "nr_socket": 2, "nr_node": 4, "memory": "256G", "ucode": "0xd000331"}


def test_sockets_are_packages_and_never_nodes():
    have = measure(ICL)
    assert (have.sockets, have.nodes, have.cpus) == (2, 4, 128)
    assert (have.release, have.microcode) == ("6.12.0-rc1-00001-gabc", "0xd000331")
    assert have.brand == "Intel(R) Xeon(R) Gold 6338 CPU @ 2.00GHz"
    assert throttled(ICL) == 8
    assert mismatches(expected(FACTS), have) == []
    assert missing(expected(FACTS), have) == []


def test_a_host_file_that_does_not_fit():
    said = mismatches(expected({**FACTS, "nr_socket": 4, "memory": "512G", "ucode": "0x1"}), measure(ICL))
    assert said == [
        "nr_socket is 4, the machine has 2",
        "ucode is 0x1, the machine has 0xd000331",
        "memory is 512G, the machine has 251G",
    ]


def test_a_machine_that_came_up_by_half():
    half = {
        **ICL,
        f"{CPU}/online": "0-63\n",
        "/sys/devices/system/node/online": "0-1\n",
        "/proc/meminfo": "MemTotal: 131000000 kB",
    }
    assert missing(expected(FACTS), measure(half)) == [
        "64 of 128 CPUs",
        "2 of 4 nodes",
        "124.9 of 256.0 GiB of memory",
    ]


def test_what_nobody_said_is_not_compared():
    assert mismatches(Expected(), measure(ICL)) == missing(Expected(), Inventory()) == []


@pytest.mark.parametrize("facts", [{"memory": "lots"}, {"nr_cpu": "many"}])
def test_a_fact_that_is_none(facts: dict[str, object]):
    with pytest.raises(UserError, match="host group"):
        expected(facts)


@given(st.sets(st.integers(0, 300), min_size=1))
def test_lists_of_cpus(cpus: set[int]):
    text = ",".join(map(str, sorted(cpus)))
    assert count_list(text) == len(cpus)
    assert count_list(f"0-{max(cpus)}\n") == max(cpus) + 1


@given(st.text(max_size=20), st.binary(max_size=200))
def test_nonsense_is_zero_and_nothing(text: str, data: bytes):
    count_list(text)
    measure({"/proc/cpuinfo": text, "/proc/meminfo": text, f"{CPU}/online": text})
    assert isinstance(build_id_of(data), str)


def test_the_build_id_of_a_note():
    gnu = b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0" + bytes(range(20))
    other = b"\x06\0\0\0\x01\0\0\0\0\x01\0\0Linux\0\0\0\0\0\0\0"
    assert build_id_of(other + gnu) == bytes(range(20)).hex()


def test_the_release_stands_in_the_image(tmp_path: Path):
    image = bytearray(0x1000)
    image[0x202:0x206] = b"HdrS"
    image[0x20E:0x210] = (0x600).to_bytes(2, "little")
    image[0x800:0x820] = b"6.1.0-bisectbot (me@here) #1\0\0\0\0"
    (tmp_path / "bzImage").write_bytes(image)
    assert release(tmp_path / "bzImage") == "6.1.0-bisectbot"
    (tmp_path / "Image").write_bytes(bytes(100))
    assert release(tmp_path / "Image") == ""
