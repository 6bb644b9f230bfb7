"""The guard: judges each delivery by its object's version table and passes every one on with its verdict."""
