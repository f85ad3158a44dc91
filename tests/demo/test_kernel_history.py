"""The kernel demo's history, from a source package as small as can be."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from bisectbot.demo.kernel import history
from bisectbot.errors import UserError
from bisectbot.source.git import Git

FILES = {
    "Makefile": "all:\n",
    "Kconfig": "",
    "fs/namei.c": (
        "struct file *do_filp_open(int dfd, struct filename *pathname,\n\t\tconst struct open_flags *op)\n{\n"
        "\tset_nameidata(&nd, dfd, pathname, NULL);\n\tfilp = path_openat(&nd, op, flags | LOOKUP_RCU);\n"
        "\trestore_nameidata();\n\treturn filp;\n}\n"
    ),
    "fs/open.c": "SYSCALL_DEFINE1(close, unsigned int, fd)\n",
    "fs/pipe.c": "pipe_read(void)\n{\n\t/* Null read succeeds. */\n}\n",
    "fs/ext4/inode.c": "int far_too_much;\n",
    "fs/ext4/Kconfig": "config EXT4_FS\n",
    "init/main.c": "\tdo_sysctl_args();\n",
    "sound/core/sound.c": "int noise;\n",
}


def package(folder: Path, name: str = "linux-source-6.1.tar.xz", **changed: str) -> Path:
    with tarfile.open(folder / name, "w:xz") as tar:
        for file, text in {**FILES, **{key.replace("__", "/") + ".c": text for key, text in changed.items()}}.items():
            member = tarfile.TarInfo(f"linux-source-6.1/{file}")
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text.encode()))
    return folder / name


@pytest.fixture
def base(tmp_path: Path) -> Git:
    return history.prepare(package(tmp_path), tmp_path)


def test_only_what_a_small_kernel_needs_is_taken(base: Git):
    names = base.run("ls-tree", "-r", "--name-only", history.BASE).split("\n")
    assert sorted(names) == sorted(set(FILES) - {"fs/ext4/inode.c", "sound/core/sound.c"})


def test_the_newest_package_is_taken(tmp_path: Path):
    with pytest.raises(UserError, match="apt-get install linux-source"):
        history.find_package(tmp_path)
    for version in ("6.1", "6.12", "6.9"):
        package(tmp_path, f"linux-source-{version}.tar.xz")
    assert history.find_package(tmp_path).name == "linux-source-6.12.tar.xz"


@pytest.mark.parametrize("seed", range(6))
def test_one_commit_is_slower_one_does_not_build_one_does_not_boot(base: Git, tmp_path: Path, seed: int):
    made = history.make(base, tmp_path / "up.git", seed, 5.0, 4255.0)
    up = Git(tmp_path / "up.git")
    assert made.commits == 15
    line = up.run("rev-list", "--reverse", made.heads[-1]).split("\n")
    assert [line.index(head) for head in made.heads] == sorted(line.index(head) for head in made.heads)

    def has(commit: str, file: str, text: str) -> bool:
        return text in up.run("show", f"{commit}:{file}")

    slow = [has(commit, "fs/namei.c", "turn < 23; turn++") for commit in line]
    assert slow.index(True) == line.index(made.culprit)
    assert all(slow[slow.index(True) :])
    broken = [commit for commit in line if has(commit, "fs/namei.c", "path_without_a_name")]
    panics = [commit for commit in line if has(commit, "init/main.c", "panic(")]
    assert broken[0] == made.unbuildable
    assert not {*broken, *panics} & set(made.heads)
    assert panics
    assert has(line[0], "fs/pipe.c", "cpu_relax")
    assert not has(line[-1], "fs/pipe.c", "cpu_relax")  # the other path becomes faster


def test_a_seed_moves_the_culprit_and_gives_the_same_again(base: Git, tmp_path: Path):
    made = [history.make(base, tmp_path / f"up{n}.git", seed, 5.0, 4255.0) for n, seed in enumerate((1, 1, 2, 3, 4))]
    assert made[0] == made[1]
    assert len({each.culprit for each in made}) > 1


def test_a_kernel_without_the_places(tmp_path: Path):
    base = history.prepare(package(tmp_path, init__main="int main;\n"), tmp_path)
    with pytest.raises(UserError, match=r"init/main\.c has no single 'do_sysctl_args\(\);'; use another package"):
        history.make(base, tmp_path / "up.git", 1, 5.0, 4255.0)


def test_a_package_that_is_cut(tmp_path: Path):
    whole = package(tmp_path).read_bytes()
    (tmp_path / "linux-source-6.1.tar.xz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UserError, match="cannot be read"):
        history.prepare(tmp_path / "linux-source-6.1.tar.xz", tmp_path)
