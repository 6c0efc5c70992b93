"""Machines with one named fault each: rules as printed in a source, and tempting short cuts.

Whatever judges a run has to reject every one of them. `catalogue` lists them.
"""
