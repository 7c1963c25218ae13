"""A stand-in for an agent CLI that does on request what real ones do on a bad day (`python -m skillup.fakecli`).

It speaks the streams of Claude Code and of Codex, keeps sessions on disk as they do, and refuses the arguments that
they refuse. A plan says what each turn does: docs/conformance.md. Other harnesses can be tested with it, too, so it
uses the standard library alone, and nothing of ours but the version.
"""
