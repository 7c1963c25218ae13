"""Evaluate agent skills over several turns on the real agent CLIs."""

__version__ = "0.1.0"
