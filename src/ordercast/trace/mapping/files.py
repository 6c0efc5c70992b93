"""Which files a mapping is about: those whose names match the patterns of one of its sources.

In a folder, other files are skipped, and so are those whose names begin with "." or "_". A file
that is named outright is read whatever its name, if there is one source only. Files come in the
order of the sources, then by name.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path

from ordercast.errors import TraceError
from ordercast.trace.mapping.spec import LogMapping, Source


def mapped_files(paths: Iterable[Path | str] | Path | str, mapping: LogMapping) -> list[Path]:
    """The files behind `paths`, each once."""
    if isinstance(paths, Path | str):
        paths = [paths]
    found = {file.resolve(): file for path in paths for file in _files_at(Path(path), mapping)}
    own = Path(mapping.file).resolve()
    ordered = sorted(
        (mapping.sources.index(source_of(file, mapping)), str(file), file)
        for real, file in found.items()
        if real != own
    )
    return [file for _, _, file in ordered]


def source_of(file: Path, mapping: LogMapping) -> Source:
    """The first source whose patterns the name of the file matches, or the only one."""
    if len(mapping.sources) == 1:
        return mapping.sources[0]
    for source in mapping.sources:
        if any(fnmatchcase(file.name, pattern) for pattern in source.files):
            return source
    raise TraceError(file, None, None, f"no file for {mapping.file}, which reads {_told(mapping)}")


def _files_at(path: Path, mapping: LogMapping) -> list[Path]:
    if not path.exists():
        raise TraceError(path, None, None, "no such file or folder")
    if not path.is_dir():
        source_of(path, mapping)
        return [path]
    files = [
        file
        for file in path.rglob("*")
        if any(fnmatchcase(file.name, one) for source in mapping.sources for one in source.files)
        and not any(part.startswith((".", "_")) for part in file.relative_to(path).parts)
        and file.is_file()
    ]
    if not files:
        raise TraceError(path, None, None, f"no files here for {mapping.file}: {_told(mapping)}")
    return files


def _told(mapping: LogMapping) -> str:
    names = ", ".join(pattern for source in mapping.sources for pattern in source.files)
    return f"{names} (key 'files')"
