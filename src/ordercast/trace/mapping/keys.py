"""Every key of a mapping file with its meaning. The page docs/FOREIGN.md is made from this."""

from __future__ import annotations

from ordercast.core.declaration import ORDERS
from ordercast.trace.schema import COLUMNS

FORMATS = {
    "jsonl": "one JSON object per line",
    "json": "one JSON array of objects",
    "csv": "separated values, with a header line or the names in `header`",
    "text": "lines that match a regular expression with named groups",
    "otlp": "OpenTelemetry spans as the collector's file exporter writes them: OTLP JSON, one "
    "export per line; a row is a span",
    "parquet": "Parquet with any column names",
}
UNITS = {"iso": 0, "s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}  # in nanoseconds

WHOLE_KEYS = {
    "complete": "`true`: every log is complete, so an `end` is added to it (not after a crash); "
    "or a list of the processes whose logs are complete. Default `false`: every log may be cut off",
    "group": "`[[group]]`, repeatable: a declared group, see below",
    "source": "`[[source]]`, repeatable: for files with different columns; each source has its own "
    "keys of the next table. With a single source these keys stand at the top",
}
SOURCE_KEYS = {
    "format": "required; one of the formats below",
    "files": 'the files of a folder to read: a name pattern such as `"outbox-*.csv"`, or a list of '
    "patterns; the default depends on the format",
    "encoding": "of `jsonl`, `csv` and `text`; default `utf-8`, a byte order mark is skipped",
    "delimiter": "of `csv`; one character, default `,`",
    "quote": 'of `csv`; one character, default `"`',
    "header": "of `csv`: `true` (default), or the list of names where the file has no header line",
    "pattern": "of `text`, required: a regular expression with named groups, `(?P<name>...)`",
    "unmatched": "of `text`: `refuse` (default) or `ignore` lines that do not match; ignored lines "
    "are counted",
    "columns": "required; the field of your logs for each of our columns",
    "kinds": 'the kind for each word of your logs, or `ignore`; `"*"` stands for all other '
    "words. Without this table your logs must use the names of our kinds",
    "where": "field = value or list of values: only rows with such a value are read, others are "
    "counted",
    "unless": "field = value or list of values: rows with such a value are left out, and counted",
}
COLUMN_KEYS = {
    "field": "the field of your logs; `a.b` looks into `a`, `links.0.id` into a list, `x \\| y` "
    "takes `x`, or `y` where there is no `x`; `@process` is the value of the column `process` in "
    "this row; with braces it is a template such as `{sender}/{seq}`",
    "value": "a constant",
    "file": "a regular expression with one group, which is searched for in the name of the file",
    "by": "of `index` only: `line` or `time`",
    "default": "the value where the field is missing",
    "optional": "`true`: the trace is accepted even if no row has the field",
    "unit": "of `time` only: `iso` (default), `s`, `ms`, `us` or `ns`",
    "split": "of `members` only: the separator between names; default `\\|`, or a JSON array",
}
GROUP_KEYS = {
    "name": "required",
    "members": "the processes that must deliver its messages; without it, those that deliver any",
    "order": "the order that it promises, which is then expected: "
    f"{', '.join(f'`{o}`' for o in ORDERS)}",
    "protocol": "the name of its protocol, for the report",
    "scope": "`domain` (default): the order holds across all groups that promise the same; or "
    "`group`",
}
COLUMN_NAMES = dict.fromkeys(COLUMNS, "a column of ours")
