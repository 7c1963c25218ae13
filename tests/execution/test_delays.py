"""`turn_delay` waits before later turns, and counts in no duration."""

from __future__ import annotations

import time

from tests.support import Project


def test_a_delay_is_waited_before_the_second_turn_and_not_counted(project: Project) -> None:
    project.write(
        "slow.yaml",
        """
        turn_delay: 3
        input: {turns: [{role: user, content: one}, {role: user, content: two}]}
        judge: {type: rule_based, success: [{output_contains: {all: [answer]}}]}
        script: [{say: answer}]
        """,
    )
    started = time.monotonic()
    done = project.run("slow.yaml", "--agent", "demo")
    assert done.code == 0, done.stdout
    assert time.monotonic() - started >= 3
    assert done.trial().duration_ms < 3000
