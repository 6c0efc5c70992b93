"""Lies in the states that real runs reach: whatever a peer says, a node does not end.

    moments    a simulated run of a cluster, and copies of its nodes in every kind of state
    lies       packets that are well formed and wrong, of senders of every kind
    trial      a copy is told lies between the honest events that followed; what must hold
    findings   what did not, grouped by its place, with a seed and the shortest witness
    octets     the decoders of the wire, and bytes that are not what they should be

`python -m fuzz` or `make fuzz`; docs/FUZZ.md.
"""
