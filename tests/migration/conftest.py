"""Workers of two releases on one installation."""

from tests.integration.sinks.conftest import road, stage

__all__ = ["road", "stage"]
