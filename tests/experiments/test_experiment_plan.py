"""Plans of sweeps: which runs they mean, and what is said of those that mean nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from ordercast.errors import ConfigError
from ordercast.experiments import Plan, read_plan
from ordercast.experiments.arrange import arranged
from ordercast.experiments.coordinates import KEYS, RULES, Coordinates
from ordercast.simulation.costs import Calibration, CostModel

GRID = '[grid]\nprotocol = "cbcast"\n'


def plan_of(folder: Path, text: str, *, quick: bool = False) -> Plan:
    path = folder / "plan.toml"
    path.write_text(text)
    return read_plan(path, quick=quick)


def refusal(folder: Path, text: str) -> str:
    with pytest.raises(ConfigError) as refused:
        plan_of(folder, text)
    return str(refused.value)


def test_a_grid_is_every_combination_in_the_order_of_its_coordinates(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, '[grid]\nprotocol = ["fifo", "basic"]\nmembers = [8, 4]\nseeds = 2\n')
    found = [(run.protocol, run.members, run.seed) for run in plan.runs]
    assert found == [(p, n, s) for p in ("basic", "fifo") for n in (4, 8) for s in (0, 1)]


def test_several_grids_are_one_plan_without_repeats(tmp_path: Path) -> None:
    text = '[[grid]]\nprotocol = "basic"\nmembers = [2, 3]\n'
    text += '[[grid]]\nprotocol = ["basic", "fifo"]\nmembers = 3\n'
    plan = plan_of(tmp_path, text)
    assert [(run.protocol, run.members) for run in plan.runs] == [
        ("basic", 2), ("basic", 3), ("fifo", 3),
    ]  # fmt: skip


def test_what_is_common_holds_where_a_grid_says_nothing(tmp_path: Path) -> None:
    text = '[common]\nprotocol = "basic"\ngroup_size = 2\nsize = 9\n'
    text += "[[grid]]\n[[grid]]\nmembers = 6\noverlap = 0.5\nsize = 10\n"
    found = [(run.members, run.group_size, run.size) for run in plan_of(tmp_path, text).runs]
    assert found == [(5, 2, 9), (6, 3, 10)]


def test_the_quick_form_takes_other_values(tmp_path: Path) -> None:
    text = GRID + "members = [4, 8]\nseed = [3, 5]\n[quick]\nmembers = 2\nseeds = 1\n"
    [run] = plan_of(tmp_path, text, quick=True).runs
    assert (run.members, run.seed) == (2, 0)
    assert len(plan_of(tmp_path, text).runs) == 4


def test_the_quick_form_adds_no_axis(tmp_path: Path) -> None:
    [run] = plan_of(tmp_path, GRID + "[quick]\nloss = [0.1, 0.2]\nseeds = 3\n", quick=True).runs
    assert (run.loss, run.seed) == (0.0, 0)


def test_overlap_is_the_number_of_groups_of_a_member(tmp_path: Path) -> None:
    [run] = plan_of(tmp_path, GRID + "members = 12\ngroups = 6\noverlap = 2\n").runs
    config = arranged(run)
    assert [len(group.members) for group in config.groups] == [4] * 6
    assert {len(groups) for groups in config.groups_of().values()} == {2}
    assert run.overlap == 2


def test_options_of_the_protocol_are_axes_too(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, GRID + "options.ack_every = [4, 16]\n")
    assert [arranged(run).options.ack_every for run in plan.runs] == [4, 16]


def test_further_processes_lead_the_groups(tmp_path: Path) -> None:
    text = '[grid]\nprotocol = "sequencer_pb"\nmembers = 8\ngroups = 4\nsequencers = 2\n'
    [run] = plan_of(tmp_path, text).runs
    config = arranged(run)
    assert config.members == 10
    assert sorted(group.leader or 0 for group in config.groups) == [8, 8, 9, 9]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (GRID + "member = 4\n", "[grid]: there is no 'member'; did you mean 'members'?"),
        ("kep = 'all'\n" + GRID, "there is no 'kep'; did you mean 'keep'?"),
        ("members = 4\n" + GRID, "there is no 'members' here; it belongs in [grid] or [common]"),
        (GRID + "options.ack_evry = 4\n", "did you mean 'options.ack_every'?"),
        (GRID + "colour = 4\n", "there is no 'colour'; there are protocol, members"),
        ('[grid]\nprotocol = "cbcst"\n', "no protocol 'cbcst'; did you mean 'cbcast'?"),
        (GRID + "members = 0\n", "members = 0 is wrong; write a whole number from 1 to 10,000"),
        (GRID + "loss = 1.0\n", "loss = 1.0 is wrong; write a probability: 0 or more, less than 1"),
        (GRID + "fifo = 1\n", "fifo = 1 is wrong; write true or false"),
        (GRID + "delay = 'unform 1 2'\n", "'unform 1 2' is wrong; write one of 'constant us'"),
        (GRID + "delay = 'uniform 3 2'\n", "a uniform delay needs least_us <= most_us"),
        (GRID + "delay = 5\n", "delay = 5 is wrong; write text like 'uniform 500 1500'"),
        (GRID + "options.ack_every = 'x'\n", "options.ack_every = 'x' is wrong"),
        (GRID + "seed = 1\nseeds = 2\n", "seed and seeds say the same; write one of them"),
        (GRID + "members = []\n", "members = [] is wrong; write at least one value"),
        (GRID + "members = 3\ngroup_size = 4\n", "group_size = 4 and members = 3"),
        (GRID + "members = 4\noverlap = 9\n", "a group has 1 to 4 members"),
        (GRID + "members = 4\nsenders = 5\n", "senders = 5 and members = 4: at most all send"),
        (GRID + "seeds = 2000000\n", "2,000,000 runs; a plan has at most 1,000,000"),
        ("keep = 'some'\n" + GRID, "keep = 'some' is wrong; write 'all' or 'none' or 'failed'"),
        ("title = 'x'\n", "no [grid]: write one"),
        ("[grid]\nmembers = 3\n", "[grid] names no protocol"),
        ("grid = 3\n", "[grid] = 3 is wrong; write a table"),
        ("title = ", "this is not TOML"),
        ("costs = 'gone.json'\n" + GRID, "no such file; `ordercast calibrate --out` writes one"),
    ],
)
def test_what_is_wrong_is_said_with_what_would_be_right(
    tmp_path: Path, text: str, said: str
) -> None:
    assert said in refusal(tmp_path, text)


def test_all_that_is_wrong_is_said_at_once(tmp_path: Path) -> None:
    said = refusal(tmp_path, "keep = 3\n" + GRID + "members = 0\nlos = 1\n")
    assert len(said.splitlines()) == 3
    assert all(line.startswith(f"{tmp_path}/plan.toml: ") for line in said.splitlines())


def test_every_coordinate_has_a_rule() -> None:
    ruled = {*RULES, "protocol", "delay", "options"}
    assert ruled >= set(Coordinates.__struct_fields__)
    assert ruled - set(Coordinates.__struct_fields__) <= set(KEYS)


def test_costs_are_of_one_file_or_of_one_for_each_protocol(tmp_path: Path) -> None:
    def calibrated(us: float) -> Calibration:
        return Calibration(costs=CostModel(receive_us=us), machine={"system": "made up"})

    calibrated(3).write(tmp_path / "costs.json")
    calibrated(5).write(tmp_path / "costs" / "cbcast.json")
    one = plan_of(tmp_path, 'costs = "costs.json"\n' + GRID).costs.of("cbcast")
    each = plan_of(tmp_path, 'costs = "costs"\n' + GRID).costs.of("cbcast")
    assert one is not None and one.receive_us == 3
    assert each is not None and each.receive_us == 5
    both = '[grid]\nprotocol = ["cbcast", "fifo"]\n'
    assert "ordercast calibrate --protocol fifo" in refusal(tmp_path, 'costs = "costs"\n' + both)
