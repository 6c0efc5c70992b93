"""Small clusters in which everything that can happen is tried: hand-overs, joins, a crash.

The nodes are those of the runtime, `ClusteredStack`, with all they do: the coordinator's directory,
books that travel, views that are numbered, and the flush that ends a node view. Only time stands
still: no timer fires before nothing else can happen.

    scene     who is there, what is done, whom a crash strikes
    nodes     what one node can do; each of its steps is computed once
    space     the states of a scene, and what can happen in each
    judging   what is still missing at the end comes, or never will; the oracle judges the logs
    search    all states of a scene, how many ways lead through them, the shortest one that is wrong
    catalogue the scenes that are searched
"""
