"""Agreement with the kernel's own get_maintainer script, run as a program on its own MAINTAINERS.

The script and its tree come from the distribution's linux-source package and are never copied into this project.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from bisectbot.mail import maintainers
from bisectbot.mail.recipients import changed_lines
from tests.mail.packages import require

pytestmark = [pytest.mark.real, pytest.mark.timeout(1500)]

FILES = 500
PATCHES = 40
# Tied sections are visited in the order of a Perl hash: which of a person's two addresses is printed depends on it.
HASH_SEEDS = tuple(map(str, range(32)))
LINES = (
    "clang and LLVM differ", "x = bpf_prog_get(p);", "dma_fence_put(f);", "unsafe_memcpy(a, b);",
    "char a[] __counted_by(n);", "devm_gpio_regmap_register(d);", "gpio_request(4);",
    "hwmon_device_register(d);", "input_report(ABS_MT_SLOT);", "SGX_ATTR", "check_object_size(p);",
    "static int landlock_x;", "pidfd_open();", "struct clone_args a;", "pstore_register();",
    "ptp_clock_index(c);", "pwm_config(p);", "CONFIG_PREEMPT_RT", "reset_control_assert(r);", "riscv_hart()",
    "rust", "trusted", "secure_computing();", "TIF_SECCOMP", "phylink_create(c);",
    "regulator_get_optional(d);", "xdp_buff b;", "mediatek,mt81", "sifive,fu540", "nothing special",
    "zstd_compress();", "compatible = \"renesas,rcar\";", "macsec_ops", "bpfilter", "_ptp_",
)  # fmt: skip


@dataclass(frozen=True)
class Kernel:
    """A kernel tree with the texts that matter: the sampled files, the script and what it reads."""

    root: Path
    files: tuple[str, ...]

    def script(self, *arguments: str, seed: str) -> frozenset[str]:
        command = ["perl", "scripts/get_maintainer.pl", "--no-git", "--no-git-fallback", "--no-fixes", "--no-rolestats"]
        answer = subprocess.run(
            [*command, *arguments],
            cwd=self.root,
            capture_output=True,
            text=True,
            check=True,
            env=os.environ | {"PERL_HASH_SEED": seed, "PERL_PERTURB_KEYS": "0"},
        )
        return frozenset(found.lower() for found in re.findall(r"[^<>\s]+@[^<>\s]+", answer.stdout))

    def text(self, file: str) -> str:
        return (self.root / file).read_text(encoding="utf-8", errors="replace")


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Kernel:
    archive = require("linux-source", "/usr/src/linux-source-*.tar.xz")
    root = tmp_path_factory.mktemp("linux")
    listed = subprocess.run(["tar", "-tf", archive], capture_output=True, text=True, check=True).stdout.splitlines()
    top = listed[0].partition("/")[0]
    files = sorted(name.partition("/")[2] for name in listed if not name.endswith("/"))
    sample = random.Random(20231114).sample(files, FILES)
    # The script looks whether it stands in a kernel tree, and whether patterns are directories.
    at_the_top = [name for name in files if "/" not in name]
    for name in listed:
        if name.endswith("/"):
            (root / name).mkdir(parents=True, exist_ok=True)
    wanted = [f"{top}/{name}" for name in {*sample, *at_the_top, "scripts/get_maintainer.pl"}]
    subprocess.run(
        ["tar", "-xf", archive, "-C", root, "--files-from=-"], input="\n".join(wanted), text=True, check=True
    )
    kept = [file for file in sample if (root / top / file).is_file() and not (root / top / file).is_symlink()]
    return Kernel(root / top, tuple(kept))


@pytest.fixture(scope="module")
def ours(kernel: Kernel) -> maintainers.Maintainers:
    return maintainers.parse(
        kernel.text("MAINTAINERS"), mailmap=kernel.text(".mailmap"), ignored=kernel.text(".get_maintainer.ignore")
    )


def addresses(found: maintainers.Concerned) -> frozenset[str]:
    return frozenset(box.key for box in (*found.people, *found.lists))


def test_random_files(kernel: Kernel, ours: maintainers.Maintainers):
    assert len(kernel.files) > FILES * 0.95
    answers = {file: addresses(ours.concerned([file], contents={file: kernel.text(file)})) for file in kernel.files}

    def differs(file: str) -> str | None:
        said = []
        for seed in HASH_SEEDS:
            # Kernels before 6.7 look for keywords in whole files, too; newer ones and we do so in patches alone.
            said.append(kernel.script("--no-keywords", "-f", file, seed=seed))
            if said[-1] == answers[file]:
                return None
        return f"{file}: missing {sorted(said[0] - answers[file])}, extra {sorted(answers[file] - said[0])}"

    with ThreadPoolExecutor(2) as pool:
        assert [difference for difference in pool.map(differs, kernel.files) if difference] == []


def test_random_patches(kernel: Kernel, ours: maintainers.Maintainers, tmp_path: Path):
    rng = random.Random(7)
    differences = []
    hits = 0
    for number in range(PATCHES):
        touched = rng.sample(kernel.files, 2)
        diff = "".join(
            f"diff --git a/{file} b/{file}\n--- a/{file}\n+++ b/{file}\n@@ -1,2 +1,3 @@ {rng.choice(LINES)}\n"
            f" {rng.choice(LINES)}\n+{rng.choice(LINES)}\n b\n"
            for file in touched
        )
        message = f"subsystem: change number {number}\n\nThis text says {rng.choice(LINES)}\n"
        patch = tmp_path / f"{number}.patch"
        patch.write_text(f"From: A <a@example.org>\nSubject: [PATCH] {message}\n---\n{diff}", encoding="utf-8")
        contents = {file: kernel.text(file) for file in touched}
        answer = addresses(ours.concerned(touched, f"{message}\n{changed_lines(diff)}", contents))
        hits += answer != addresses(ours.concerned(touched))
        said = kernel.script(str(patch), seed="0")
        if answer != said and answer not in {kernel.script(str(patch), seed=seed) for seed in HASH_SEEDS[1:]}:
            differences.append((touched, diff, sorted(said - answer), sorted(answer - said)))
    assert differences == []
    assert hits > PATCHES / 3
