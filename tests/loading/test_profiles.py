"""Where agent profiles are found, what they may say, and which model plays the agent."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from skillup.errors import InputError
from skillup.execution.agents import agents_of
from skillup.loading.rendering import render_faults
from skillup.spec.agent import Agent, ModelChoice
from skillup.spec.suite import EngineChoice, Suite


@pytest.fixture(autouse=True)
def _place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty working folder with a folder for the suite."""
    monkeypatch.chdir(tmp_path)
    Path("suite/evals").mkdir(parents=True)


def write(name: str, text: str = "engine: builtin\n") -> None:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text), encoding="utf-8")


def suite(engine: Mapping[str, Any] | None = None, name: str = "suite") -> Suite:
    root = Path(name).absolute()
    return Suite(
        name=name,
        root=root,
        source=root / "evals" / "eval.yaml",
        cases=(),
        engine=EngineChoice.model_validate(engine) if engine else None,
        engine_place=(2, 9),
    )


def agent(
    named: str = "mine", *, engine: Mapping[str, Any] | None = None, model: str | None = None, **host: str
) -> Agent:
    ((found,),) = agents_of([suite(engine)], [named] if named else [], model, host)
    return found


def report_on(*named: str, suites: tuple[Suite, ...] = (), required: bool = True) -> str:
    with pytest.raises(InputError) as caught:
        agents_of(suites or (suite(),), named, None, {}, required=required)
    return render_faults(caught.value.faults)


# Where


def test_a_profile_beside_the_suite_comes_before_one_in_the_working_folder_before_one_that_ships() -> None:
    assert Path(agent("demo").source).parts[-2:] == ("agents", "demo.yaml")
    assert agent("demo").model.scripted
    write("agents/demo.yaml", "engine: builtin\nmodel: {name: from-here}\n")
    assert agent("demo").model.name == "from-here"
    write("suite/evals/agents/demo.yml", "engine: builtin\nmodel: {name: beside-eval}\n")
    assert agent("demo").model.name == "beside-eval"
    write("suite/agents/demo.yaml", "engine: builtin\nmodel: {name: beside-skill}\n")
    assert agent("demo").model.name == "beside-skill"


def test_a_profile_may_be_a_file_and_is_named_for_it() -> None:
    write("elsewhere/sonnet.yaml")
    found = agent("elsewhere/sonnet.yaml")
    assert (found.name, found.source) == ("sonnet", "elsewhere/sonnet.yaml")


def test_an_engine_works_by_its_name_and_gets_the_credentials_of_the_host() -> None:
    found = agent("builtin", ANTHROPIC_API_KEY="k-1", ANTHROPIC_BASE_URL="http://h", OTHER="x")
    assert (found.engine, found.source) == ("builtin", "built in")
    assert found.env == {"ANTHROPIC_API_KEY": "k-1", "ANTHROPIC_BASE_URL": "http://h"}
    assert found.secrets == ("k-1",)


def test_without_a_name_the_suite_says_which_engine_runs() -> None:
    assert agent("", engine={"name": "builtin", "model": "scripted"}).model.scripted


def test_nothing_that_says_which_agent_is_a_fault_that_offers_both_ways() -> None:
    assert report_on() == (
        "suite/evals/eval.yaml:2:9: nothing says which agent is to run "
        "(pass --agent NAME (try --agent demo), or write `agents: [NAME]` in eval.yaml)"
    )
    assert agents_of([suite()], [], None, {}, required=False) == ((),)


def test_the_same_name_twice_is_one_agent() -> None:
    assert len(agents_of([suite()], ["demo", "demo"], None, {})[0]) == 1


# What is wrong

NAMES = {
    "a misspelt agent": (["dmeo"], '--agent: there is no agent "dmeo" (did you mean "demo"?)'),
    "an unknown agent": (
        ["zzz"],
        (
            '--agent: there is no agent "zzz" '
            "(there are: builtin, builtin_openai, claude_code, claude_code_login, codex, demo; "
            "or name a profile's file)"
        ),
    ),
    "a later engine": (
        ["opencode"],
        (
            "--agent: the engine opencode is part of the format but not supported yet "
            "(there are: builtin, claude_code, codex)"
        ),
    ),
    "no such file": (["./none.yaml"], "none.yaml: there is no such file"),
    "two at once": (
        ["dmeo", "./none.yaml"],
        '--agent: there is no agent "dmeo" (did you mean "demo"?)\nnone.yaml: there is no such file',
    ),
}


@pytest.mark.parametrize(("named", "report"), NAMES.values(), ids=NAMES)
def test_a_name_that_leads_nowhere_is_told(named: list[str], report: str) -> None:
    assert report_on(*named) == report


