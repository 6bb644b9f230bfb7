"""The audit: the promises recomputed from topics and tables, by other code than that which keeps them."""
