"""What is measured of runs, folded from Arrow tables: in a task of Spark, or without it."""
