"""The sequencing service of source 000: many overlapping groups, several sequencers."""
