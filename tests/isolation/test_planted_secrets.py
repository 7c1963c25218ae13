"""Secrets planted wherever a trial can show one: no byte that skillup writes or prints holds any of them.

There are three: a credential of the agent's profile, a key of the judge, and a key that nobody has told us of, known by
its shape alone. Judging again comes to the same verdict, because the first judging saw the masked trial, too.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from skillup.masking import MASK
from skillup.results import Evaluated
from tests.fake_claude import fake_claude
from tests.judging.judged import given, judge_model
from tests.support import Finished, Project

CREDENTIAL = "Tok\"en\\of the prof'ile-7391-ü"
SHAPED = "ghp_" + "Zq7" * 12
JUDGE_KEY = "the-judge-has-this-key-5526"
SECRETS = (CREDENTIAL, SHAPED, JUDGE_KEY)

LEAKY = """
    import base64
    token, shaped = os.environ["MY_TOKEN"], "ghp_" + "Zq7" * 12
    both = f"{token} and {shaped}"
    def delta(piece):
        say({"type": "stream_event", "event": {"type": "content_block_delta", "index": 0,
             "delta": {"type": "text_delta", "text": piece}}})
    print(f"starting with {both}", file=sys.stderr)
    print(json.dumps({"login": both}), file=sys.stderr)
    for size in (1, 7):
        for at in range(0, len(both), size):
            delta(both[at : at + size])
    raw(f"debug: {both}\\n".encode())
    raw(b"x" * (80 - len(token)) + token.encode() + b"\\n")
    say(assistant({"type": "thinking", "thinking": f"the user wants {both}"}))
    say(assistant(call(f"curl -H 'x-key: {both}'")))
    say(returned(json.dumps(json.dumps({"out": both}))))
    with open("plain", "w") as file: file.write(both)
    with open("config.json", "w") as file: json.dump({"deep": json.dumps(both)}, file)
    os.makedirs(f"in/{shaped}", exist_ok=True)
    open(f"in/{shaped}/{token}.txt", "w").close()
    if not os.path.lexists("link"): os.symlink(token, "link")
    say({"type": "system", "subtype": "api_retry", "attempt": 1, "error": f"bad key {both}", "error_status": 500})
    say(result(f"You asked: {PROMPT} The token is <{both}>."))