def test_an_engine_that_the_suite_misspells_is_told_at_its_place_in_eval_yaml() -> None:
    assert report_on(suites=(suite({"name": "claud_code"}),), required=False) == (
        'suite/evals/eval.yaml:2:9: engine.name: there is no agent "claud_code" (did you mean "claude_code"?)'
    )


PROFILES = {
    "no engine": ("model: scripted\n", 'agents/mine.yaml:1:1: "engine" is required'),
    "a misspelt engine": (
        "engine: claud_code\n",
        'agents/mine.yaml:1:9: engine: there is no engine "claud_code" (did you mean "claude_code"?)',
    ),
    "a later engine": (
        "engine: qwen_code\n",
        (
            "agents/mine.yaml:1:9: engine: the engine qwen_code is part of the format but not supported yet "
            "(there are: builtin, claude_code, codex)"
        ),
    ),
    "an unknown setting": (
        "engine: builtin\nsettings:\n  max_setps: 5\n",
        'agents/mine.yaml:3:3: settings.max_setps: unknown key "max_setps" (did you mean "max_steps"?)',
    ),
    "a setting of another engine": (
        "engine: builtin\nsettings: {binary: x}\n",
        (
            'agents/mine.yaml:2:12: settings.binary: unknown key "binary" '
            "(known keys: api, max_steps, max_retries, sessions, tools)"
        ),
    ),
    "a wrong setting": (
        "engine: builtin\nsettings: {max_steps: 0}\n",
        "agents/mine.yaml:2:23: settings.max_steps: must be at least 1",
    ),
    "a secret": (
        "engine: builtin\nenv: {ANTHROPIC_API_KEY: k-1}\n",
        (
            "agents/mine.yaml:2:26: env.ANTHROPIC_API_KEY: a secret may not stand in a profile "
            '(write ANTHROPIC_API_KEY: "${ANTHROPIC_API_KEY}" and export it where the run starts)'
        ),
    ),
    "a part of a value": (
        'engine: builtin\nenv: {HEADER: "Bearer ${KEY}"}\n',
        (
            "agents/mine.yaml:2:15: env.HEADER: a reference to a variable must be the whole value "
            '(write HEADER: "${HEADER}"; the value is read from the host when the run starts)'
        ),
    ),
    "session: live": (
        "engine: builtin\nsession: live\n",
        'agents/mine.yaml:2:10: session: "live" is part of the format but not supported yet (supported: resume)',
    ),
    "a home that is not there": (
        "engine: builtin\nsession_binding: shared\nhome: nowhere\n",
        (
            "agents/mine.yaml:3:7: home: there is no folder nowhere (make TMP/agents/nowhere, or name another; it "
            "plays the user's home: the CLI uses .skillup-agent in it)"
        ),
    ),
    "a home that is not shared": (
        "engine: builtin\nhome: nowhere\n",
        (
            "agents/mine.yaml:2:7: home: a home is given, but trials do not share one (write `session_binding: shared` "
            "beside it, or remove it: each trial has a home of its own then)"
        ),
    ),
    "permissions: none": (
        "engine: builtin\npermissions: none\n",
        "agents/mine.yaml:2:14: permissions: must be one of full, workspace",
    ),
    "parameters of the model": (
        "engine: builtin\nmodel: {name: m, params: {temperature: 0}}\n",
        "agents/mine.yaml:2:26: model.params: parameters of a model are not supported yet (remove it for now)",
    ),
    "fallback": (
        "engine: builtin\nfallback: single\n",
        "agents/mine.yaml:2:11: fallback: must be single_shot",
    ),
    "a login that there is not": (
        "engine: builtin\nlogin: copy\n",
        "agents/mine.yaml:2:8: login: builtin keeps no login that could be copied (pass a key by `env`)",
    ),
    "a misspelt login": (
        "engine: builtin\nlogin: copi\n",
        'agents/mine.yaml:2:8: login: must be one of none, copy (did you mean "copy"?)',
    ),
}


@pytest.mark.parametrize(("text", "report"), PROFILES.values(), ids=PROFILES)
def test_a_faulty_profile_is_one_line_at_its_place(text: str, report: str) -> None:
    write("agents/mine.yaml", text)
    assert report_on("mine").replace(str(Path.cwd()), "TMP") == report


def test_a_profile_whose_name_cannot_be_a_folder_is_told() -> None:
    write("agents/my agent.yaml")
    assert report_on("my agent") == (
        "agents/my agent.yaml:1:1: the agent's name is the file's, and \"my agent\" cannot name a folder "
        "(rename the file: letters, digits, `.`, `_` and `-`)"
    )


