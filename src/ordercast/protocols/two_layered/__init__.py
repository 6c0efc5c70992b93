"""The two-layered group: subgroups with gateways."""
