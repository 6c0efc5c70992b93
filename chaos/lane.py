"""One network, on which plans are carried out one after the other."""

from __future__ import annotations

import heapq
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from chaos.logs import SUFFIX, Entry, Log, LogFile
from chaos.network import CUTS, RELAYED, SHAPES, FaultyNetwork
from chaos.outcome import Outcome
from chaos.plan import COORDINATOR, NAMES, SEQUENCER, Fault, Plan
from chaos.recovery import HOPELESS
from netlab.namespaces import Network
from netlab.shaping import Relay

ROOT = Path(__file__).parent.parent
ARRIVALS = "yz"
FIRST_PORT, PORTS = 20_000, 20_000  # each seed has a port of its own
POLL_SECONDS = 0.02
ROUND_SECONDS = 1.5  # a fresh message that is not everywhere by then is followed by another
QUIET_SECONDS = 0.1
CLOSE_SECONDS = 20.0


class Nursery:
    """The process that forks participants, as the lane sees it."""

    def __init__(self, network: Network) -> None:
        path = [str(ROOT), str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
        self._process = subprocess.Popen(
            [*network.hub.enter, sys.executable, "-m", "chaos.nursery"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
        )

    @property
    def pid(self) -> int:
        """The operating system's number of it."""
        return self._process.pid

    def bear(self, settings: dict[str, Any], net: str, errors: Path) -> int:
        """Start a participant; its process id."""
        answer: int = self._ask({"bear": settings, "net": net, "errors": str(errors)})["pid"]
        return answer

    def ended(self) -> dict[int, int]:
        """Participants that ended since the last time, with their exit status."""
        return {int(pid): status for pid, status in self._ask({"ended": True})["ended"].items()}

    def close(self) -> None:
        """End it and all its children."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def _ask(self, order: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the nursery ended; its standard error says why")
        answer: dict[str, Any] = json.loads(line)
        return answer


class Lane:
    """A network and a nursery, used again for every plan."""

    def __init__(self, *, patience: float) -> None:
        """`patience`: seconds within which a cluster must have recovered."""
        self.patience = patience
        self.network: Network
        self.nursery: Nursery
        self._open = ExitStack()

    def __enter__(self) -> Self:
        try:
            self.network = self._open.enter_context(Network([*NAMES, *ARRIVALS]))
            self.nursery = Nursery(self.network)
            self._open.callback(self.nursery.close)
        except BaseException:
            self._open.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._open.close()

    def run(self, plan: Plan, folder: Path) -> Outcome:
        """Carry out a plan; logs, traces and standard errors go to the folder."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "plan.json").write_text(_pretty(plan), encoding="utf-8")
        with ExitStack() as stack:
            relayed = any(fault.kind in RELAYED for fault in plan.faults)
            relay = stack.enter_context(Relay(self.network, seed=plan.seed)) if relayed else None
            scene = Scene(self, plan, folder, FaultyNetwork(self.network, relay))
            stack.callback(self.network.heal)
            stack.callback(scene.kill_everybody)
            scene.play()
        (folder / "outcome.json").write_text(_pretty(scene.outcome), encoding="utf-8")
        return scene.outcome


def _pretty(thing: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(thing), indent=1).decode() + "\n"


class Process:
    """A participant, as the lane sees it."""

    def __init__(self, name: str, life: int, pid: int, folder: Path, orders: int) -> None:
        self.name = name
        self.life = life
        self.pid = pid
        self.file = LogFile(folder / f"{name}.{life}{SUFFIX}")
        self.views: dict[str, set[str]] = {}  # members of the newest view, by group
        self.fresh: set[tuple[str, str]] = set()  # fresh messages that came: group, message
        self.node_view: Entry | None = None
        self.status: int | None = None  # exit status, when it ended
        self.paused = False
        self._orders = orders

    @property
    def process(self) -> str:
        return self.file.log.process

    def order(self, line: str) -> None:
        """Tell it something. One that is dead does not hear it."""
        os.write(self._orders, f"{line}\n".encode())

    def signal(self, number: int) -> None:
        """Send it a signal, unless it ended: its number may be another's by now."""
        if self.status is None:
            os.kill(self.pid, number)

    def look(self) -> bool:
        """Take in what it wrote since; was there anything?"""
        new = self.file.read()
        for entry in new:
            self._take(entry)
        return bool(new)

    def _take(self, entry: Entry) -> None:
        match entry[1:]:
            case ["view", group, _, members, *_]:
                self.views[group] = set(members)
            case ["left", group]:
                self.views.pop(group, None)
            case ["out", "Excluded", *_]:
                self.views.clear()
            case ["got", group, _, message, _] if "/fresh" in message:
                self.fresh.add((group, message))
            case ["node", *_]:
                self.node_view = entry

    def close(self) -> None:
        os.close(self._orders)


def _have_ended(processes: list[Process]) -> bool:
    return all(process.status is not None for process in processes)


class Scene:
    """One plan while it is carried out."""

    def __init__(self, lane: Lane, plan: Plan, folder: Path, network: FaultyNetwork) -> None:
        self.plan = plan
        self.folder = folder
        self.outcome = Outcome(plan.seed)
        self._lane = lane
        self._network = network
        self._all: list[Process] = []
        self._now: dict[str, Process] = {}  # the newest life of each name
        self._wanted = {g.name: set(g.members) for g in plan.groups}
        self._gone: set[str] = set()  # names that were killed or asked to leave, and stay away
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()
        self._over = False  # whoever ends now does not end by itself

    # -- the run ----------------------------------------------------------------------------------

    def play(self) -> None:
        """From the first process to the last."""
        for name in self.plan.names:
            self._bear(name)
        if not self._wait(self._agreed, self._lane.patience):
            self.outcome.happened.append("the cluster did not come up")
            self.outcome.over = self.outcome.began = time.monotonic()
        else:
            self.outcome.began = time.monotonic()
            self._carry_out_faults()
            self._settle()
        self._finish()

    def _carry_out_faults(self) -> None:
        for number, fault in enumerate(self.plan.faults):
            self._at(self.outcome.began + fault.at, self._begin, number, fault)
        while self._agenda:
            moment, _, action = self._agenda[0]
            now = time.monotonic()
            if moment <= now:
                heapq.heappop(self._agenda)
                action()
            else:
                self._look()
                time.sleep(min(POLL_SECONDS, moment - now))
        self.outcome.over = time.monotonic()

    def _settle(self) -> None:
        """Wait until all who live are in their groups, and a fresh message reaches everybody."""
        for process in self._living():
            process.order("quiet")
        deadline = self.outcome.over + self._lane.patience
        for number in count(1):
            if not self._wait(self._agreed, deadline - time.monotonic(), rules=True):
                return
            fresh = self._send_fresh(number)
            rest = min(ROUND_SECONDS, deadline - time.monotonic())
            if self._wait(partial(self._everywhere, fresh), rest, rules=True):
                break
        self.outcome.recovery = round(time.monotonic() - self.outcome.over, 3)
        self._wait_for_silence()
        self.outcome.settled = time.monotonic()

    def _finish(self) -> None:
        living = self._living()
        self.outcome.living = [process.process for process in living]
        self.outcome.wanted = {group: sorted(self._expected(group)) for group in self._wanted}
        if self.outcome.settled is not None:
            self._close(living)
        self._look()

    def _close(self, living: list[Process]) -> None:
        """Have them leave in order: the newest first, each after the one before, or all at once."""
        at_once = [living] if self.plan.close_together else [[one] for one in reversed(living)]
        for several in at_once:
            for process in several:
                process.order("close")
            if not self._wait(partial(_have_ended, several), CLOSE_SECONDS):
                self.outcome.unclosed += [one.process for one in several if one.status is None]

    def kill_everybody(self) -> None:
        """The end of every process of this run."""
        self._over = True
        for process in self._all:
            process.signal(signal.SIGKILL)
        deadline = time.monotonic() + CLOSE_SECONDS
        while any(process.status is None for process in self._all):
            self._reap()
            if time.monotonic() > deadline:
                raise RuntimeError("a killed process does not end")
            time.sleep(POLL_SECONDS / 4)
        for process in self._all:
            process.close()

    # -- waiting ----------------------------------------------------------------------------------

    def _wait(self, ready: Callable[[], bool], seconds: float, *, rules: bool = False) -> bool:
        """Until it is so; with `rules` also until a known rule says that it will never be."""
        deadline = time.monotonic() + seconds
        while True:
            self._look()
            if ready():
                return True
            now = time.monotonic()
            if now >= deadline or (rules and self._hopeless(now)):
                return False
            time.sleep(POLL_SECONDS)

    def _hopeless(self, now: float) -> bool:
        if self.outcome.given_up:
            return True
        waited = now - self.outcome.over - self.plan.suspect_ms / 1000
        for rule, (seconds, holds) in HOPELESS.items():
            if waited > seconds and holds(self.plan, self._logs(), self.outcome):
                self.outcome.given_up = rule
        return bool(self.outcome.given_up)

    def _wait_for_silence(self) -> None:
        """Until nobody has written anything for a while."""
        last = time.monotonic()
        deadline = last + 20 * QUIET_SECONDS
        while time.monotonic() < min(last + QUIET_SECONDS, deadline):
            time.sleep(POLL_SECONDS)
            if self._look():
                last = time.monotonic()

    def _look(self) -> bool:
        self._reap()
        news = [process.look() for process in self._now.values()]  # all of them, not the first
        return any(news)

    def _reap(self) -> None:
        ended = self._lane.nursery.ended()
        for process in self._all:
            if process.pid in ended and process.status is None:
                process.status = ended[process.pid]
                process.look()
                asked = self._over or process.process in self.outcome.killed
                closed = process.status == 0 and any(process.file.log.of_kind("closed"))
                if not asked and not closed:
                    self.outcome.ended[process.process] = process.status

    def _agreed(self) -> bool:
        """Does everybody have a view of exactly those who should be in the group?"""
        return all(
            self._now[name].views.get(group) == expected
            for group in self._wanted
            for expected in [self._expected(group)]
            for name in expected
        )

    def _send_fresh(self, number: int) -> set[tuple[str, str, str]]:
        """Everybody speaks in every group: who must get which message in which group."""
        awaited = set()
        for group in self._wanted:
            for sender in self._expected(group):
                message = f"{self._now[sender].process}/fresh{number}{group}"
                awaited |= {(name, group, message) for name in self._expected(group)}
        for process in self._living():
            process.order(f"fresh {number}")
        return awaited

    def _everywhere(self, awaited: set[tuple[str, str, str]]) -> bool:
        return all((group, text) in self._now[name].fresh for name, group, text in awaited)

    def _expected(self, group: str) -> set[str]:
        return {process.name for process in self._living()} & self._wanted[group]

    # -- who is there -----------------------------------------------------------------------------

    def _living(self) -> list[Process]:
        return [
            process
            for process in self._now.values()
            if process.status is None and process.name not in self._gone
        ]

    def _logs(self) -> list[Log]:
        return [process.file.log for process in self._all]

    def _bear(self, name: str) -> None:
        """The next life of a name."""
        plan, lane = self.plan, self._lane
        life = sum(process.name == name for process in self._all) + 1
        port = FIRST_PORT + plan.seed % PORTS
        place: dict[str, Any] = {"bind": f"{lane.network.address(name)}:{port}"}
        if name == plan.names[0] and life == 1:
            place["bootstrap"] = True
        else:
            others = [other for other in (*plan.names, *self._now) if other != name]
            place["seeds"] = [f"{lane.network.address(n)}:{port}" for n in dict.fromkeys(others)]
        trace = self.folder / "trace"
        small = [f for f in plan.faults if f.kind == "full disk" and f.who == (name,)]
        if small:
            trace = self.folder / f"trace-{name}"
        orders = self.folder / f"{name}.{life}.orders"
        os.mkfifo(orders)
        joinable = {group.name: group.join for group in plan.groups}
        wanted = [g for g, members in self._wanted.items() if name in members]
        settings = {
            "name": name,
            "life": life,
            "place": place,
            "options": {
                "insecure": True,
                "trace": str(trace),
                "run": f"chaos-{plan.seed}",
                **plan.options,
                **plan.each.get(name, {}),
            },
            "groups": {group: joinable[group] for group in wanted},
            "joinable": joinable,
            "guest_of": plan.guests.get(name, ()),
            "rate": plan.rate,
            "size": plan.size,
            "slow_ms": plan.slow_ms.get(name, 0.0),
            "seed": f"{plan.seed} {name} {life}",
            "log": str(self.folder / f"{name}.{life}{SUFFIX}"),
            "orders": str(orders),
            "loop": plan.loop,
            "disk_kib": small[0].how["kib"] if small else 0,
        }
        pipe = os.open(orders, os.O_RDWR | os.O_NONBLOCK)
        net = f"/proc/{lane.network.inside(name).pid}/ns/net"
        pid = lane.nursery.bear(settings, net, self.folder / f"{name}.{life}.err")
        process = Process(name, life, pid, self.folder, pipe)
        self._all.append(process)
        self._now[name] = process
        self._gone.discard(name)

    # -- faults -----------------------------------------------------------------------------------

    def _at(self, moment: float, action: Callable[..., None], *args: Any) -> None:
        entry = (moment, next(self._numbers), lambda: action(*args))
        heapq.heappush(self._agenda, entry)

    def _after(self, seconds: float, action: Callable[..., None], *args: Any) -> None:
        self._at(time.monotonic() + seconds, action, *args)

    def _begin(self, number: int, fault: Fault) -> None:
        self._look()
        who = tuple(dict.fromkeys(name for one in fault.who for name in self._resolve(one)))
        self._say(f"{fault} ({', '.join(who) or 'nobody'})")
        if fault.kind in CUTS:
            self._network.cut(number, who, one_way=fault.kind == "cut one way")
            self._after(fault.seconds, self._network.mend, number)
        elif fault.kind in SHAPES:
            self._network.shape(number, who, fault.how)
            self._after(fault.seconds, self._network.mend, number)
        else:
            self._strike(fault, who)

    def _strike(self, fault: Fault, who: tuple[str, ...]) -> None:
        """What happens to processes."""
        kind = fault.kind.split()[0]
        for name in who:
            if kind == "arrival":
                self._wanted[self.plan.groups[0].name].add(name)
                self._bear(name)
            elif name in self._now and name not in self._gone:
                getattr(self, f"_{kind}")(self._now[name], fault)

    def _kill(self, process: Process, fault: Fault) -> None:
        process.signal(signal.SIGKILL)
        self.outcome.killed.append(process.process)
        self._gone.add(process.name)
        if fault.seconds:
            self._after(fault.seconds, self._come_back, process)

    def _come_back(self, process: Process) -> None:
        self._look()
        if process.status is None:  # it is still closing, and its address is taken
            self._after(POLL_SECONDS, self._come_back, process)
        elif self._now[process.name] is process:
            self._say(f"{process.name} starts again")
            self._bear(process.name)

    def _pause(self, process: Process, fault: Fault) -> None:
        if not process.paused:
            process.signal(signal.SIGSTOP)
            process.paused = True
            self._after(fault.seconds, self._go_on, process)

    def _go_on(self, process: Process) -> None:
        process.signal(signal.SIGCONT)
        process.paused = False

    def _reset(self, process: Process, fault: Fault) -> None:
        self._network.reset(process.name)

    def _clock(self, process: Process, fault: Fault) -> None:
        process.order(f"clock {fault.how['step']}")

    def _flood(self, process: Process, fault: Fault) -> None:
        process.order(f"flood {fault.how['messages']} {fault.how['seconds']}")

    def _full(self, process: Process, fault: Fault) -> None:
        """The disk was made small when the process was started."""

    def _departure(self, process: Process, fault: Fault) -> None:
        process.order("close")
        self.outcome.departed.append(process.process)
        self._gone.add(process.name)
        if fault.seconds:
            self._after(fault.seconds, self._come_back, process)

    def _leave(self, process: Process, fault: Fault) -> None:
        group = fault.how["group"]
        if process.name in self._wanted[group]:
            self._wanted[group].discard(process.name)
            process.order(f"leave {group}")
            if fault.kind == "leave and join":
                self._after(fault.seconds, self._join, process.name, group)

    def _join(self, name: str, group: str) -> None:
        self._wanted[group].add(name)
        if name not in self._gone:
            self._now[name].order(f"join {group}")

    def _resolve(self, target: str) -> tuple[str, ...]:
        """The name that plays a role now; nobody, if nobody knows."""
        if not target.startswith("@"):
            return (target,)
        seen = [p for p in self._living() if p.node_view is not None]
        if target == SEQUENCER:
            numbering = [p.name for p in seen if p.node_view is not None and p.node_view[5]]
            if numbering:
                return (numbering[0],)
        assert target in (COORDINATOR, SEQUENCER)
        newest = max((p.node_view for p in seen if p.node_view), key=lambda e: e[2], default=None)
        return () if newest is None else (newest[4].split("#")[0],)

    def _say(self, words: str) -> None:
        moment = time.monotonic() - self.outcome.began
        self.outcome.happened.append(f"{moment:.2f}: {words}")
