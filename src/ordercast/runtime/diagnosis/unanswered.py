"""A connection was accepted, and no hello came: finds out what is wrong."""

from __future__ import annotations

import asyncio
import ssl

from ordercast.runtime.diagnosis.knocking import Nature, nature_of
from ordercast.runtime.diagnosis.subject import Subject
from ordercast.runtime.reasons import why_unreachable
from ordercast.transport.connection import Connection
from ordercast.transport.contract import Address
from ordercast.transport.tls import fault_of

REFUSALS = ("cluster", "version", "full")  # words of a Refuse that are codes of the catalogue
UNSPOKEN = {"mute": "mute", "closing": "hung_up", "stranger": "stranger"}
ABOUT_CERTIFICATES = ("CERT", "UNKNOWN_CA")  # in OpenSSL's names of alerts


class ProbeFailed(Exception):
    """The step that failed: a code of the catalogue, and what was seen."""

    def __init__(self, code: str, seen: str) -> None:
        super().__init__(seen)
        self.code = code
        self.seen = seen


class Attempt(Connection):
    """A connection that remembers how it ended: TLS reports some errors only then."""

    made = False  # TLS is up, if there is any
    broke: Exception | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.made = True
        super().connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self.broke = exc
        super().connection_lost(exc)


async def why_unanswered(
    conn: Attempt, trouble: Exception | None, place: Address, subject: Subject
) -> ProbeFailed:
    """What the other side said; if nothing, what it answers to a stranger."""
    if conn.refusal is not None:
        code = conn.refusal.reason if conn.refusal.reason in REFUSALS else "refusal"
        return ProbeFailed(code, f"it refuses: {conn.refusal.text}")
    if isinstance(trouble, ssl.SSLCertVerificationError):
        return ProbeFailed("certificate", f"{fault_of(trouble)} ({trouble.verify_message})")
    if isinstance(trouble, ssl.SSLError) and _about_certificate(trouble):
        return ProbeFailed("certificate_refused", fault_of(trouble))
    if subject.tls is not None and not conn.made and trouble is not None:
        return _without_tls(await nature_of(place, subject.patience), trouble)
    nature = await nature_of(place, subject.patience, subject.tls)
    return _of_nature(nature, subject, conn.reason)


def _about_certificate(alert: ssl.SSLError) -> bool:
    return any(word in (alert.reason or "") for word in ABOUT_CERTIFICATES)


def _without_tls(nature: Nature, trouble: Exception) -> ProbeFailed:
    if nature.kind in ("plain", "keyed"):
        return ProbeFailed("plain_there", f"{nature.text} answers in plain text; you use TLS")
    if nature.kind == "tls":
        seen = f"{nature.text}, and this side speaks TLSv1.3 only: {why_unreachable(trouble)}"
        return ProbeFailed("tls", seen)
    return ProbeFailed(UNSPOKEN[nature.kind], nature.text)


def _of_nature(nature: Nature, subject: Subject, reason: str) -> ProbeFailed:
    if nature.kind == "keyed":
        return ProbeFailed("key", _about_key(subject))
    if nature.kind == "plain":
        if subject.security.key:
            return ProbeFailed("key", "it has no key, and this side has one")
        return ProbeFailed("hung_up", f"it answers other nodes, but not this one: {reason}")
    if nature.kind == "tls":
        return ProbeFailed("tls_there", f"{nature.text}, and this side speaks plain text")
    if nature.kind == "closing" and subject.tls is not None:
        # A node does not say why it does not accept a certificate.
        seen = "its certificate is good, but it closes the connection after it got this side's"
        return ProbeFailed("certificate_refused", seen)
    return ProbeFailed(UNSPOKEN[nature.kind], nature.text)


def _about_key(subject: Subject) -> str:
    if subject.security.key:
        return "it has another key than this side"
    return "it asks for a proof of the key, and no key was given"
