"""A source tree that builds as Linux does, as far as tuxmake and the builder see it, in a second.

Its Makefile knows ``O=``, a config target, ``olddefconfig``, an image, modules and LOCALVERSION, and leaves dependency
files and ``kernel.release`` as kbuild does.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

MAKEFILE = r"""
src := $(CURDIR)
ifneq ($(O),)
out := $(O)
endif
release := 6.1.0$(LOCALVERSION)
objects := $(out)/init/main.o $(out)/fs/open.o $(out)/init/version.o
wrapper := $(out)/arch/x86/boot/version.o
flags := -O2 -g -I$(src)/include -DRELEASE='"$(release)"' -fno-asynchronous-unwind-tables $(KCFLAGS)

all: bzImage $(out)/mod/m.ko
bzImage: $(out)/vmlinux $(wrapper)
	mkdir -p $(out)/arch/x86/boot && cat $(out)/vmlinux > $(out)/arch/x86/boot/bzImage
$(out)/vmlinux: $(objects)
	$(CC) -nostdlib -static -Wl,--build-id=sha1 -Wl,-e,start -o $@ $^
	nm -n $@ > $(out)/System.map
$(out)/mod/m.ko: $(out)/mod/m.o
	ld -r --build-id=sha1 -o $@ $<
	echo mod/m.o > $(out)/modules.order
$(out)/%.o: $(src)/%.c $(src)/include/open.h $(out)/include/config/kernel.release
	mkdir -p $(dir $@)
	$(CC) $(flags) -MD -MF $@.d -c -o $@ $<
	{ echo "source_$*.o := $<"; echo "deps_$*.o := \\"; sed -e 's/^[^:]*://' -e '$$ s/$$/ \\/' $@.d; \
	echo '    $$(wildcard include/config/X) \'; echo; } > $(dir $@).$(notdir $@).cmd
$(out)/include/config/kernel.release: force
	mkdir -p $(dir $@)
	echo '$(release)' | cmp -s - $@ || echo '$(release)' > $@
tinyconfig:
	printf 'CONFIG_MODULES=y\n' > $(out)/.config
olddefconfig:
	grep -v CONFIG_NONE $(out)/.config > $(out)/new; mv $(out)/new $(out)/.config
modules_install:
	mkdir -p $(INSTALL_MOD_PATH)/lib/modules/$(release)
	cp $(out)/mod/m.ko $(INSTALL_MOD_PATH)/lib/modules/$(release)
force:
CC ?= gcc
.PHONY: all bzImage tinyconfig olddefconfig modules_install force
.DELETE_ON_ERROR:
"""
FILES = {
    "Makefile": MAKEFILE,
    "Kconfig": "",
    "Kbuild": "",
    "README": "words\n",
    ".gitignore": "ignored\n",
    "include/open.h": "/* what open does */\nint do_open(int x);\n",
    "init/main.c": '#include "open.h"\nvoid start(void) { for (;;) do_open(1); }\n',
    "init/version.c": 'const char banner[] = "Linux version " RELEASE;\n',
    "fs/open.c": '#include "open.h"\nint do_open(int x) { return x + 1; }\nconst char *at(void) { return __FILE__; }\n',
    "fs/unused.c": "int unused;\n",
    "mod/m.c": 'const char vermagic[] = "vermagic=" RELEASE;\nint work(int x) { return 3 * x; }\n',
    "arch/x86/boot/version.c": "const char kernel_version[] = RELEASE;\n",
    "scripts/kconfig/merge_config.sh": '#!/bin/sh\nout=$3; shift 4; cat "$@" >> $out/.config\n',
}


class SmallLinux:
    """A git repository of it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(parents=True)
        self.git("init", "-q")
        self.first = self.commit(FILES)

    def git(self, *args: str) -> str:
        who = {f"GIT_{role}_{what}": "a@b" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        environment = {**os.environ, **who, "GIT_CONFIG_GLOBAL": os.devnull}
        command = ["git", *args]
        done = subprocess.run(command, cwd=self.path, env=environment, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def commit(self, files: dict[str, str]) -> str:
        """A commit with these files changed; the work tree stays at it."""
        for name, text in files.items():
            file = self.path / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
            file.chmod(0o755 if name.endswith(".sh") else 0o644)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "x")
        return self.git("rev-parse", "HEAD")
