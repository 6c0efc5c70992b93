"""`ordercast explore`: everything that can happen to a few processes and a few messages."""

from __future__ import annotations

from pathlib import Path

import msgspec
import typer
from rich.table import Table

from ordercast.cli.exits import (
    INCONCLUSIVE,
    VIOLATED,
    console,
    errors_as_exits,
    escape,
    progress,
)
from ordercast.core.protocol import OrderingProtocol
from ordercast.exploration import (
    DEFAULT_LIMIT,
    EXPLORABLE,
    Exploration,
    Scenario,
    Schedule,
    default_scripts,
    groups_in_words,
    one_group,
    replay,
    two_overlapping_groups,
)
from ordercast.exploration import (
    explore as explore_scenario,
)
from ordercast.exploration.scenario import (
    ROUNDS,
    ROUNDS_AFTER,
    ROUNDS_AFTER_CRASH,
    Members,
    Script,
)

SCRIPTS = ("free", "replies", "burst")


def explore(
    context: typer.Context,
    protocol: str | None = typer.Option(None, help=f"One of {', '.join(EXPLORABLE)}."),
    processes: int = typer.Option(
        3, help="Number of processes; all in one group, unless --group or --overlap."
    ),
    messages: int = typer.Option(3, help="Number of messages in all."),
    script: list[str] = typer.Option(
        list(SCRIPTS), help="How they are sent: free, replies or burst; may be repeated."
    ),
    group: list[str] = typer.Option([], help="Members, as 0,1,2; repeat it for several groups."),
    overlap: bool = typer.Option(False, "--overlap", help="Two groups that overlap."),
    crash: bool = typer.Option(False, "--crash", help="One process may crash at any moment."),
    loss: int = typer.Option(
        0, help="Number of packets that may be lost in all (protocols for N0)."
    ),
    duplicates: int = typer.Option(
        0, help="Number of packets that may come twice in all (N0 and N1)."
    ),
    rounds: int = typer.Option(
        ROUNDS, help="Rounds of timers without progress after which a run counts as blocked."
    ),
    rounds_after_crash: int = typer.Option(
        ROUNDS_AFTER_CRASH, help="The same after a crash, when some processes may wait for ever."
    ),
    rounds_after: int = typer.Option(
        ROUNDS_AFTER,
        help="Rounds of timers after everything was delivered; nothing may follow then.",
    ),
    expect: list[str] = typer.Option(
        [], help="A property (as causal.group) to check beside those promised, also after a crash."
    ),
    limit: int = typer.Option(DEFAULT_LIMIT, help="Number of states to visit for each script."),
    prune: bool = typer.Option(True, help="Skip orders of steps that lead to the same states."),
    out: Path | None = typer.Option(None, help="Write the schedule of a violation to FILE.json."),
    replay: Path | None = typer.Option(
        None, help="Show the schedule of FILE.json step by step; alone."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print the result as JSON."),
) -> None:
    """Try every order in which packets can arrive, and judge every outcome."""
    with errors_as_exits():
        if replay is not None:
            _check_alone(context)
            raise typer.Exit(_replay(replay, as_json=as_json))
        if protocol is None:
            raise ValueError(f"give --protocol, one of {', '.join(EXPLORABLE)}, or --replay FILE")
        if out is not None and not out.parent.is_dir():
            raise ValueError(f"--out {out}: there is no folder {out.parent}")
        groups = _groups(group, processes, overlap=overlap)
        plain = Scenario(
            protocol=_protocol(protocol),
            processes=processes,
            groups=groups,
            script=(),
            losses=loss,
            duplicates=duplicates,
            crash=crash,
            rounds=rounds,
            rounds_after_crash=rounds_after_crash,
            rounds_after=rounds_after,
            expect=tuple(expect),
        )
        found: dict[str, Exploration] = {}
        for name, sayings in _scripts(script, groups, messages).items():
            with progress.status(f"exploring {protocol}, script {name}"):
                spoken = msgspec.structs.replace(plain, script=sayings)
                found[name] = explore_scenario(spoken, limit=limit, prune=prune)
            if found[name].schedule is not None:
                break
        _write(out, found)
    if as_json:
        figures = {name: _figures(one) for name, one in found.items()}
        print(msgspec.json.format(msgspec.json.encode(figures)).decode())
    else:
        _show(f"{protocol}, {groups_in_words(groups)}", found, out)
    raise typer.Exit(_exit_code(found))


# -- what is asked for ----------------------------------------------------------------------------


def _check_alone(context: typer.Context) -> None:
    """A schedule says all that a replay needs."""
    for option in context.command.params:
        name = str(option.name)
        source = context.get_parameter_source(name)
        if source is not None and source.name != "DEFAULT" and name not in ("replay", "as_json"):
            raise ValueError(
                f"--replay FILE and {option.opts[0]}: the file says everything; give --replay alone"
            )


def _protocol(name: str) -> type[OrderingProtocol]:
    if name not in EXPLORABLE:
        raise ValueError(f"unknown protocol {name!r}; built are {', '.join(EXPLORABLE)}")
    return EXPLORABLE[name]


def _groups(lists: list[str], processes: int, *, overlap: bool) -> tuple[Members, ...]:
    if lists and overlap:
        raise ValueError(
            "--group lists the groups, and --overlap chooses them: give only one of the two"
        )
    if overlap:
        return two_overlapping_groups(processes)
    return tuple(map(_members, lists)) if lists else one_group(processes)


def _members(text: str) -> Members:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise ValueError(f"--group {text!r}: members are numbers with commas, as 0,1,2") from None


def _scripts(names: list[str], groups: tuple[Members, ...], messages: int) -> dict[str, Script]:
    made = default_scripts(groups, messages)
    for name in names:
        if name not in made:
            raise ValueError(f"unknown script {name!r}; there are {', '.join(made)}")
    return {name: made[name] for name in names}


# -- what came out --------------------------------------------------------------------------------


def _exit_code(found: dict[str, Exploration]) -> int:
    if any(one.schedule is not None for one in found.values()):
        return VIOLATED
    return 0 if all(one.complete for one in found.values()) else INCONCLUSIVE


def _result(one: Exploration) -> str:
    if one.violated:
        return f"violated: {', '.join(one.violated)}"
    return "complete" if one.complete else f"stopped at {one.states} states"


def _figures(one: Exploration) -> dict[str, object]:
    return {
        "result": _result(one),
        "complete": one.complete,
        "states": one.states,
        "transitions": one.transitions,
        "outcomes": len(one.outcomes),
        "schedule": one.schedule,
    }


def _show(title: str, found: dict[str, Exploration], out: Path | None) -> None:
    table = Table(title=escape(title), title_justify="left")
    for column in ("script", "result", "states", "transitions", "outcomes"):
        table.add_column(column)
    for name, one in found.items():
        counts = (one.states, one.transitions, len(one.outcomes))
        table.add_row(name, _result(one), *map(str, counts))
    console.print(table)
    for one in found.values():
        if one.schedule is not None:
            _show_schedule(one.schedule)
            if out is not None:
                _say(f"see it again: ordercast explore --replay {out}")


def _show_schedule(schedule: Schedule) -> None:
    _say(f"{schedule.property}: {schedule.sentence}")
    for number, step in enumerate(schedule.steps, start=1):
        _say(f"  {number:3}  {step}")


def _write(out: Path | None, found: dict[str, Exploration]) -> None:
    for one in found.values():
        if out is not None and one.schedule is not None:
            one.schedule.write(out)


def _replay(path: Path, *, as_json: bool) -> int:
    schedule = Schedule.read(path)
    shown = list(replay(schedule.scenario(_protocol(schedule.protocol)), schedule.steps))
    broken = next((step.violation for step in shown if step.violation is not None), None)
    if as_json:
        print(msgspec.json.format(msgspec.json.encode(shown)).decode())
        return 0 if broken is None else VIOLATED
    _say(f"{schedule.protocol}, {groups_in_words(schedule.groups)}")
    for number, step in enumerate(shown, start=1):
        _say(f"  {number:3}  {step.line}")
        for more in (*step.logged, *step.held_back):
            _say(f"         {more}")
    if broken is None:
        _say("Every promise is kept: this schedule no longer shows anything.")
        return 0
    _say(f"{broken.property}: {broken.sentence}")
    return VIOLATED


def _say(text: str) -> None:
    console.print(escape(text), highlight=False, soft_wrap=True)