def test_two_profiles_of_one_name_cannot_run_together() -> None:
    """Results are kept by the agent's name: two agents under one name could not be told apart."""
    write("a/mine.yaml")
    write("b/mine.yaml")
    assert report_on("a/mine.yaml", "b/mine.yaml") == (
        "--agent: 2 profiles are named mine: a/mine.yaml, b/mine.yaml "
        "(results are kept by the agent's name: rename one of the files, or run the suites one by one)"
    )


def test_one_name_that_means_another_profile_in_each_suite_is_refused() -> None:
    write("suite/agents/mine.yaml")
    write("other/agents/mine.yaml")
    report = report_on("mine", suites=(suite(), suite(name="other")))
    assert report.startswith("--agent: 2 profiles are named mine: other/agents/mine.yaml, suite/agents/mine.yaml")


def test_a_profile_named_in_two_ways_is_one_agent() -> None:
    write("agents/mine.yaml")
    assert len(agents_of([suite()], ["mine", "agents/mine.yaml"], None, {})[0]) == 1


# Which model, which variables

PROFILE_MODEL = "engine: builtin\nmodel: {provider: p, name: from-profile, base_url: 'http://h'}\n"
SUITE_MODEL = {"name": "builtin", "model": {"name": "from-suite"}}
MODELS = {
    "the profile's": (PROFILE_MODEL, SUITE_MODEL, None, ("p", "from-profile", "http://h")),
    "the command line's, at the profile's address": (PROFILE_MODEL, SUITE_MODEL, "asked", ("p", "asked", "http://h")),
    "scripted has no address": (PROFILE_MODEL, SUITE_MODEL, "scripted", ("p", "scripted", None)),
    "the suite's, where it is for this engine": ("engine: builtin\n", SUITE_MODEL, None, (None, "from-suite", None)),
    "not that of another engine": (
        "engine: builtin\n",
        {"name": "claude_code", "model": {"name": "from-suite"}},
        None,
        (None, None, None),
    ),
    "a scripted one of another engine": (
        "engine: builtin\n",
        {"name": "claude_code", "model": "scripted"},
        None,
        (None, "scripted", None),
    ),
    "none: the CLI's own default": ("engine: builtin\n", None, None, (None, None, None)),
}


@pytest.mark.parametrize(("profile", "engine", "asked", "model"), MODELS.values(), ids=MODELS)
def test_the_model_is_the_command_lines_else_the_profiles_else_the_suites(
    profile: str, engine: Mapping[str, Any] | None, asked: str | None, model: tuple[str | None, ...]
) -> None:
    write("agents/mine.yaml", profile)
    chosen = agent(engine=engine, model=asked).model
    assert (chosen.provider, chosen.name, chosen.base_url) == model
    assert isinstance(chosen, ModelChoice)


ENV = """\
    engine: builtin
    env: {ANTHROPIC_API_KEY: "${MY_KEY}", REGION: null, MODE: fast, ANTHROPIC_BASE_URL: null}
"""


def test_references_are_read_from_the_host_and_names_are_passed_if_they_are_set() -> None:
    write("agents/mine.yaml", ENV)
    found = agent(MY_KEY="k-123456", REGION="eu", OTHER="x")
    assert found.env == {"ANTHROPIC_API_KEY": "k-123456", "REGION": "eu", "MODE": "fast"}
    assert found.secrets == ("k-123456",)
    assert found.missing == ()


def test_a_reference_to_what_the_host_does_not_have_is_missing() -> None:
    write("agents/mine.yaml", ENV)
    found = agent()
    assert (found.env, found.missing) == ({"MODE": "fast"}, (("ANTHROPIC_API_KEY", "MY_KEY"),))


def test_a_scripted_model_gets_neither_credentials_nor_address_of_the_host() -> None:
    write("agents/mine.yaml", ENV.replace("builtin", "claude_code") + "    login: copy\n")
    found = agent(model="scripted", MY_KEY="k-1", ANTHROPIC_BASE_URL="http://h", REGION="eu")
    assert found.env == {"REGION": "eu", "MODE": "fast"}
    assert (found.missing, found.login) == ((), "none")


def test_a_binary_given_by_a_path_is_relative_to_the_profile() -> None:
    write("tools/mine.yaml", "engine: claude_code\nsettings: {binary: ./bin/claude}\n")
    assert agent("tools/mine.yaml").settings["binary"] == str(Path("tools/bin/claude").absolute())
    write("tools/mine.yaml", "engine: claude_code\nsettings: {binary: claude-next}\n")
    assert agent("tools/mine.yaml").settings["binary"] == "claude-next"
