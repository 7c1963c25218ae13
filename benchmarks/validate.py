"""How long `skillup validate` takes for 1,000 cases of two turns with a gate, a capture, rules and a script."""

from __future__ import annotations

from pathlib import Path

from benchmarks.measure import SKILLUP, measure, plain_variables, spread

CASES = 1000
ROUNDS = 5

_CASE = """\
title: case number {number}
vars: {{who: someone}}
input:
  turns:
    - role: user
      content: "make ticket {number} for {{{{who}}}}"
      post_condition: {{must_contain_any: ["T-"], on_fail: fail}}
      capture: [{{variable: ticket, pattern: '(T-\\d+)'}}]
    - role: user
      content: "close {{{{ticket}}}}"
context:
  files: {{notes.txt: "number {number}"}}
judge:
  type: rule_based
  success:
    - tool_called: {{name: bash, args: {{command: {{matches: 'echo T-{number}'}}}}}}
    - output_contains: {{all: ["closed"]}}
    - files_exist: [tickets.txt]
  failure:
    - output_matches: {{any: ['(?i)cannot']}}
script:
  - user: make ticket {number} for
    replies:
      - calls: [{{tool: bash, args: {{command: "echo T-{number} > tickets.txt"}}}}]
      - say: "Created T-{number}"
  - {{user_matches: 'close (?P<id>T-\\d+)', say: "closed {{{{id}}}}"}}
"""


def main(folder: Path) -> None:
    """Prints the spread."""
    cases = folder / "cases"
    cases.mkdir()
    for number in range(CASES):
        (cases / f"case-{number}.yaml").write_text(_CASE.format(number=number))
    env = plain_variables(folder)
    argv = (*SKILLUP, "validate", "cases")
    measure(argv, cwd=folder, env=env)
    walls = [measure(argv, cwd=folder, env=env).wall for _ in range(ROUNDS)]
    print(f"validate: {CASES} cases: {spread(walls, digits=2)}")
