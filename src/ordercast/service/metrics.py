"""The figures of a node in the text format of Prometheus.

They are read from `Node.stats()`. A figure that the node does not have, such as one of the
coordinator only, is left out.
"""

from __future__ import annotations

import platform
import resource
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

import msgspec

from ordercast import __version__

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Labels = tuple[tuple[str, str], ...]
IN: Labels = (("direction", "in"),)
OUT: Labels = (("direction", "out"),)


class Metric(msgspec.Struct, frozen=True):
    """A name, and under which path of `stats()` its values stand, for each of its labels."""

    name: str
    kind: Literal["gauge", "counter"]
    help: str
    sources: tuple[tuple[Labels, str], ...]
    scale: float = 1.0


def _one(path: str) -> tuple[tuple[Labels, str], ...]:
    return (((), path),)


def _both(path_in: str, path_out: str) -> tuple[tuple[Labels, str], ...]:
    return ((IN, path_in), (OUT, path_out))


LIMITS: dict[str, tuple[str, str]] = {  # a limit: what is used of it, and how much there is
    "max_nodes": ("nodes", "max_nodes"),
    "max_strangers": ("strangers", "max_strangers"),
    "max_stranger_bytes": ("stranger_bytes", "max_stranger_bytes"),
    "max_held_bytes": ("held_bytes", "max_held_bytes"),
    "max_buffered": ("buffered_bytes", "max_buffered"),
    "node_window_bytes": ("node_window_used", "node_window_bytes"),
    "max_groups": ("leads.groups", "leads.max_groups"),
    "max_held": ("sequencing.frames_held", "sequencing.max_held"),
    "max_under_way": ("administration.under_way", "administration.max_under_way"),
}

METRICS = (
    Metric("ordercast_ready", "gauge", "1 while the node is in its cluster and works.",
           _one("service.ready")),
    Metric("ordercast_node_view_number", "gauge", "Number of the node view in force.",
           _one("node_view.number")),
    Metric("ordercast_node_view_size", "gauge", "Nodes in the node view.",
           _one("node_view.members")),
    Metric("ordercast_coordinator", "gauge", "1 at the node that coordinates the cluster.",
           _one("service.coordinator")),
    Metric("ordercast_suspected_nodes", "gauge", "Nodes that were silent for too long.",
           _one("suspicions")),
    Metric("ordercast_missing_nodes", "gauge", "Nodes that are missing for a majority.",
           _one("blocked")),
    Metric("ordercast_other_clusters", "gauge", "Other clusters of the same name that answer.",
           _one("other_clusters")),
    Metric("ordercast_trace_lost_records_total", "counter",
           "Records of the trace that could not be written.", _one("recorder.lost")),
    Metric("ordercast_re_entries_total", "counter", "Times that the node was out and came back.",
           _one("re_entries")),
    Metric("ordercast_machine_failures_total", "counter",
           "Times that the state machine of the node failed: a bug in Ordercast.",
           _one("machine_failures")),
    Metric("ordercast_sequenced_groups", "gauge", "Groups whose messages the node numbers.",
           _one("sequencing.groups")),
    Metric("ordercast_numbered_frames_total", "counter", "Frames that the node numbered.",
           _one("sequencing.numbered")),
    Metric("ordercast_transfers_total", "counter",
           "Groups that the node took over (in) and handed over (out) as a sequencer.",
           _both("sequencing.transfers_in", "sequencing.transfers_out")),
    Metric("ordercast_held_frames", "gauge",
           "Most frames that are held back in one group that the node numbers.",
           _one("sequencing.frames_held")),
    Metric("ordercast_history_frames", "gauge", "Frames kept until every member has them.",
           _one("sequencing.history")),
    Metric("ordercast_retransmissions_total", "counter", "Packets that were sent again.",
           _one("retransmits")),
    Metric("ordercast_steps_total", "counter", "Steps of the state machines.", _one("steps")),
    Metric("ordercast_heartbeats_total", "counter", "Heartbeats sent.", _one("heartbeats_sent")),
    Metric("ordercast_connections_open", "gauge", "Connections to other nodes.",
           _one("connections.open")),
    Metric("ordercast_connections_opened_total", "counter", "Connections that were opened.",
           _one("connections.opened")),
    Metric("ordercast_connections_refused_total", "counter", "Connections that were refused.",
           _one("connections.refused")),
    Metric("ordercast_connection_bytes_total", "counter", "Bytes on connections.",
           _both("connections.bytes_in", "connections.bytes_out")),
    Metric("ordercast_connection_frames_total", "counter", "Frames on connections.",
           _both("connections.frames_in", "connections.frames_out")),
    Metric("ordercast_connections_congested_total", "counter",
           "Times that a connection had more to send than the network took.",
           _one("connections.congested")),
    Metric("ordercast_peer_faults_total", "counter", "Times that a peer broke the protocol.",
           _one("peer_faults")),
    Metric("ordercast_conflicts_total", "counter",
           "Times that two peers sent different bodies of one message.", _one("conflicts.count")),
    Metric("ordercast_packet_errors_total", "counter",
           "Errors due to a bug in Ordercast that a packet of a peer brought out.",
           _one("packet_errors.count")),
    Metric("ordercast_loop_stalls_total", "counter", "Times that the event loop was blocked.",
           _one("loop_stalls.notable")),
    Metric("ordercast_loop_stall_longest_seconds", "gauge",
           "Longest time that the event loop was blocked, of the last five to ten minutes.",
           _one("loop_stalls.longest_ms"), 0.001),
    Metric("ordercast_pulses_total", "counter",
           "Pulses that came from other nodes, and were sent to them.",
           _both("pulses.heard", "pulses.sent")),
    Metric("ordercast_limit_used", "gauge", "How much of the limit is used.",
           tuple(((("limit", name),), used) for name, (used, _) in LIMITS.items())),
    Metric("ordercast_limit", "gauge", "How much the limit allows.",
           tuple(((("limit", name),), limit) for name, (_, limit) in LIMITS.items())),
    Metric("ordercast_refused_requests_total", "counter",
           "Requests of administrators beyond max_under_way.", _one("administration.refused")),
    Metric("ordercast_http_cut_off_total", "counter",
           "HTTP connections that were closed without an answer.", _one("service.http_cut_off")),
    Metric("process_start_time_seconds", "gauge",
           "Start time of the process, in seconds since 1970.", _one("process.start_time")),
    Metric("process_cpu_seconds_total", "counter", "CPU time that the process has used.",
           _one("process.cpu_seconds")),
    Metric("process_max_resident_memory_bytes", "gauge",
           "Largest resident memory of the process so far.", _one("process.max_resident")),
)  # fmt: skip


