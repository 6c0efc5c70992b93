"""What families of protocols share, so that a page has only what is its own.

OrderingProtocol (core)            one door, eras and views, the verbs of the pseudo-code
├── SequencedMember                sequenced    deliver by the sequencer's numbers
│   └── SequencedProtocol          sequencer    give them (`numbering`, `guests`)
│       └── sequencer_pb, sequencer_bb
├── NumberedMember                 numbered_member  numbers of one view (asked for: `resend_window`)
│   └── javagroups
├── AckVectorProtocol              ack_vectors  everybody's marks in every header
│   └── nak
└── AcknowledgedProtocol           acknowledged who consumed what; record in `stability`
    ├── basic, reliable, uniform, fifo, vector, agreed (its queue: `placing`)
    └── DomainProtocol             domain       all groups of a process, one cut, the send rule
        ├── global_fifo, cbcast
        └── BlockProtocol          blocks       block numbers and matrix (news: `changes`)
            ├── fast
            └── SpeakingProtocol   silence      everybody speaks, if only to say nothing
                ├── relative
                └── VouchingProtocol    vouching     causes that no header names
                    ├── fast_p
                    └── BlockOrderProtocol  block_order  by number alone
                        └── slow, block_total
"""
