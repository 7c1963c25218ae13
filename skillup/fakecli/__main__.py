"""`python -m skillup.fakecli ARGUMENTS`, also installed as `skillup-fake-agent`: called like the CLI that it plays.

Exit codes are those of the CLI; 2 also when the plan cannot be followed.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from skillup import __version__
from skillup.fakecli.children import remember
from skillup.fakecli.claude import Claude
from skillup.fakecli.codex import Codex
from skillup.fakecli.dialect import Refused
from skillup.fakecli.output import Output, complain
from skillup.fakecli.plan import PlanError, read_plan
from skillup.fakecli.steps import Steps


def main() -> int:
    """Plays one process of the CLI; gives its exit code."""
    # The real CLIs hear an interrupt also where whoever started them does not (a shell's background job).
    signal.signal(signal.SIGINT, signal.default_int_handler)
    arguments, output = sys.argv[1:], Output()
    codex = arguments[:1] == ["exec"] or Path(sys.argv[0]).name == "codex"
    dialect = (Codex if codex else Claude)(arguments, os.environ, output)
    steps: Steps | None = None
    try:
        plan = read_plan(os.environ, Steps.known())
        if arguments[:1] in (["--version"], ["-V"], ["-v"]):
            output.write(f"{plan.version or f'{__version__} (skillup-fake-agent)'}\n".encode())
            return 0
        remember(plan.memory, os.getpid())
        prompt = dialect.prompt()
        dialect.open(prompt)
        steps = Steps(plan, dialect, output, prompt)
        steps.run(plan.steps(dialect.turn))
        steps.end()
    except Refused as refused:
        if str(refused):
            complain(str(refused))
        return refused.code
    except PlanError as error:
        complain(f"skillup-fake-agent: {error}")
        return 2
    except KeyboardInterrupt:
        if steps is not None:
            steps.end()
        return dialect.interrupted() if dialect.session_id else 130
    return steps.code


if __name__ == "__main__":
    sys.exit(main())
