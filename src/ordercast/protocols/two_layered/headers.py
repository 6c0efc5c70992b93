"""The messages of a two-layered group. Small letters are local, in a subgroup; capitals global.

A vector says for each sender of its layer the number that is expected next: all below are there.
"""

from __future__ import annotations

import msgspec

from ordercast.core.ids import ProcessId

Column = int  # a sender of a layer: u of p_iu in a subgroup, i of G_i among the gateways
Vector = tuple[int, ...]


class Local(msgspec.Struct, frozen=True, array_like=True):
    """m: number seq of its sender in the subgroup; frame n of the source process sp."""

    seq: int
    sp: ProcessId
    n: int
    rsq: Vector
    RSQ: Vector


class Global(msgspec.Struct, frozen=True, array_like=True):
    """M: number GSQ of its sender among the gateways; frame n of SP, a process of its subgroup."""

    GSQ: int
    SP: ProcessId
    n: int
    RSQ: Vector


class Confirmation(msgspec.Struct, frozen=True, array_like=True):
    """To the gateway: accepted here, and how far what is here has come; () is as far as rsq."""

    rsq: Vector
    marks: tuple[Vector, ...]  # for each stage


class Announcement(msgspec.Struct, frozen=True, array_like=True):
    """n_k, of the gateway to its subgroup: accepted there, and how far all of the group are."""

    rsq: Vector
    reached: tuple[Vector, ...]  # for each stage


class GlobalConfirmation(msgspec.Struct, frozen=True, array_like=True):
    """N, to the gateways: accepted here, and how far my whole subgroup is; () is as far as RSQ."""

    RSQ: Vector
    marks: tuple[Vector, ...]  # for each stage


class GlobalStatus(msgspec.Struct, frozen=True, array_like=True):
    """The same, of a gateway that does not know that all have all: who does, answers."""

    RSQ: Vector
    marks: tuple[Vector, ...]


class Lost(msgspec.Struct, frozen=True, array_like=True):
    """To a member of the subgroup: send me these messages of column u again."""

    u: Column
    numbers: tuple[int, ...]


class Found(msgspec.Struct, frozen=True, array_like=True):
    """A message of column u, unchanged, from somebody who has it."""

    u: Column
    message: Local


class GlobalLost(msgspec.Struct, frozen=True, array_like=True):
    """To a gateway: send me these global messages of subgroup i again."""

    i: Column
    numbers: tuple[int, ...]


class GlobalFound(msgspec.Struct, frozen=True, array_like=True):
    """A global message of subgroup i, unchanged, from a gateway that has it."""

    i: Column
    message: Global
