"""The relay's pure parts."""
