"""PySpark: read traces of any system, judge every promise of message order, report.

Every stage is a plain function from DataFrame to DataFrame on a session that the caller owns:

    events = read_traces(spark, ["logs/"])
    verdicts = verify(events)
    violations(verdicts).show(truncate=False)

`verdict.judge_paths` does all of it for the command line.
"""

from ordercast.pipeline.measure import facts, groups, latencies
from ordercast.pipeline.read import read_traces
from ordercast.pipeline.session import local_session
from ordercast.pipeline.verify import verify, violations

__all__ = [
    "facts",
    "groups",
    "latencies",
    "local_session",
    "read_traces",
    "verify",
    "violations",
]
