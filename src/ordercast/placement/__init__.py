"""Which node numbers which group: components of groups that must be together, loads, moves."""
