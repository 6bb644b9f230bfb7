"""Tests of the timeline's pure parts."""
