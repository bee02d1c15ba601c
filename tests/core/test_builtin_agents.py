"""The agents that come with Magy: what each may do, with the rules that hold for every agent."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magy_server.config.shipped import parsed
from magy_server.core.permit import Rule, Ruleset, decide, withholds
from magy_server.core.specs import AgentSpec, parse_rules
from magy_server.core.values import Decision, Facts, Resource

from .rules import EFFECTS, facts, file

AGENTS = Path(__file__).parents[2] / "agents"
HOME = "/home/someone"
VISIBLE = ("build", "plan", "explore", "general")
TEMPLATES = (
    "architect", "coder", "developer", "devops", "engineering-lead", "orchestrator",
    "project-manager", "qa", "reviewer",
)  # fmt: skip
NODES = ("magi", "magi-balthasar", "magi-casper", "magi-melchior")
HIDDEN = ("commit", "compaction", "completion", "summary", "title", "rewrite")


def load() -> dict[str, AgentSpec]:
    found = parsed({f"agents/{path.name}": path.read_text() for path in AGENTS.glob("*.md")}).agents
    return {
        name: spec.model_copy(update={"rules": spec.rules.at_home(HOME)})
        for name, spec in found.items()
    }


BUILT_IN = load()
COMMON = parse_rules("common rules", (AGENTS / "common.yaml").read_text(), "common.yaml").at_home(
    HOME
)


def judged(agent: str, key: str, subject: str, bypass: bool = False) -> Decision:
    rules = [BUILT_IN[agent].rules, COMMON]
    return decide(facts(key, subject), key, EFFECTS[key], rules, (), bypass)


def test_these_agents_are_there() -> None:
    assert set(BUILT_IN) == {*VISIBLE, *HIDDEN, *TEMPLATES, *NODES}
    assert all(len(spec.prompt) > 500 and spec.description for spec in BUILT_IN.values())


def test_build_has_every_tool() -> None:
    spec = BUILT_IN["build"]
    assert (spec.mode, spec.hidden, spec.tools) == ("primary", False, None)
    assert not [key for key in EFFECTS if withholds([spec.rules, COMMON], key)]


LOOKING = [
    "grep -n foo a.py", "grep -in 'foo bar' a.py", "grep -c foo a.py b.py", "grep -lE 'a|b' a.py",
    "grep -A3 foo a.py", "grep -B 2 -A 2 foo a.py", "grep -nC2 foo a.py", "grep -o x a.py",
    "grep --color=never foo a.py", "grep -v '^#' a.py", "grep -wF a.b a.py", "grep -xq a a.py",
    "grep -e foo -e bar a.py", "grep -m1 foo a.py", "grep --count foo a.py", "grep -P '\\d+' a.py",
    "cat a.py | grep -v foo", "grep -nH foo a.py | wc -l", "egrep 'a|b' a.py", "fgrep -n a.b a.py",
    "grep -n foo src/*.py", "grep foo *.py", "grep --max-count 2 foo a.py", "grep -hs -5 foo a b",
    "sed -n '/foo/p' a.py", "sed -n '/foo/,/bar/p' a.py", "sed -n '$p' a.py", "sed 5q a.py",
    "sed -n '/def main/,$p' a.py", "sed -n '5p;10p' a.py", "sed -n '/^import/p' a.py",
    "sed -n '/foo/=' a.py", "sed -n '1~2p' a.py", "sed -n '/[a-z]x/p' a.py", "sed -nE '/a|b/p' a",
    "sed -n '/foo/{p;q}' a.py", "sed -n '/foo/I,+3p' a.py", "sed -n '/x/!p' a.py", "sed 1d a.py",
    "sed -n '/foo/ s/a/b/p' a.py", "sed -n 1,5p src/*.py", "sed 's/a/b/g' a.py", "sed -n p -- *.py",
    "sed 's/a/b/;s/c/d/g' a.py", "sed -n 's/[a-z]*/x/p;3q' a.py", "sed '/x/d; $d' a", "sed '1!d' a",
    "sort a.txt", "sort -n a.txt", "sort -u a.txt b.txt", "sort -k2,2n -t, a.txt", "sort -t : a",
    "sort --reverse a.txt", "sort -f a.txt | uniq -c | sort -rn | head", "sort ./*.txt",
    "sort --key=2 a.txt", "sort -hr a.txt", "sort -V -k 3 a.txt", "sort -s -t '\t' -k1 a.txt",
    "uniq a.txt", "uniq -c a.txt", "uniq -f 1 a.txt", "tree", "tree src", "tree -L 2 src",
    "tree -d", "tree -I 'node_modules|.git' -L 3", "tree --dirsfirst -L 1", "tree -fi src",
    "tree -h --du", "tree -P '*.py'", "tree -aL 2", "file a.py", "file -b a.py",
    "file -i a.py b.py",
    "file --mime-type a.py", "file -L a", "file ./*.py", "whoami", "uname", "uname -a", "uname -sr",
    "jq . a.json", "jq -r .name a.json", "jq '.a[] | .b' a.json", "jq -c '.[]' a.json",
    "jq -e .a a.json", "jq -n 1+1", "jq --arg x 1 '.[$x]' a.json", "cat a.json | jq .a",
    "date", "date +%F", "date -u", "date -u '+%F %T'", "date -d yesterday +%s", "date -Iseconds",
    "date -r a.py", "date --rfc-3339=ns", "paste -d, a.txt b.txt", "comm -12 a.txt b.txt",
    "join -t, a.csv b.csv", "fold -w 80 a.txt", "expand -t 4 a.py", "seq 1 10", "readlink -f a.py",
    "jq -S keys a.json", "jq -rs . a.json b.json", "jq --tab . a.json", "jq --indent 2 . a.json",
]  # fmt: skip
"""Commands that look at what they name, in the ways people and models write them."""
BUILD_ALLOWS = {
    "read": ["a.py", ".env.example", "x/prod.env.example", ".git/HEAD", "id_rsa.pub",
             "environment.py", "keys.py"],
    "bash": [
        "ls", "ls -la src", "pwd", "git status", "git diff --stat", "git log --oneline",
        "git --no-pager log", "git blame a.py", "cd src && ls", "cat a.py | head -20",
        "find . -name '*.py'", "grep foo a.py", "sed -n 1,20p a.py",
        *LOOKING,
        "wc -l a.py && echo done", "timeout 5 git status", "git log 2>/dev/null | head",
        "command -v git", "[ -f a.py ] && echo yes",
    ],
    "git": ["git status", "git diff HEAD~1 -- a.py", "git log -20"],
    # The person reviews what is changed; so they do what a plain redirection writes.
    "edit": ["a.py", ".github/x.yml", ".gitignore", "new/file"],
    "write": ["a.py"],
    "agent": ["wait", "list", "close"],
}  # fmt: skip
BUILD_ASKS = {
    "read": [".git/config", ".git/modules/lib/config", ".git/config.worktree",
             ".git/worktrees/x/config.worktree"],
    # Editors and shells run what stands there, without a word.
    "edit": [".env.example", ".vscode/settings.json", "sub/.VSCode/tasks.json", "a.code-workspace",
             ".idea/workspace.xml", ".dir-locals.el", ".dir-locals-2.el", ".exrc", ".nvim.lua",
             ".bashrc", ".zshenv", ".gitconfig"],
    "write": [".vscode/launch.json"],
    "net": ["https://example.org/", "search words"],
    "agent": ["spawn explore", "send general"],
    "bash": [
        "make", "pytest", "git push", "git commit -m x", "git branch x", "git checkout .",
        "rm a.py", "python x.py", "python -c 1", "echo $(id)", "ls $x", "sudo ls", "bash -c ls",
        "find . -delete", "find . -exec id +", "rg --pre id x",
        "rg KEY", "rg KEY src", "grep -r KEY .", "git diff --output=a.py", "git -c a=b diff",
        "git diff --ext-diff", "git show HEAD:a.py", "git --no-pager show HEAD:a.py",
        "git diff", "git diff --stat -p", "git show HEAD", "git --no-pager diff",
        "diff a b", "diff -r a b", "date -s 12:00", "date --set=x", "date 010100002020",
        "date -us 12:00", "date --se 12:00", "date -f dates.txt",
        "sed -i s/a/b/ a.py", "sed -n '1w x' a", "sort -o a.py b", "uniq a b", "tee a.py",
        "PATH=/tmp git status", "timeout 5 rm a.py", "ls && rm a.py",
        "curl x.org", "git log | sh", "cat a.py | xargs rm", "env", "date -s x",
        "grep -rn KEY src", "grep -Rn KEY", "grep -nr KEY .", "grep KEY -r .", "grep --recur K .",
        "grep --rec KEY .", "grep -drecurse KEY .", "grep -d recurse KEY .", "grep -A 2 -r K .",
        "grep -e KEY -nr .", "grep --directories=recurse KEY .", "rgrep KEY", "grep -f a.py b",
        "sort -oa.py b", "sort b -o a.py", "sort -no a.py b", "sort --output=a.py b", "sort --o=a",
        "sort --files0-from=a", "sort -T x a", "sort --compress-program=sh a", "sort *.txt",
        "uniq -c a b", "uniq a a.py", "uniq -- a b", "tree -o a.py", "tree -ao a.py",
        "tree -R -L 1",
        "tree --fromfile a", "tree -l", "tree --output=a", "tree -H . -o x", "file -f a.py",
        "file -C -m a", "file -m a.py b", "file -z a", "file --files-from a", "file -bf a",
        "jq -f a.py b", "jq -rf a b", "jq --from-file a b", "jq env", "jq -n env", "jq -n '$ENV'",
        "jq -n 'import \"a\" as $x; $x'", "jq 'include \"a\"; x' b", "jq -L . . a",
        "jq --slurpfile a b . c", "jq --rawfile a b . c", "jq -n 'env.HOME'", "jq -n '$ ENV.A'",
        "sed -n '/a/w b' a", "sed -n '/a/e id' a", "sed '/a/r b' a", "sed -n '1p;w b' a",
        "sed -n '/[/]/w b' a", "sed -n '/a/p;e id' a", "sed 's/a/b/w c' a", "sed 's/a/b/e' a",
        "sed -n '/a/{p;w b\n}' a", "sed -i 1d a", "sed 's/[/]p/;s/w b/x/' a",
        "sed 's/a/b/;w c' a", "sed '{p};w b' a", "sed '1' a", "sed '{p}e id' a",
        "sed 'p;s/a/b/e' a",
        "sed -n -i p a", "sed p a -i", "sed -ni p a",
        "sed --in-place p a", "sed -nf a b", "sed -n p -f a", "sed -n p -e 'w b' a",
        "hostname evil",
        "command rm a.py", "nice rm a.py", "git status; rm a.py", "git status\nrm a.py",
        "echo x > .vscode/settings.json",
    ],
}  # fmt: skip
REDIRECTED = ["echo hi > a.py", "ls > a.py"]
"""As good as edits."""
OUTSIDE = ["cat /etc/hosts", "cd .. && ls"]
"""Only looking, but where a person is asked."""
SECRETS = {
    "read": [".env", ".env.local", "x/.ENV", "prod.env", "tls/server.key", "a.pem", "id_rsa",
             "id_ed25519", ".netrc", ".envrc", ".npmrc", "/etc/hosts"],
    "edit": [".env", "x/.env.local", ".git/config", ".git/hooks/pre-commit", "sub/.git/config",
             ".git", "server.KEY"],
    "write": [".env", ".git/config"],
    "bash": [
        "cat .env", "head -5 prod.env", "cat < .env", "cat a.py .env", "ls && cat .env",
        "echo x > .env", "git log > .git/config", "cat server.key | wc", "timeout 5 cat .env",
        "echo $(cat .env)", "cat ~/.ssh/id_rsa", "cat ~/.aws/credentials", "cat ./x/../.env",
        "cat ~/.kube/config", "paste a.txt .env", "comm a.txt .env", "join .env a.txt",
        "fold -w 80 .env", "expand .env",
    ],
    "git": ["git diff -- .env"],
}  # fmt: skip
CASES = [
    *((action, key, subject)
      for action, table in (("allow", BUILD_ALLOWS), ("ask", BUILD_ASKS), ("deny", SECRETS))
      for key, subjects in table.items() for subject in subjects),
    *(("ask", "bash", line) for line in OUTSIDE),
    *(("allow", "bash", line) for line in REDIRECTED),
]  # fmt: skip


@pytest.mark.parametrize(("action", "key", "subject"), CASES)
def test_build_allows_looking_asks_for_doing_and_keeps_secrets(
    action: str, key: str, subject: str
) -> None:
    decision = judged("build", key, subject)
    assert decision.action == action, decision.rule
    assert not decision.firm


def test_bypass_answers_every_question_of_build_and_no_deny() -> None:
    for line in ("make", "echo $(id)", "bash -c ls", "git push"):
        assert judged("build", "bash", line, bypass=True).action == "allow"
    for line in ("cat .env", "echo $(cat .env)"):
        assert judged("build", "bash", line, bypass=True).action == "deny"


@pytest.mark.parametrize("agent", ["build", "plan", "general"])
def test_an_agent_may_stop_what_it_started_and_show_its_plan(agent: str) -> None:
    rules = [BUILT_IN[agent].rules, COMMON]
    stop = Facts(resources=(Resource(kind="exec", subject="7.0"),))
    assert decide(stop, "bash_stop", "exec", rules).action == "allow"
    assert decide(Facts(), "plan", "read", rules).action == "allow"


TOOLS = {
    "read_file": "read", "list_dir": "read", "glob": "read", "grep": "read", "edit_file": "edit",
    "write_file": "write", "bash": "bash", "bash_output": "read", "bash_stop": "bash_stop",
    "update_plan": "plan", "git_status": "git", "git_diff": "git", "git_log": "git",
}  # fmt: skip
"""Their permission keys."""


@pytest.mark.parametrize("agent", [*VISIBLE, *TEMPLATES])
def test_prompts_name_tools_and_only_such_as_the_agent_has(agent: str) -> None:
    spec = BUILT_IN[agent]
    named = {tool for tool in TOOLS if f"`{tool}`" in spec.prompt}
    assert named >= {"glob", "grep", "bash"}
    for tool in named:
        assert spec.tools is None or tool in spec.tools
        assert not withholds([spec.rules, COMMON], TOOLS[tool]), tool


def test_the_prompt_of_build_names_every_tool_for_files_and_commands() -> None:
    assert not [tool for tool in TOOLS if f"`{tool}`" not in BUILT_IN["build"].prompt]


LOOKERS = ("architect", "engineering-lead", "orchestrator", "project-manager", "reviewer")
CHANGING = ("edit", "write", "emacs_eval", "a_tool_to_come")


# --- the templates --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "agent",
    [
        pytest.param("architect", marks=pytest.mark.req("A019")),
        pytest.param("engineering-lead", marks=pytest.mark.req("A025")),
        "orchestrator",
        "reviewer",
    ],
)
def test_who_designs_leads_or_judges_changes_nothing(agent: str) -> None:
    spec = BUILT_IN[agent]
    assert (spec.mode, spec.hidden) == ("subagent", False)
    for key in CHANGING:
        assert withholds([spec.rules, COMMON], key), key
    for path in ("a.py", ".magy/plan/a.md", "tests/test_a.py"):
        assert judged(agent, "edit", path, bypass=True).action == "deny"


@pytest.mark.parametrize("agent", TEMPLATES)
def test_only_who_leads_may_have_agents_and_asks_for_each(agent: str) -> None:
    leads = agent in ("engineering-lead", "orchestrator")
    assert judged(agent, "agent", "spawn general").action == ("ask" if leads else "deny")
    tools = BUILT_IN[agent].tools or ()
    assert ("run_graph" in tools, "spawn_agent" in tools) == (leads, leads)


@pytest.mark.req("A020", "A023", "A024")
@pytest.mark.parametrize("agent", ["developer", "devops", "coder"])
def test_who_builds_may_do_what_build_may(agent: str) -> None:
    for path in BUILD_ALLOWS["edit"]:
        assert judged(agent, "edit", path).action == "allow"
    for line in ("make", "git commit -m x", "git push", "terraform apply", "pytest"):
        assert judged(agent, "bash", line).action == "ask"
    assert judged(agent, "net", "https://example.org/").action == (
        "deny" if agent == "coder" else "ask"
    )


@pytest.mark.req("A021")
def test_qa_changes_tests_and_runs_what_it_is_allowed_to() -> None:
    for path in ("tests/a.py", "src/tests/deep/a.py", "test_a.py", "src/test_a.py", "a_test.go",
                 "src/a.test.ts", "a.spec.js", "spec/a_spec.rb", "app/__tests__/a.tsx",
                 "magy-test.el"):  # fmt: skip
        assert judged("qa", "edit", path).action == "allow", path
        assert judged("qa", "write", path).action == "allow", path
    for path in ("a.py", "src/latest.py", "tests.py/../a.py", "conftest.toml", "contests/a.py",
                 "tests/.env", "/etc/tests/a", ".github/workflows/ci.yml"):  # fmt: skip
        assert judged("qa", "edit", path, bypass=True).action == "deny", path
    assert judged("qa", "bash", "pytest -q").action == "ask"


@pytest.mark.req("A022")
def test_the_project_manager_keeps_plans_and_looks() -> None:
    assert judged("project-manager", "edit", ".magy/plan/a.md").action == "allow"
    assert judged("project-manager", "edit", "a.py", bypass=True).action == "deny"
    assert judged("project-manager", "agent", "list").action == "allow"


# --- the others -----------------------------------------------------------------------------------


@pytest.mark.req("E084")
def test_plan_writes_plans_and_nothing_else() -> None:
    assert (BUILT_IN["plan"].mode, BUILT_IN["plan"].hidden) == ("primary", False)
    for path in (".magy/plan/a.md", ".magent/plan/two-words.md"):
        assert judged("plan", "edit", path).action == "allow"
        assert judged("plan", "write", path).action == "allow"
    for path in ("a.md", "plan/a.md", ".magy/plan/a.py", ".magy/plan/x/a.md", ".magy/plan/.env",
                 ".magy/agent/a.md", ".magy/plan/../agent/a.md", "x/.magy/plan/a.md", "magy.toml",
                 ".magy/Plan/a.md", ".magy/plan", "/etc/a.md", ".magy/plan/id_rsa.md"):  # fmt: skip
        assert judged("plan", "edit", path, bypass=True).action == "deny", path
        assert judged("plan", "write", path, bypass=True).action == "deny", path


@pytest.mark.req("E085")
def test_explore_only_looks() -> None:
    spec = BUILT_IN["explore"]
    assert (spec.mode, spec.hidden) == ("subagent", False)
    assert spec.tools == ("read_file", "grep", "glob", "bash")
    for key in ("edit", "write", "net", "agent", "editor", "emacs_eval"):
        assert withholds([spec.rules, COMMON], key)
    assert judged("explore", "read", "a.py").action == "allow"


def test_general_is_build_without_delegation() -> None:
    general, build = BUILT_IN["general"], BUILT_IN["build"]
    assert (general.mode, general.hidden, general.tools) == ("subagent", False, None)
    assert withholds([general.rules], "agent")
    own = {k: v for k, v in general.rules.keys.items() if k != "agent"}
    assert own == {k: v for k, v in build.rules.keys.items() if k != "agent"}
    assert general.prompt != build.prompt


def test_who_rewrites_can_change_what_is_selected_and_nothing_else() -> None:
    spec = BUILT_IN["rewrite"]
    assert (spec.mode, spec.hidden, spec.tools) == ("primary", True, ("replace_selection",))
    for key in ("bash", "git", "net", "agent", "plan", "a_tool_to_come"):
        assert withholds([spec.rules], key)
    assert judged("rewrite", "edit", ".env", bypass=True).action == "deny"


@pytest.mark.parametrize(
    "agent",
    [
        pytest.param("compaction", marks=pytest.mark.req("E087")),
        pytest.param("title", marks=pytest.mark.req("E088")),
        pytest.param("summary", marks=pytest.mark.req("E089")),
        "completion",
    ],
)
def test_hidden_agents_can_do_nothing_but_answer(agent: str) -> None:
    spec = BUILT_IN[agent]
    assert (spec.mode, spec.hidden, spec.tools) == ("primary", True, ())
    for key in (*EFFECTS, "plan", "bash_stop", "a_tool_to_come"):
        assert withholds([spec.rules], key)


@pytest.mark.parametrize("agent", ["plan", "explore", *LOOKERS])
def test_who_only_looks_may_look_and_is_asked_about_nothing_inside(agent: str) -> None:
    """Nor can bypass or an answer let it act: what build asks is denied here."""
    for line in BUILD_ALLOWS["bash"]:
        assert judged(agent, "bash", line).action == "allow", line
    for line in BUILD_ALLOWS["git"]:
        assert judged(agent, "git", line).action == "allow", line
    for line in BUILD_ASKS["bash"] + SECRETS["bash"] + REDIRECTED:
        decision = judged(agent, "bash", line, bypass=True)
        assert decision.action == "deny", (line, decision.rule)
    for line in OUTSIDE:
        assert judged(agent, "bash", line).action == "ask"


# --- secrets --------------------------------------------------------------------------------------

OPEN = Ruleset(source="agent open", keys={"*": (Rule(pattern="*", action="allow", bare=True),)})
"""An agent as careless as one can be."""
NAMES = [".env", ".env.production", "prod.env", ".ENV", "Prod.Env", ".envrc", "server.key", "a.pem",
         "store.jks", "vault.kdbx", "id_rsa", "id_ed25519", "ID_RSA", ".netrc", ".pgpass",
         ".git-credentials", ".htpasswd", ".pypirc", "cert.p12"]  # fmt: skip
FOLDERS = st.lists(st.sampled_from(["a", "src", "..env", "x.d", "Ordner", "密"]), max_size=3)
SECRET = st.builds(
    lambda folders, name: "/".join([*folders, name]), FOLDERS, st.sampled_from(NAMES)
)
READERS = st.sampled_from(["cat {}", "head -3 {}", "cat < {}", "ls && cat ./{}", "cat a {} b",
                           "timeout 5 cat {}", "grep x {}", "rg x {}", "wc -l {}", "diff {} a",
                           "cat {} | tee b", "sort {}", "xxd {}", "cp {} b"])  # fmt: skip


@given(st.sampled_from([*BUILT_IN, "open"]), SECRET, READERS, st.booleans())
def test_no_agent_reads_or_changes_a_secret_file(
    agent: str, path: str, reader: str, bypass: bool
) -> None:
    own = OPEN if agent == "open" else BUILT_IN[agent].rules
    for key, subject in (("read", path), ("edit", path), ("write", path),
                         ("bash", reader.format(path))):  # fmt: skip
        found = facts(key, subject)
        assert decide(found, key, EFFECTS[key], [own, COMMON], (), bypass).action == "deny"


@given(st.sampled_from(["a.py", "src/b.c", "README.md", "key.py", "environ", ".git/HEAD"]))
def test_the_common_rules_leave_all_else_to_the_agent(path: str) -> None:
    for key in ("read", "edit", "write"):
        if key == "read" or not path.startswith(".git/"):
            assert decide(facts(key, path), key, EFFECTS[key], [OPEN, COMMON]).action == "allow"
            silent = decide(facts(key, path), key, EFFECTS[key], [COMMON])
            assert silent.rule == "nothing matches: ask"
    shell = facts("bash", "make $x && ls")
    assert decide(shell, "bash", "exec", [OPEN, COMMON]) == decide(shell, "bash", "exec", [OPEN])


def test_the_common_rules_let_nobody_change_what_git_runs() -> None:
    for path in (".git/hooks/pre-commit", ".git/config", "sub/.git/config", ".GIT/config"):
        decision = decide(facts("write", path), "write", "write", [OPEN, COMMON], (), True)
        assert decision.action == "deny"


def test_common_rules_only_widen_for_what_is_no_secret() -> None:
    """An allow where the agent says nothing would let through what is otherwise asked."""
    allowed = {r.pattern for rules in COMMON.keys.values() for r in rules if r.action == "allow"}
    assert allowed == {"*.env.example", "*.env.sample", "*.env.template", "id_*.pub"}


def test_a_plan_may_be_written_by_redirection_too() -> None:
    """It is the file that counts, not the way."""
    shell = Facts(resources=(Resource(kind="exec", subject="echo hi", argv=("echo", "hi")),
                             file("write", ".magy/plan/a.md")))  # fmt: skip
    assert decide(shell, "bash", "exec", [BUILT_IN["plan"].rules, COMMON]).action == "allow"


@pytest.mark.parametrize("agent", ["build", "plan", "magi"])
def test_a_ruling_is_only_reviewed_if_a_person_wants_that(agent: str) -> None:
    assert judged(agent, "agent", "review a ruling").action == "ask"
    spawn = judged(agent, "agent", "spawn magi-casper").action
    assert spawn == ("allow" if agent == "magi" else "ask")


def test_of_those_that_take_tasks_only_who_leads_may_spawn_and_asks_first() -> None:
    found = {
        name: judged(name, "agent", "spawn explore").action
        for name, agent in BUILT_IN.items()
        if agent.mode == "subagent" and judged(name, "agent", "spawn explore").action != "deny"
    }
    assert found == {"orchestrator": "ask", "engineering-lead": "ask"}


@pytest.mark.parametrize("node", ["magi-melchior", "magi-balthasar", "magi-casper"])
def test_a_node_only_looks(node: str) -> None:
    assert BUILT_IN[node].tools == ("read_file", "grep", "glob")
    assert judged(node, "read", "a.py").action == "allow"
    for key in ("edit", "write", "bash", "net", "agent"):
        assert withholds([BUILT_IN[node].rules, COMMON], key), key