class ByName(msgspec.Struct, frozen=True):
    """A gauge with one sample for each name that stands in `stats()` at the moment."""

    name: str
    help: str
    labels: tuple[str, ...]


SLOW_MEMBERS = ByName(
    "ordercast_slow_member_seconds",
    "For how long the program of a member has taken nothing of a group. No sample if it reads.",
    ("group", "member"),
)
STANDING_STILL = ByName(
    "ordercast_standing_still_seconds",
    "For how long the event loop of another node has been blocked. No sample if it is not.",
    ("node",),
)

BUILD = "Versions of Python and of Ordercast."

STARTED = time.time()


def render(stats: Mapping[str, Any]) -> str:
    """All figures that are there."""
    figures = {**stats, "process": _process()}
    return "".join(_lines(figures))


def _lines(figures: Mapping[str, Any]) -> Iterator[str]:
    build = (("python", platform.python_version()), ("version", __version__))
    yield from _family("ordercast_build_info", "gauge", BUILD, [(build, 1.0)])
    for metric in METRICS:
        found = [(labels, _figure(figures, path)) for labels, path in metric.sources]
        samples = [(labels, value * metric.scale) for labels, value in found if value is not None]
        yield from _family(metric.name, metric.kind, metric.help, samples)
    for kind, samples in ((SLOW_MEMBERS, _slow(figures)), (STANDING_STILL, _standing(figures))):
        yield from _family(kind.name, "gauge", kind.help, samples)


def _slow(figures: Mapping[str, Any]) -> list[tuple[Labels, float]]:
    groups = {**figures.get("guest_of", {}), **figures.get("groups", {})}
    return [
        ((("group", group), ("member", member)), seconds)
        for group, stats in groups.items()
        for member, seconds in stats.get("slow_members", {}).items()
    ]


def _standing(figures: Mapping[str, Any]) -> list[tuple[Labels, float]]:
    found = figures.get("pulses", {}).get("standing_still", {})
    return [((("node", name),), seconds) for name, seconds in found.items()]


def _family(
    name: str, kind: str, text: str, samples: Iterable[tuple[Labels, float]]
) -> Iterator[str]:
    for place, (labels, value) in enumerate(samples):
        if place == 0:
            yield f"# HELP {name} {text}\n# TYPE {name} {kind}\n"
        shown = ",".join(f'{label}="{escaped(text)}"' for label, text in labels)
        yield f"{name}{{{shown}}} {value:.17g}\n" if shown else f"{name} {value:.17g}\n"


def escaped(text: str) -> str:
    """The value of a label."""
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _figure(figures: Mapping[str, Any], path: str) -> float | None:
    """What stands there: a number, the length of a list; None: nothing that can be counted."""
    value: Any = figures
    for part in path.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return None
        value = value[part]
    if isinstance(value, list | tuple):
        return float(len(value))
    return float(value) if isinstance(value, int | float) else None


def _process() -> dict[str, float]:
    used = resource.getrusage(resource.RUSAGE_SELF)
    unit = 1 if sys.platform == "darwin" else 1024
    return {
        "start_time": STARTED,
        "cpu_seconds": used.ru_utime + used.ru_stime,
        "max_resident": used.ru_maxrss * unit,
    }


def markdown() -> str:
    """The table of the docs."""
    lines = ["| metric | kind | labels | meaning |", "|---|---|---|---|"]
    lines.append(f"| `ordercast_build_info` | gauge | `python`, `version` | {BUILD} |")
    for metric in METRICS:
        names = dict.fromkeys(f"`{name}`" for labels, _ in metric.sources for name, _ in labels)
        lines.append(f"| `{metric.name}` | {metric.kind} | {', '.join(names)} | {metric.help} |")
    for by_name in (SLOW_MEMBERS, STANDING_STILL):
        labels = ", ".join(f"`{label}`" for label in by_name.labels)
        lines.append(f"| `{by_name.name}` | gauge | {labels} | {by_name.help} |")
    return "\n".join(lines)
