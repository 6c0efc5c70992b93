"""Judge a system while it runs, with Spark Structured Streaming.

`sources` reads a growing folder in slices that can be read again. `live` is the incremental judge
and knows no Spark. `panel` gives each promise of a run its judge, `query` makes one streaming query
of it all, `journal` keeps what was found and `terms` what is judged, and `Watcher` is what a person
starts and ends.
"""

from ordercast.pipeline.streaming.journal import Journal
from ordercast.pipeline.streaming.query import WatchOptions, start_watch
from ordercast.pipeline.streaming.watcher import Watcher

__all__ = ["Journal", "WatchOptions", "Watcher", "start_watch"]
