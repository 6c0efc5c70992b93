"""TLS between nodes: each shows a certificate, and each checks the other's against the authority.

TLS 1.3 only. Sessions are not resumed, so every connection checks the certificates again. Names
in certificates are not compared with addresses: whom the authority signed may be a node.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping

import msgspec

from ordercast.errors import ConfigError

ROUNDS = 8  # more than a handshake with oneself needs

VERIFY_FAULTS = {  # OpenSSL's numbers of what can be wrong with a certificate
    2: "the certificate is signed by another authority",
    7: "the certificate is signed by another authority of the same name",
    9: "the certificate is not valid yet",
    10: "the certificate has expired",
    18: "the certificate is self-signed, not signed by the authority",
    19: "the certificate is signed by another authority",
    20: "the certificate is signed by another authority",
    21: "the certificate is signed by another authority",
    26: "the certificate is not for both sides: it needs no extendedKeyUsage, or "
    "serverAuth and clientAuth",
    79: "the authority's certificate is not one of an authority (basicConstraints CA:TRUE)",
}

HANDSHAKE_FAULTS = {
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "it showed no certificate",
    "HTTP_REQUEST": "it does not speak TLS",
    "WRONG_VERSION_NUMBER": "it does not speak TLS",
    "PACKET_LENGTH_TOO_LONG": "it does not speak TLS",
    "UNSUPPORTED_PROTOCOL": "it speaks an older TLS than 1.3",
    "TLSV1_ALERT_PROTOCOL_VERSION": "it speaks an older TLS than 1.3",
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": "it wants a certificate of this side",
    "TLSV1_ALERT_UNKNOWN_CA": "it does not accept our certificate: another authority",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "it does not accept our certificate: it has expired",
    "SSLV3_ALERT_BAD_CERTIFICATE": "it does not accept our certificate",
}


class Tls(msgspec.Struct, frozen=True):
    """The files that a node needs for TLS, each in PEM format."""

    certificate: str | os.PathLike[str]  # of this node, with the chain up to the authority
    key: str | os.PathLike[str]  # its private key, without a passphrase
    authority: str | os.PathLike[str]  # certificate of the authority that signs those of all nodes

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            path = getattr(self, name)
            if not isinstance(path, str | os.PathLike):
                raise TypeError(f"tls.{name} is the path of a file, not {type(path).__name__}")
            msgspec.structs.force_setattr(self, name, os.fspath(path))


class TlsContexts:
    """What the event loop needs, made of files that were found good."""

    def __init__(self, tls: Tls) -> None:
        """`ConfigError` that names the file and its fault."""
        self.accepting = _context(tls, ssl.PROTOCOL_TLS_SERVER)
        self.accepting.num_tickets = 0
        self.connecting = _context(tls, ssl.PROTOCOL_TLS_CLIENT)
        try:
            _shake_hands_alone(self.connecting, self.accepting)
        except ssl.SSLError as error:
            raise ConfigError(
                f"tls.certificate={str(tls.certificate)!r} with "
                f"tls.authority={str(tls.authority)!r}: {fault_of(error)}; no node would accept it"
            ) from None


def as_tls(choice: object) -> Tls | None:
    """What was given as `tls=`; also in the form that JSON makes of it."""
    if choice is None or isinstance(choice, Tls):
        return choice
    if isinstance(choice, Mapping):
        return Tls(**choice)
    raise TypeError(
        "tls is ordercast.Tls(certificate='node.pem', key='node.key', authority='ca.pem'), "
        f"not {type(choice).__name__}"
    )


def certificate_fault(tls: Tls) -> str:
    """What is wrong with these files, in words; empty if nothing is."""
    try:
        TlsContexts(tls)
    except ConfigError as error:
        return str(error)
    return ""


def fault_of(error: Exception) -> str:
    """What went wrong between two sides that tried TLS, in words."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return VERIFY_FAULTS.get(error.verify_code, str(error.verify_message))
    if isinstance(error, ssl.SSLError) and error.reason:
        words = error.reason.replace("_", " ").lower()
        return HANDSHAKE_FAULTS.get(error.reason, words)
    return str(error) or type(error).__name__


def _context(tls: Tls, protocol: int) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    for name in tls.__struct_fields__:
        _check_readable(f"tls.{name}", getattr(tls, name))
    _load_authority(context, "tls.authority", tls.authority)
    _load_authority(ssl.SSLContext(protocol), "tls.certificate", tls.certificate)
    _load_certificate(context, tls)
    return context


def _check_readable(name: str, path: str) -> None:
    try:
        with open(path, "rb"):
            pass
    except OSError as error:
        raise ConfigError(f"{name}={path!r}: {error.strerror}") from None


def _load_authority(context: ssl.SSLContext, name: str, path: str | os.PathLike[str]) -> None:
    try:
        context.load_verify_locations(path)
    except ssl.SSLError:
        raise ConfigError(f"{name}={path!r}: there is no certificate in PEM format in it") from None


def _load_certificate(context: ssl.SSLContext, tls: Tls) -> None:
    def no_passphrase() -> str:
        raise ConfigError(
            f"tls.key={str(tls.key)!r} is locked with a passphrase; give one that is not "
            "(openssl pkey -in OLD -out NEW)"
        )

    try:
        context.load_cert_chain(tls.certificate, tls.key, no_passphrase)
    except ssl.SSLError as error:
        fits = error.reason != "KEY_VALUES_MISMATCH"
        fault = (
            "there is no private key in PEM format in it"
            if fits
            else f"it does not fit the certificate {str(tls.certificate)!r}"
        )
        raise ConfigError(f"tls.key={str(tls.key)!r}: {fault}") from None


def _shake_hands_alone(connecting: ssl.SSLContext, accepting: ssl.SSLContext) -> None:
    """A connection to oneself, in memory: what fails here would fail with every other node."""
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    waiting = [
        connecting.wrap_bio(back, there),
        accepting.wrap_bio(there, back, server_side=True),
    ]
    for _ in range(ROUNDS):
        for side in tuple(waiting):
            try:
                side.do_handshake()
                waiting.remove(side)
            except ssl.SSLWantReadError:
                continue
    assert not waiting, "the handshake did not end"
