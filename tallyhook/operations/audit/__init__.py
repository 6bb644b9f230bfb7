"""The audit: the promises recomputed from topics and tables while the pipeline runs, apart from the code that keeps them."""
