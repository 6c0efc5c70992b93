"""A growing folder of traces, read in slices that can be read again.

A place in the folder is a dictionary: per log of a recording the segment and the rows of it that
were read, per other file the bytes that were read. It stays small however long a run is, and the
rows between two places are always the same: also if a segment was sealed in the meantime.
"""

from ordercast.pipeline.streaming.sources.places import Place, Slice, advance, slices_between
from ordercast.pipeline.streaming.sources.slices import read_slice

__all__ = ["Place", "Slice", "advance", "read_slice", "slices_between"]
