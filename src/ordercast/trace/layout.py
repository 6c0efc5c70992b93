"""Where the files of a run lie and how they are called.

    DIRECTORY/run=<run>/<process>-00001.seg            a segment, as recorded
    DIRECTORY/run=<run>/<process>-00001.seg.parquet    the same segment, sealed

`run=` is the partition style that Spark understands. Any run and any process name is turned
into a safe file name by percent escapes; a very long one is shortened and made unique by a
digest. File names are only for finding files: the true names stand inside them.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from urllib.parse import unquote

SEGMENT_SUFFIX = ".seg"
SEALED_SUFFIX = ".seg.parquet"

NO_RUN_FOLDER = "__HIVE_DEFAULT_PARTITION__"  # what Spark calls an empty partition value

_LONGEST_NAME = 180  # file systems allow 255 bytes; number and suffix follow the name
_SAFE = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")
_SEGMENT_FILE = re.compile(r"(?P<process>.+)-(?P<number>\d{5,})\.seg(?:\.parquet)?")


def file_safe(name: str) -> str:
    """`name` as a file name: different names stay different."""
    raw = name.encode("utf-8", "surrogatepass")
    escaped = "".join(chr(byte) if byte in _SAFE else f"%{byte:02X}" for byte in raw)
    if escaped[:1] in (".", "_"):  # hidden from Spark and from shells
        escaped = f"%{ord(escaped[0]):02X}{escaped[1:]}"
    if len(escaped) <= _LONGEST_NAME:
        return escaped
    digest = hashlib.sha256(raw).hexdigest()[:32]
    return f"{escaped[: _LONGEST_NAME - 33]}~{digest}"  # no escaped name contains "~"


def run_folder(directory: Path, run: str) -> Path:
    """The folder of `run` under `directory`."""
    return directory / f"run={file_safe(run) if run else NO_RUN_FOLDER}"


def run_of_folder(folder: Path) -> str:
    """The run that a folder name states, "" if it states none (for files without the column)."""
    if not folder.name.startswith("run="):
        return ""
    name = folder.name.removeprefix("run=")
    return "" if name == NO_RUN_FOLDER else unquote(name)


def segment_path(folder: Path, process: str, number: int) -> Path:
    """The file of segment `number` (from 1) of the log of `process`."""
    return folder / f"{file_safe(process)}-{number:05d}{SEGMENT_SUFFIX}"


def sealed_path(segment: Path) -> Path:
    """The Parquet file that takes the place of `segment`."""
    return segment.with_name(segment.name.removesuffix(SEGMENT_SUFFIX) + SEALED_SUFFIX)


def segment_of_sealed(sealed: Path) -> Path:
    """The segment whose place `sealed` took."""
    return sealed.with_name(sealed.name.removesuffix(SEALED_SUFFIX) + SEGMENT_SUFFIX)


def segment_number(path: Path) -> tuple[str, int] | None:
    """(process as written in the name, number) of a segment or sealed file; None for others."""
    match = _SEGMENT_FILE.fullmatch(path.name)
    return (match["process"], int(match["number"])) if match else None
