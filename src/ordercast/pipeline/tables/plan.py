"""Which runs are to be judged: those whose files, options or judge are not those of their tables.

Pure: what is known goes in, what is to be done comes out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from ordercast.pipeline.tables.manifest import JudgedRun, Manifest, SeenFile, digest


@dataclass(frozen=True)
class Plan:
    """What is to be done for the runs of some files."""

    judge: dict[str, JudgedRun]  # the entry that each run will have
    kept: tuple[str, ...]
    replaced: tuple[str, ...]  # those to judge that have tables already
    files: dict[str, tuple[str, ...]]  # paths of the files of each run


def unknown_files(now: Mapping[str, SeenFile], manifest: Manifest) -> list[str]:
    """The files whose runs have to be looked up: new ones and those that changed."""
    return [
        path
        for path, file in now.items()
        if (seen := manifest.files.get(path)) is None or not seen.same_file(file)
    ]


def plan_runs(files: Mapping[str, SeenFile], manifest: Manifest, made: JudgedRun) -> Plan:
    """What to do for the runs of `files`; `made` says how runs are judged now."""
    by_run: dict[str, list[str]] = defaultdict(list)
    for path, file in files.items():
        for run in file.runs:
            by_run[run].append(path)
    wanted = {run: _entry(paths, files, made) for run, paths in sorted(by_run.items())}
    judge = {run: entry for run, entry in wanted.items() if manifest.runs.get(run) != entry}
    return Plan(
        judge=judge,
        kept=tuple(run for run in wanted if run not in judge),
        replaced=tuple(run for run in judge if run in manifest.runs),
        files={run: tuple(paths) for run, paths in by_run.items()},
    )


def _entry(paths: list[str], files: Mapping[str, SeenFile], made: JudgedRun) -> JudgedRun:
    facts = [
        (path, files[path].size, files[path].modified, files[path].mapping)
        for path in sorted(paths)
    ]
    return msgspec.structs.replace(made, sources=digest(facts))
