"""Every key of a mapping file with its meaning. The page docs/FOREIGN.md is made from this."""

from __future__ import annotations

from ordercast.core.declaration import ORDERS
from ordercast.trace.schema import COLUMNS

FORMATS = {
    "jsonl": "one JSON object per line",
    "json": "one JSON array of objects",
    "csv": "separated values, with a header line or `header` names",
    "text": "lines that match a regular expression with named groups",
    "otlp": "OpenTelemetry spans as the collector's file exporter writes them: OTLP JSON, one "
    "export per line; a row is a span",
    "parquet": "Parquet with any column names",
}
UNITS = {"iso": 0, "s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}  # in nanoseconds

WHOLE_KEYS = {
    "complete": "`true`: every log is complete, so an `end` is put after it (not after a crash); "
    "or a list of the processes whose logs are. Default `false`: every log may be cut off",
    "group": "`[[group]]`, repeatable: a declared group, see below",
    "source": "`[[source]]`, repeatable: where files have different columns, each kind of file has "
    "its own keys of the next table; without it they stand at the top",
}
SOURCE_KEYS = {
    "format": "needed; one of the formats below",
    "files": 'which files of a folder: a name pattern such as `"outbox-*.csv"`, or a list of '
    "them; the default depends on the format",
    "encoding": "of `jsonl`, `csv` and `text`; default `utf-8`, a byte order mark is skipped",
    "delimiter": "of `csv`; one character, default `,`",
    "quote": 'of `csv`; one character, default `"`',
    "header": "of `csv`: `true` (default), or the list of names where the file has no header line",
    "pattern": "of `text`, needed: a regular expression with named groups, `(?P<name>...)`",
    "unmatched": "of `text`: `refuse` (default) or `ignore` lines that do not match; they are "
    "counted",
    "columns": "needed; from our columns to their fields",
    "kinds": 'from their words for what happened to our kinds, or to `ignore`; `"*"` stands for '
    "all other words. Without it their words must be ours",
    "where": "field = value or list of values: only rows that have it are read, others counted",
    "unless": "field = value or list of values: rows that have it are left out, and counted",
}
COLUMN_KEYS = {
    "field": "their field; `a.b` looks into `a`, `links.0.id` into a list, `x \\| y` takes `x`, or "
    "`y` where there is no `x`; `@process` is what our `process` has in this row; with braces "
    "it is a template such as `{sender}/{seq}`",
    "value": "a constant",
    "file": "a regular expression with one group that is searched in the name of the file",
    "by": "of `index` only: `line` or `time`",
    "default": "what holds where the field is missing",
    "optional": "`true`: it is no mistake if no row at all has the field",
    "unit": "of `time` only: `iso` (default), `s`, `ms`, `us` or `ns`",
    "split": "of `members` only: what stands between the names; default `\\|`, or a JSON array",
}
GROUP_KEYS = {
    "name": "needed",
    "members": "the processes that owe its messages; without it, those that deliver any",
    "order": f"what it promises, which then is expected: {', '.join(f'`{o}`' for o in ORDERS)}",
    "protocol": "a word for the report",
    "scope": "`domain` (default): the order holds across all groups that promise the same; or "
    "`group`",
}
COLUMN_NAMES = dict.fromkeys(COLUMNS, "a column of ours")
