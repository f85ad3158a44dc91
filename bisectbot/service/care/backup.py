"""A service in one file, and back: database, artifacts, mirror, mails, token."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import tarfile
import tempfile
from contextlib import closing
from pathlib import Path

import zstandard

from bisectbot.config import Config
from bisectbot.errors import InfraError, UserError
from bisectbot.store.database import Database

_FOLDERS = ("mirror.git", "artifacts", "mails")
_DATABASE = "database"
_END = "end"
"""The last member, empty: tar and zstd both take a file that was cut between two members for a whole one."""


def backup(config: Config, file: Path) -> str:
    """Write everything into ``file``. The database comes first, so that it never names a file which the backup lacks.

    Artifacts and git objects are only ever added, so what a later moment adds does no harm.
    """
    if file.exists():
        raise UserError(f"{file} exists; name a new file")
    database = Database(config.database_url)
    with tempfile.TemporaryDirectory(prefix="bisectbot-backup-") as folder:
        dump = Path(folder) / _DATABASE
        _dump(database, dump)
        part = file.with_name(file.name + ".part")
        with (
            part.open("wb") as raw,
            zstandard.ZstdCompressor().stream_writer(raw) as packed,
            tarfile.open(fileobj=packed, mode="w|") as archive,
        ):
            archive.add(dump, _DATABASE)
            for name in _FOLDERS:
                if (config.state / name).exists():
                    archive.add(config.state / name, name)
            if config.token_path.exists():
                archive.add(config.token_path, "worker.token")
            archive.addfile(tarfile.TarInfo(_END))
        part.replace(file)
    return f"{file}: {file.stat().st_size / 2**20:.1f} MiB"


def restore(config: Config, file: Path) -> str:
    """Put a backup into an empty installation; refuses to overwrite anything, and leaves nothing if it fails.

    Raises UserError for a file that is no backup or an installation that is not empty.
    """
    taken = [name for name in _FOLDERS if (config.state / name).exists()]
    if taken:
        raise UserError(f"{config.state / taken[0]} exists; restore into an empty `state`")
    database = Database(config.database_url)
    _want_empty(database)
    config.state.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="restore-", dir=config.state) as folder:
        try:
            _unpack(file, Path(folder))
        except (OSError, zstandard.ZstdError, tarfile.TarError) as error:
            raise UserError(f"{file} is no whole backup: {error}") from None
        dump, end = Path(folder) / _DATABASE, Path(folder) / _END
        if not dump.is_file():
            raise UserError(f"{file} is no whole backup: there is no database in it")
        if not end.is_file():
            raise UserError(f"{file} is no whole backup: its end is missing")
        end.unlink()
        _load(database, dump)
        dump.unlink()
        for part in Path(folder).iterdir():
            part.replace(config.state / part.name)
    return f"restored into {config.state}"


def _unpack(file: Path, folder: Path) -> None:
    with (
        file.open("rb") as raw,
        zstandard.ZstdDecompressor().stream_reader(raw) as plain,
        tarfile.open(fileobj=plain, mode="r|") as archive,
    ):
        archive.extractall(folder, filter="data")


def _want_empty(database: Database) -> None:
    if database.sqlite:
        assert database.url.database
        taken = Path(database.url.database).exists()
    else:
        taken = bool(database.tables())
        database.dispose()
    if taken:
        where = database.url.render_as_string(hide_password=True)
        raise UserError(f"{where} exists already; restore into an empty database")


def _dump(database: Database, target: Path) -> None:
    if database.sqlite:
        assert database.url.database
        with closing(sqlite3.connect(database.url.database)) as source, closing(sqlite3.connect(target)) as copy:
            source.backup(copy)
        return
    _postgres("pg_dump", database, "--format=custom", f"--file={target}")


def _load(database: Database, dump: Path) -> None:
    if database.sqlite:
        assert database.url.database
        shutil.copy(dump, database.url.database)
        return
    _postgres("pg_restore", database, "--exit-on-error", "--no-owner", str(dump))


def _postgres(program: str, database: Database, *arguments: str) -> None:
    url = database.url.set(drivername="postgresql")
    options = ["--dbname", url.set(password=None).render_as_string()]
    environment = {**os.environ, "PGPASSWORD": str(url.password)} if url.password else None
    done = subprocess.run([program, *options, *arguments], capture_output=True, text=True, check=False, env=environment)
    if done.returncode != 0:
        raise InfraError(f"{program} failed: {' '.join(done.stderr.split())}")
