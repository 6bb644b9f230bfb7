"""The audit's pure parts."""
