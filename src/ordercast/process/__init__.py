"""Everything of one node as one pure machine: cluster, groups, links, gates."""
