"""Every protocol in every arena over many seeds; each trace judged by the oracle.

`arenas` and `trial` are also what the conformance tests run, on fewer seeds.
"""
