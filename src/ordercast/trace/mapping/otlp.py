"""OpenTelemetry spans in OTLP JSON: one export per line, a record per span.

    resourceSpans[].scopeSpans[].spans[]

A record has the fields of the span, with three changes: `kind` is a word (`producer`,
`consumer`, ...), `attributes` of span, events and links are objects by key, and `resource` and
`scope` hold the attributes of the resource and the name and version of the scope.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ordercast.errors import TraceError

SPAN_KINDS = ("unspecified", "internal", "server", "client", "producer", "consumer")


def spans(export: dict[str, Any], file: Path, line: int) -> list[dict[str, Any]]:
    """The spans of one line."""
    if "resourceSpans" not in export:
        has = ", ".join(list(export)[:5]) or "nothing"
        reason = f"not an export of spans: it has {has} where 'resourceSpans' must be"
        raise TraceError(file, line, None, reason)
    try:
        return [
            _record(span, resource, scoped.get("scope", {}))
            for of_resource in export["resourceSpans"]
            for resource in [_attributes(of_resource.get("resource", {}).get("attributes", []))]
            for scoped in of_resource.get("scopeSpans", [])
            for span in scoped.get("spans", [])
        ]
    except (AttributeError, LookupError, TypeError, ValueError) as reason:
        text = "the spans are not laid out as OTLP JSON has them"
        raise TraceError(file, line, "resourceSpans", f"{text}: {reason}") from reason


def _record(
    span: dict[str, Any], resource: dict[str, Any], scope: dict[str, Any]
) -> dict[str, Any]:
    return {
        **_with_attributes(span),
        "kind": _kind(span.get("kind", 0)),
        "events": [_with_attributes(event) for event in span.get("events", [])],
        "links": [_with_attributes(link) for link in span.get("links", [])],
        "resource": resource,
        "scope": scope,
    }


def _kind(kind: int | str) -> str:
    if isinstance(kind, str):
        return kind.removeprefix("SPAN_KIND_").lower()
    if not 0 <= kind < len(SPAN_KINDS):
        raise ValueError(f"a span of kind {kind}; there are 0 to {len(SPAN_KINDS) - 1}")
    return SPAN_KINDS[kind]


def _with_attributes(part: dict[str, Any]) -> dict[str, Any]:
    return {**part, "attributes": _attributes(part.get("attributes", []))}


def _attributes(pairs: list[dict[str, Any]]) -> dict[str, Any]:
    return {pair["key"]: _value(pair.get("value", {})) for pair in pairs}


def _value(value: dict[str, Any]) -> Any:
    """{"intValue": "5"} -> 5, and so on for each type that an attribute can have."""
    for kind, inner in value.items():
        match kind:
            case "intValue":
                return int(inner)
            case "arrayValue":
                return [_value(one) for one in inner.get("values", [])]
            case "kvlistValue":
                return _attributes(inner.get("values", []))
            case _:
                return inner
    return None
