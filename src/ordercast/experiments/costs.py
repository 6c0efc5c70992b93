"""What work costs in the runs of a plan: one calibration for all protocols, or one for each."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import msgspec

from ordercast.errors import ConfigError
from ordercast.simulation.costs import Calibration, CostModel, read_calibration

FREE = "free"


class Costs(msgspec.Struct, frozen=True):
    """Calibrations by protocol; "" for all that have none of their own."""

    calibrations: dict[str, Calibration] = {}

    def of(self, protocol: str) -> CostModel | None:
        """What work costs this protocol; None: nothing."""
        found = self.calibrations.get(protocol) or self.calibrations.get("")
        return None if found is None else found.costs


def read_cost_models(folder: Path, named: str, protocols: Collection[str]) -> Costs:
    """Of a file for all protocols, or of a folder with PROTOCOL.json for each of these.

    Names are relative to the folder of the plan. `ConfigError` for what is not there.
    """
    if named == FREE:
        return Costs()
    path = folder / named
    if not path.is_dir():
        return Costs({"": read_calibration(path)})
    missing = [name for name in sorted(protocols) if not (path / f"{name}.json").exists()]
    if missing:
        raise ConfigError(
            f"{path} has no {missing[0]}.json: write it with `ordercast calibrate "
            f"--protocol {missing[0]} --out {path / missing[0]}.json`"
        )
    return Costs({name: read_calibration(path / f"{name}.json") for name in sorted(protocols)})
