"""The judge: which promises of order a recorded run kept, with a witness for each that it broke.

It works on Arrow tables and arrays of integers, in one process, and imports no Spark. There are two
ways to use it:

    check       in this process: `check_paths`, `ordercast check`, `ordercast.testing.assert_order`
    verify      on Spark: the stages of `ordercast.pipeline` run the same functions in their tasks

    kernels     the checks, over the arrays of one run
    folds       what is measured, folded from Arrow tables
    report      the outcome as a page of HTML
"""
