"""A small coding agent with a command line: one process is one turn of a session that is kept on disk.

It is what the demo and many tests drive, started and read exactly as any other agent CLI. It uses the
standard library only, so that it starts in tens of milliseconds. docs/builtin-agent.md lists its events and
exit codes.
"""
