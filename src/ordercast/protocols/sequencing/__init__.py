"""The sequencing service of source 000: its four orders stand in `orders`."""
