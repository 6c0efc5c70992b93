"""PySpark: read traces of any system, judge every promise of message order, measure, report.

Every stage is a plain function from DataFrame to DataFrame on a session that the caller owns, on
this machine, on a cluster, or of Spark Connect:

    events = read_traces(spark, ["logs/"])
    verdicts = verify(events)
    violations(verdicts).show(truncate=False)
    measure(events, per=["run"]).show()

On a cluster the first stage that runs in tasks sends this package to the executors; `ship(spark)`
does it at once. `verdict.judge_paths` does all of it for the command line.
"""

from ordercast.pipeline.measure import deliveries, facts, groups, measure
from ordercast.pipeline.read import read_traces
from ordercast.pipeline.spark.session import local_session
from ordercast.pipeline.spark.task_code import ship
from ordercast.pipeline.verify import verify, violations

__all__ = [
    "deliveries",
    "facts",
    "groups",
    "local_session",
    "measure",
    "read_traces",
    "ship",
    "verify",
    "violations",
]
