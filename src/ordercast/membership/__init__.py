"""Who is in a group: views, and the flush between two of them."""
