"""Read anybody's logs: a TOML file says which of their fields are our columns.

    keys      every key that a mapping file may have, with its meaning
    spec      a mapping as data
    parse     from the TOML file to a `LogMapping`
    files     which files of a folder a mapping is about
    records   from a file to records: JSON, CSV, text, OTLP, Parquet
    fields    from a record to a value: paths, alternatives, templates
    values    from a value to the type that a column of ours must have
    apply     from records to the columns of a trace
    survey    what was seen and left out; declarations and ends that the mapping adds

Nothing is dropped silently: a row is an event, or is ignored because the mapping says so and
counted, or is refused with file, line and reason.
"""

from ordercast.trace.mapping.parse import read_mapping
from ordercast.trace.mapping.spec import LogMapping

__all__ = ["LogMapping", "read_mapping"]