"""

CASE = f"""
    title: Shows {SHAPED}
    description: Of {json.dumps(CREDENTIAL)[1:-1].replace(":", "")}
    input:
      turns:
        - content: {json.dumps("Show " + CREDENTIAL + " and " + SHAPED)}
          capture: [{{variable: token, pattern: 'token is <(.+)>'}}]
          post_condition: {{must_contain_any: [{SHAPED}]}}
        - content: "again: {{{{token}}}}"
    collect_artifacts: [plain, 'in/**']
    judges:
      - id: rules
        type: rule_based
        success:
          - output_contains: {{all: ["The token is <[masked] and [masked]>."]}}
          - file_contains: {{path: plain, content: masked}}
          - command: {{run: cat plain config.json; ls in/*}}
        failure:
          - output_contains: {{any: [never said]}}
      - {{id: script, type: script, script_path: judges/show.sh}}
      - {{id: model, type: rubric, criteria: [{{id: polite, text: It is polite and says {SHAPED}.}}]}}
      - {{id: own, type: evaluator, evaluator: 'mine:shows', config: {{word: {SHAPED}}}}}
    script: [{{say: never asked}}]
"""

MINE = """
import os
def shows(trial, case, word):
    print(dict(os.environ), word)
    return {"score": 1, "reasoning": f"{os.environ['MY_TOKEN']} {os.environ['SKILLUP_JUDGE_API_KEY']} {word}"}
"""

SAID = ("status", "score", "reasoning", "summary")
"""What of a verdict is the same when models are asked anew; when they were asked is not."""

FORMATS = tuple(part for name in ("junit", "taskresult", "taskresult_flat", "agentv") for part in ("--format", name))


def spelled(secret: str) -> set[bytes]:
    """As it is, as bytes are quoted, without its end, and all of it in JSON, and in JSON that is a text in JSON."""
    forms = {secret, repr(secret.encode())[2:-1], secret[:-4]}
    for _ in range(3):
        forms |= {json.dumps(form, ensure_ascii=ascii_only)[1:-1] for form in forms for ascii_only in (True, False)}
    return {form.encode() for form in forms}


FORMS = {form for secret in SECRETS for form in spelled(secret)}


def everything(folder: Path) -> Iterator[tuple[str, bytes]]:
    """The names, link targets and contents of all that lies in a folder."""
    for here, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(here, name)
            said = os.readlink(path).encode() if path.is_symlink() else path.read_bytes() if path.is_file() else b""
            yield str(path.relative_to(folder)), name.encode() + b"\0" + said


def leaks(folder: Path) -> list[str]:
    return [name for name, said in everything(folder) if any(form in said for form in FORMS)]


def printed_leaks(done: Finished) -> list[str]:
    return [form.decode() for form in FORMS if form in (done.stdout + done.stderr).encode()]


def streamed(stdout: bytes) -> str:
    """What a reader of the stream gets who puts the pieces together."""
    events = [json.loads(line) for line in stdout.splitlines() if line.startswith(b"{")]
    return "".join(one["event"]["delta"]["text"] for one in events if one["type"] == "stream_event")


def variables(project: Project, address: str) -> dict[str, str]:
    return {
        "MY_TOKEN": CREDENTIAL,
        "PYTHONPATH": str(project.root / "lib"),
        "SKILLUP_JUDGE_PROVIDER": "openai",
        "SKILLUP_JUDGE_MODEL": "judge-1",
        "SKILLUP_JUDGE_BASE_URL": f"{address}/v1",
        "SKILLUP_JUDGE_API_KEY": JUDGE_KEY,
    }


def verdicts(done: Finished) -> Mapping[str, object]:
    result = done.trial()
    return {"status": result.status, **result.grading.model_dump(exclude={"judging"})}


@pytest.fixture
def planted(project: Project) -> Project:
    fake_claude(project, "leaky", LEAKY, 'env: {MY_TOKEN: "${MY_TOKEN}"}')
    project.write("judges/show.sh", 'cat plain config.json "$1"; ls in/*; cat plain >&2\n')
    project.write("lib/mine.py", MINE)
    project.write("a.yaml", CASE)
    return project


def test_no_secret_reaches_a_file_or_the_terminal_and_the_verdict_stays(planted: Project) -> None:
    """Also where the trial is judged anew, whose evaluator and model see the keys of that day."""
    polite = given("met", MASK, reason=f"It says {SHAPED}, and I was called with {JUDGE_KEY}.")
    with judge_model({"polite": polite}, {"polite": polite}) as route:
        env = variables(planted, route.base_url)
        expected = planted.write(f"{CREDENTIAL} {SHAPED} {JUDGE_KEY}.yaml", "a: PASS")
        named = ("a.yaml", "--agent", "leaky", "--expected", expected.name)
        done = planted.run(*named, "--keep", "all", "-vv", *FORMATS, env=env)
        assert done.code == 0, done.stdout + done.stderr
        before = verdicts(done)
        calls = [planted.call("judge", done.directory, "-vv", env={"PATH": planted.variables["PATH"]})]
        assert verdicts(done) == before
        calls.append(planted.call("judge", done.directory, "--ask", "all", "-vv", env=env))
        assert {key: verdicts(done)[key] for key in SAID} == {key: before[key] for key in SAID}
    calls += [planted.call("report", done.directory, "-vv"), planted.call("report", done.directory, "--json")]
    assert [(call.code, printed_leaks(call)) for call in (done, *calls)] == [(0, [])] * 5
    assert leaks(done.directory) == []
    shown = dict(everything(done.directory))
    folder = done.trial().folder
    # Each place was written to, and says that something was there.
    for place in (
        *("run.json", "journal.jsonl", "result.json", f"{folder}/case.json", f"{folder}/record.json"),
        *(f"{folder}/turn-1/{name}" for name in ("stdout", "stderr", "turn.json")),
        *(f"{folder}/judges/model/{name}" for name in ("criteria.json", "judge-calls.jsonl")),
        *(f"{folder}/judges/own/{name}" for name in ("evaluation.json", "evaluation.txt")),
        *(f"{folder}/{name}" for name in ("workspace/plain", "artifacts/plain", "contents.bin", "snapshots.jsonl")),
    ):
        assert MASK.encode() in shown[place], place
    assert f"{folder}/revisions/1/judges/own/evaluation.json" in shown
    assert MASK in streamed((done.folder() / "turn-1" / "stdout").read_bytes())
    said = Evaluated.model_validate_json((done.folder() / "judges/own/evaluation.json").read_bytes())
    assert said.reasoning == f"{MASK} {MASK} {MASK}"


def test_results_for_machines_and_faults_hold_no_secret_either(planted: Project) -> None:
    planted.write("bin/leaky", (planted.root / "bin/leaky").read_text().split("with open")[0] + "sys.exit(both)\n")
    with judge_model() as route:
        env = variables(planted, route.base_url)
        done = planted.run("a.yaml", "--agent", "leaky", "--json", *FORMATS, env=env)
    assert done.code == 3, done.stderr
    assert MASK in done.trial().model_dump()["error"]["tail"]
    assert MASK in (done.directory / "report.xml").read_text()
    assert (printed_leaks(done), leaks(done.directory)) == ([], [])


def test_a_secret_of_the_suites_own_environment_is_one_too(project: Project) -> None:
    project.write(
        "eval.yaml",
        f"""
        schema_version: v1alpha1
        environment:
          env: {{SERVICE_PASSWORD: {JUDGE_KEY}, SERVICE_NAME: plain-name}}
          setup_steps: [{{run: 'echo "$SERVICE_PASSWORD" > plain'}}]
        cases: {{files: [a.yaml]}}
        """,
    )
    project.write(
        "a.yaml",
        """
        input: {prompt: show}
        judge: {type: rule_based, success: [{output_contains: {all: ["[masked] plain-name"]}}]}
        script:
          - user: show
            replies:
              - calls: [{tool: bash, args: {command: echo "$SERVICE_PASSWORD $SERVICE_NAME"}}]
              - say: "{{result}}"
        """,
    )
    done = project.run("eval.yaml", "--agent", "demo", "--keep", "all", "-vv")
    assert (done.code, printed_leaks(done), leaks(done.directory)) == (0, [], []), done.stdout
