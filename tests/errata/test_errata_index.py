"""No erratum of the sequencing service (000), of the slides (001), of the two-layered group (002),
of TOTAL (003) and of Causal Blocks (004) is forgotten."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from faulty_machines import rows_clusters
from faulty_machines.catalogue import DIRECTED, FAULTY
from ordercast.core.protocol import OrderingProtocol

SEQUENCING = tuple(f"E-K{i}" for i in (1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 15))  # of the machine
SLIDES = tuple(f"E-C{i}" for i in range(1, 9))
TWO_LAYERED = tuple(f"E-T{i}" for i in range(1, 7))
TOTAL = tuple(f"E-J{i}" for i in range(1, 8))
CAUSAL_BLOCKS = tuple(f"E-M{i}" for i in range(1, 10))
ERRATA = SEQUENCING + SLIDES + TWO_LAYERED + TOTAL + CAUSAL_BLOCKS
OF_SENTENCES = (
    "E-M1",
    "E-M4",
    "E-T1",
    "E-T5",
    "E-T6",
)  # wrong statements; no machine does anything wrong because of them
BY_HAND = ("5.4", "5.8", "E-K8")  # several rare things must meet: only a schedule shows it
NEEDLESS = ("E-K6",)  # what a machine does because of it is not wrong

TESTS = "\n".join(path.read_text() for path in Path(__file__).parent.glob("test_errata_0*.py"))
READINGS = (
    "1.3",
    "4.4",
    "5.4",
    "5.6",
    "5.8",
    "7.5b",
    "8.4",
    "8.4b",
    "11.2",
    "11.3",
)  # tempting and wrong, beside the errata


def machines_of(source: str) -> set[type[OrderingProtocol]]:
    """Faulty machines that runs at random reject, because of this erratum or reading."""
    found = {f.wrong for f in FAULTY.values() if f.source.split(":")[0] == source}
    return found | {f.protocol for f in rows_clusters.ROWS if f.source.split(":")[0] == source}


@pytest.mark.parametrize("erratum", ERRATA)
def test_every_erratum_has_a_directed_test_that_bears_its_name(erratum: str) -> None:
    assert re.search(rf"^def test_{erratum.replace('-', '_')}_\w+\(", TESTS, re.MULTILINE)


@pytest.mark.parametrize("erratum", ERRATA)
def test_every_erratum_about_behaviour_has_a_faulty_machine_and_a_schedule(erratum: str) -> None:
    machines = machines_of(erratum)
    schedules = [d for name, d in DIRECTED.items() if name.split()[0] == erratum]
    if erratum in OF_SENTENCES + NEEDLESS:
        assert not machines
    else:
        assert schedules
        assert erratum in BY_HAND or {directed.wrong for directed in schedules} <= machines


@pytest.mark.parametrize("section", READINGS)
def test_every_tempting_reading_has_a_faulty_machine_and_a_schedule(section: str) -> None:
    schedules = {d.wrong for name, d in DIRECTED.items() if name.split()[0] == section}
    assert schedules if section in BY_HAND else machines_of(section) & schedules


def test_every_schedule_is_played_by_a_test() -> None:
    assert [name for name in DIRECTED if f'"{name}"' not in TESTS] == []
