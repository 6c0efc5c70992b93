"""How the runs of a sweep are shared out among tasks: heavy runs first, light ones many to a task.

An interruption costs the tasks that run, so a task takes a second or two.
"""

from __future__ import annotations

from collections.abc import Sequence

from ordercast.experiments.coordinates import Coordinates
from ordercast.experiments.trial import Trial

TASK_WEIGHT = 200_000  # about a second of simulation
LEAST_TASKS = 32  # if there are as many runs: no core waits long for another at the end
MOST_TASKS = 20_000
MANY = 20 * TASK_WEIGHT  # from here on it pays to compile the kernels that judge


def weight(at: Coordinates) -> int:
    """About how much work a run is: packets, if each member passes each message on to all."""
    answers = 1 + at.reply * at.depth
    return 500 + round(at.messages * answers * at.group_size**2)


def shared_out(trials: Sequence[Trial]) -> list[list[Trial]]:
    """The trials of each task, in the order in which tasks begin."""
    total = sum(weight(trial.at) for trial in trials)
    tasks = min(max(LEAST_TASKS, total // TASK_WEIGHT), MOST_TASKS)
    most = total / tasks
    shares: list[list[Trial]] = []
    room = 0.0
    for trial in sorted(trials, key=lambda trial: (-weight(trial.at), trial.run)):
        if room <= 0:
            shares.append([])
            room = most
        shares[-1].append(trial)
        room -= weight(trial.at)
    return shares
