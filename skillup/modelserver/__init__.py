"""The loopback model server: protocols (`anthropic.py`, …) times sources of replies (`scripted.py`, …)."""
