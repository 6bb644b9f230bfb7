"""The simulated gateway's REST API.

Only the paths are known; authentication, page shapes and errors are assumed, and stand in `books` and `pages` alone.
"""
