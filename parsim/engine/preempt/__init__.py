"""Which running jobs make room for one of a higher tier, and what becomes of them."""
