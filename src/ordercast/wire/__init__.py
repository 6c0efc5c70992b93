"""What the bytes between two processes mean: the opening, frames, headers, packed messages."""
