"""Judge a system while it runs, with Spark Structured Streaming.

Three rooms: `sources` reads a growing folder in slices that can be read again, `live` is the
incremental judge and knows no Spark, `query` puts both into one streaming query.
"""
