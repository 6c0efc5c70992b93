"""Read anybody's logs: a TOML file says which of their fields are our columns.

    keys, spec                      every key with its meaning; a mapping as data
    section, columns, parse         from the TOML file to a `LogMapping`
    files                           which files of a folder a mapping is about
    records, otlp, foreign_parquet  from a file to batches of rows
    batch, fields                   from a batch to values: paths, alternatives, templates
    values, row_order               the types of our columns; an index from lines or times
    apply, refusals                 from rows to the columns of a trace, or to a refusal
    survey, account                 what follows from all files; what people are told
    reading, table                  all of it together

Nothing is dropped silently: a row is an event, or is ignored because the mapping says so and
counted, or is refused with file, line and reason.
"""

from ordercast.trace.mapping.parse import read_mapping
from ordercast.trace.mapping.spec import LogMapping

__all__ = ["LogMapping", "read_mapping"]
