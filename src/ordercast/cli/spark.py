"""Options of commands that use Spark: its master, and its settings."""

from __future__ import annotations

from collections.abc import Iterable

MASTERS = ("local", "spark://", "sc://", "yarn", "k8s://")


def check_master(master: str | None) -> None:
    """Raise `ValueError` for what is no Spark master by its looks."""
    if master is not None and not master.startswith(MASTERS):
        raise ValueError(f"{master!r} is no Spark master; for example local[2], spark://host:7077")


def spark_settings(conf: Iterable[str]) -> dict[str, str]:
    """The settings given as `--conf key=value`; the last one of a key counts.

    Raises `ValueError` for one without a key or a value.
    """
    settings = {}
    for one in conf:
        key, equals, value = one.partition("=")
        if not key or not equals:
            raise ValueError(f"--conf {one}: not key=value, as in spark.executor.memory=4g")
        settings[key] = value
    return settings
