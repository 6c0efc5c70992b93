"""What families of protocols share, so that a page has only what is its own.

Base classes. A page stands on one of them, and has parts:

OrderingProtocol (core)            one door, eras and views, the verbs of the pseudo-code
├── SequencedMember                sequenced    deliver by the sequencer's numbers
│   └── SequencedProtocol          sequencer    give them (`numbering`, `guests`)
│       └── sequencer_pb, sequencer_bb
├── NumberedMember                 numbered_member  numbers of one view (asked for: `resend_window`)
│   └── javagroups
├── AckVectorProtocol              ack_vectors  everybody's marks in every header
│   └── nak
├── AcknowledgedProtocol           acknowledged one group
│   └── basic, reliable, uniform, fifo, vector, agreed (its queue: `placing`)
└── DomainProtocol                 domain       all groups of a process, one cut
    └── global_fifo, cbcast, fast, fast_p, relative, slow, block_total

Parts (what they may do: `parts`):

stability     Stability            acknowledged, domain: who consumed what
send_rule     SendRule             domain: when a frame may leave for another group
blocks        Blocks               fast: block numbers, and what a cut delivers by number
silence       CompletedBlocks      relative, fast_p: the block matrix; everybody speaks, if only to
                                   say nothing
block_order   BlockOrder           slow, block_total: a queue by number alone, with such blocks
vouching      Unvouched            fast_p, slow, block_total: causes that no header names
changes       ChangingVector       fast, fast_p, relative: the news in a header
"""
