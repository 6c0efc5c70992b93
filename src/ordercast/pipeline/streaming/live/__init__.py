"""The incremental judge: rows of one run in, notices out, bounded memory, no Spark and no clock."""

from ordercast.pipeline.streaming.live.judge import LiveJudge
from ordercast.pipeline.streaming.live.notices import Notice
from ordercast.pipeline.streaming.live.state import Limits

__all__ = ["Limits", "LiveJudge", "Notice"]
