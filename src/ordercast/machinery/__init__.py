"""What families of protocols share, so that a page has only what is its own.

OrderingProtocol (core)            one door, eras and views, the verbs of the pseudo-code
├── SequencedProtocol              sequenced    deliver by numbers; at the leader a `sequencer`
│   └── sequencer_pb, sequencer_bb (bodies that travel apart: `bodies_apart`)
├── javagroups                     made of parts: its queue has the numbers of one view
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
(functions)          numbered_entries   numbered entries in a flush
"""
