"""What families of protocols share, so that a page has only what is its own.

Base classes. A page stands on one of them, and has parts:

OrderingProtocol (core)            one door, eras and views, the verbs of the pseudo-code
├── SequencedProtocol              sequenced    deliver by numbers; at the leader a `sequencer`
│   └── sequencer_pb, sequencer_bb (bodies that travel apart: `bodies_apart`)
├── javagroups                     made of parts: its queue has the numbers of one view
├── AckVectorProtocol              ack_vectors  everybody's marks in every header
│   └── nak
├── AcknowledgedProtocol           acknowledged one group
│   └── basic, reliable, uniform, fifo, vector, agreed (its queue: `placing`)
└── DomainProtocol                 domain       all groups of a process, one cut
    └── global_fifo, cbcast, fast, fast_p, relative, slow, block_total

Parts of the machines without one (what they may do: `parts`):

stability     Stability            acknowledged, domain: who consumed what
send_rule     SendRule             domain: when a frame may leave for another group
blocks        Blocks               fast: block numbers, and what a cut delivers by number
silence       CompletedBlocks      relative, fast_p: the block matrix; everybody speaks, if only to
                                   say nothing
block_order   BlockOrder           slow, block_total: a queue by number alone, with such blocks
vouching      Unvouched            fast_p, slow, block_total: causes that no header names
changes       ChangingVector       fast, fast_p, relative: the news in a header

Parts of the machines that have a sequencer, each with one task:

NumberedQueue        numbered_queue     a member's frames by number; of one view alone: `view_queue`
SentFrames           sent_frames        own frames, until they are delivered, or stable
Sequencer            sequencer          what the leader does in one era, with its books:
  Numbering          numbering          which number went to which frame
  GuestBook          guests             how far the frames of guests are
BodiesApart          bodies_apart       bodies without a number, numbers without a body
ResendWindow         resend_window      which missing numbers to ask for, and when again
Unanswered           unanswered         words that have no answer yet
(functions)          sequenced_waiting  what waits, and why
(functions)          numbered_entries   numbered frames in a flush
"""
