"""Networks of their own, made of kernel namespaces: what live tests, benches and chaos runs share.

`namespaces` makes, cuts and mends them; `shaping` delays and loses packets in them.
"""
