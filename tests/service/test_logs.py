"""Lines of the log: one per event, readable by programs, whatever others wrote into it."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager

from ordercast.service.logs import install, with_fields
from ordercast.service.settings import LogFormat


@contextmanager
def logged(form: LogFormat) -> Iterator[tuple[logging.Logger, io.StringIO]]:
    root, out = logging.getLogger(), io.StringIO()
    before = root.level
    handler = install(form, "info", out)
    try:
        yield logging.getLogger("ordercast.service"), out
    finally:
        root.removeHandler(handler)
        root.setLevel(before)


def test_a_json_line_has_the_fields_and_the_error() -> None:
    with logged("json") as (log, out):
        log.info("ready", extra=with_fields(name="s1", groups=2, peers=["a", "b"]))
        try:
            raise ValueError("wrong\nhere")
        except ValueError:
            log.exception("failed")
        log.debug("not told")
    first, second = map(json.loads, out.getvalue().splitlines())
    assert first.pop("ts").endswith("Z")
    assert first == {
        "level": "info", "logger": "ordercast.service", "msg": "ready", "name": "s1", "groups": 2,
        "peers": ["a", "b"],
    }  # fmt: skip
    assert second["level"] == "error" and "wrong\nhere" in second["error"]


def test_a_logfmt_line_quotes_what_would_break_it() -> None:
    with logged("logfmt") as (log, out):
        log.warning("a peer said %s", 'x" level=error\ny', extra=with_fields(n=2, at="10.0.0.5:7"))
    [line] = out.getvalue().splitlines()
    assert line.partition(" ")[2] == (
        'level=warning logger=ordercast.service msg="a peer said x\\" level=error\\ny" n=2 '
        "at=10.0.0.5:7"
    )
