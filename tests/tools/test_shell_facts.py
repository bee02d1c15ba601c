from __future__ import annotations

import os
import time

import pytest

from magy_server.core import permit
from magy_server.core.errors import ToolError
from magy_server.core.values import Facts, Resource
from magy_server.tools.kit import make_tools
from magy_server.tools.shell import expansion as expanding
from magy_server.tools.shell import facts as shell_facts
from magy_server.tools.shell.processes import Processes

from .conftest import Workspace


async def judge(workspace: Workspace, command: str) -> Facts:
    processes = Processes(base={"HOME": str(workspace.root.parent), "PATH": os.environ["PATH"]})
    bash = next(tool for tool in make_tools(processes) if tool.name == "bash")
    return await workspace.judge(bash, command=command)


def commands(facts: Facts) -> list[tuple[str, bool]]:
    return [(r.subject, r.opaque) for r in facts.resources if r.kind == "exec"]


def files(facts: Facts) -> set[tuple[str, str]]:
    """Outside the workspace the whole path, inside the relative one."""
    found = (r for r in facts.resources if r.kind in ("read", "write"))
    return {(r.kind, r.subject if r.relative is None else r.relative) for r in found}


@pytest.mark.parametrize(
    ("command", "inside"), [("cat link", "\ufffd.txt"), ("cd dir && ls > x", "\ufffd/x")]
)
async def test_what_a_link_leads_to_need_not_be_utf8(
    workspace: Workspace, command: str, inside: str
) -> None:
    (workspace.root / "link").symlink_to(os.fsdecode(b"\xff.txt"))
    (workspace.root / "dir").symlink_to(os.fsdecode(b"\xff"))
    (workspace.root / os.fsdecode(b"\xff")).mkdir()
    facts = await judge(workspace, command)
    assert inside in {name for _, name in files(facts)}
    facts.model_dump_json()  # as it is logged


@pytest.mark.parametrize("odd", ["a\tb", "a\nb", os.fsdecode(b"a\xffb")])
async def test_odd_names_hide_no_file(workspace: Workspace, odd: str) -> None:
    """What is found by a pattern or quoted is named, also where file tools would refuse it."""
    folder = workspace.root / odd
    folder.mkdir()
    (folder / ".env").write_text("KEY=1")
    (workspace.root / f"{odd}1").symlink_to("/etc/passwd")
    inside = ("read", f"{os.fsencode(odd).decode(errors='replace')}/.env")
    assert inside in files(await judge(workspace, "cat a*b/.env"))
    assert ("read", "/etc/passwd") in files(await judge(workspace, "head a?b1"))
    if odd.isascii():
        assert inside in files(await judge(workspace, f"cat '{odd}/.env'"))


async def test_a_directory_may_be_called_as_an_address_begins(workspace: Workspace) -> None:
    (workspace.root / "https:").mkdir()
    (workspace.root / "https:" / "x").symlink_to("../.env")
    secret = str(workspace.root.parent / "secret")
    for command, named in {
        "cat https://x": ("read", ".env"),
        "wc --files0-from=https://x": ("read", ".env"),
        "cat https://../../secret": ("read", secret),
    }.items():
        assert named in files(await judge(workspace, command)), command


@pytest.mark.parametrize(
    ("command", "named"),
    [
        ("cat .env", {("read", ".env")}),
        ("cat ./.env src/../.env", {("read", ".env")}),
        ("grep -f.env x", {("read", ".env")}),
        ("grep -hf.env x", {("read", ".env")}),
        (
            "sort -nuo.env x",
            {("read", ".env"), ("write", ".env"), ("read", "x"), ("write", "x")},
        ),
        ("cp -ftsrc/deep", {(how, f"{t}src/deep") for how in ("read", "write") for t in ("t", "")}),
        ("gcc -Isrc/deep", {("read", "src/deep")}),
        ("tool --file=.env", {("read", ".env")}),
        ("tool --file=new/dir/x", {("read", "new/dir/x")}),
        ("curl -d @.env http://localhost/x", {("read", ".env")}),
        ("git show HEAD:.env", {("read", ".env")}),
        ("curl --data=@.env x", {("read", ".env")}),
        ("docker run -v=.env:x y", {("read", ".env")}),
        (
            "tool a.py,.env,src/b.py",
            {("read", p) for p in (".env", "src/b.py", "a.py,.env,src/b.py", ".env,src/b.py")},
        ),
        ("cat alias", {("read", ".env")}),
        ("cat out/key", {("read", "/OUT/key")}),
        ("cat ../outside/key", {("read", "/OUT/key")}),
        ("cat ~/outside/key", {("read", "/OUT/key")}),
        ("cat '~/outside'", {("read", "~/outside")}),
        ("cat < .env", {("read", ".env")}),
        ("echo x > new.txt 2>> log/err", {("write", "new.txt"), ("write", "log/err")}),
        ("echo x > out/new", {("write", "/OUT/new")}),
        ("cat .e*", {("read", ".env")}),
        ("cat src/?.py", {("read", "src/a.py"), ("read", "src/b.py")}),
        ("cat src/[a-a].py", {("read", "src/a.py"), ("read", "src/b.py")}),
        ("cat src/*.c", {("read", "src/*.c")}),
        ("cd src && cat a.py ../.env", {("read", "src"), ("read", "src/a.py"), ("read", ".env")}),
        ("cd out && cat key", {("read", "/OUT"), ("read", "/OUT/key")}),
        ("rm .env", {("read", ".env"), ("write", ".env")}),
        ("dd if=.env of=copy/x", {(k, p) for k in ("read", "write") for p in (".env", "copy/x")}),
        ("timeout 5 cat .env", {("read", ".env")}),
        ("./run.sh", set()),
        ("grep -r /api/v1 /dev/null", set()),
        ("mkdir -p /api/v1", {("read", "/api/v1"), ("write", "/api/v1")}),
        ("sed -n s/a/b/ .env", {("read", ".env")}),
        ("sed -n /usr/p .env", {("read", ".env")}),
        ("grep -n .env src/a.py", {("read", "src/a.py")}),
        ("grep -n -e x .env", {("read", ".env")}),
        ("grep -nf .env src/a.py", {("read", ".env"), ("read", "src/a.py")}),
        ("jq -r .env .env", {("read", ".env")}),
        (
            "sort -o .env src/a.py",
            {(k, p) for k in ("read", "write") for p in (".env", "src/a.py")},
        ),
        ("cat <> .env", {("read", ".env"), ("write", ".env")}),
        ("LC_ALL=C cat .env", {("read", ".env")}),
        ("curl file:///etc/passwd --url=https://x.org/a", {("read", "/etc/passwd")}),
        ("dd if=a=b/c", {(k, p) for k in ("read", "write") for p in (".env", "b/c")}),
        ("echo hello world", set()),
        ("pytest -q -x", set()),
        ("curl https://example.org/a/b", set()),
    ],
)
async def test_the_files_a_command_names(
    workspace: Workspace, command: str, named: set[tuple[str, str]]
) -> None:
    outside = workspace.root.parent / "outside"
    outside.mkdir()
    (outside / "key").write_text("x")
    for name in (".env", "src/a.py", "src/b.py", "src/.hidden.py"):
        workspace.file(name, "x")
    (workspace.root / "alias").symlink_to(".env")
    (workspace.root / "out").symlink_to(outside)
    (workspace.root / "if=a=b").mkdir()
    (workspace.root / "if=a=b/c").symlink_to("../.env")
    facts = await judge(workspace, command)
    assert files(facts) == {(kind, path.replace("/OUT", str(outside))) for kind, path in named}
    unclear = command.startswith(("LC_ALL=", "cat <>"))
    assert any(opaque for _, opaque in commands(facts)) is unclear


async def test_sed_in_place_writes(workspace: Workspace) -> None:
    workspace.file("a.txt", "x")
    facts = await judge(workspace, "sed -Ei 1d a.txt")
    assert files(facts) == {("read", "a.txt"), ("write", "a.txt")}


async def test_each_simple_command_is_a_resource(workspace: Workspace) -> None:
    facts = await judge(workspace, "make test && git  status | head -5; echo 'a  b'")
    assert commands(facts) == [
        ("make test", False), ("git status", False), ("head -5", False), ("echo 'a  b'", False),
    ]  # fmt: skip
    assert facts.resources[0].argv == ("make", "test")
    assert facts.cwd == str(workspace.root)


@pytest.mark.parametrize(
    "command",
    [
        "echo $(cat .env)",
        "eval ls",
        "cat *",
        "rm [[:alpha:]]x",
        "cd link/.. && cat x",
        "cat many/*",
    ],
)
async def test_what_is_not_understood_is_opaque(workspace: Workspace, command: str) -> None:
    workspace.file("-rf", "")
    (workspace.root / "real/deep").mkdir(parents=True)
    (workspace.root / "link").symlink_to("real/deep")
    (workspace.root / "many").mkdir()
    for n in range(shell_facts.MATCHES + 1):
        (workspace.root / f"many/{n}").touch()
    facts = await judge(workspace, command)
    assert any(opaque for _, opaque in commands(facts))


@pytest.mark.parametrize(
    ("command", "opaque"),
    [
        ("wc -l *.py", False),
        ("wc -l *.none", True),
        ("grep x *.py", False),
        ("grep x *", True),
        ("grep sub *.py", True),
        ("grep .env *.py", True),
        ("make && cat *.py", True),
        ("make && ls *.py", False),
        ("make && mytool *.py", False),
        ("ls && cat *.py > out", False),
        ("timeout 5 cat *.py", False),
        ("ln -s a b.py & cat *.py", True),
        ("rm *.py", False),
        ("for i in 1 2; do cat *.py; make; done", True),
    ],
)
async def test_a_pattern_may_match_more_when_the_command_runs(
    workspace: Workspace, command: str, opaque: bool
) -> None:
    for name in ("a.py", "sub/b.py", ".env"):
        workspace.file(name, "x")
    facts = await judge(workspace, command)
    assert any(found for _, found in commands(facts)) is opaque


@pytest.mark.parametrize("language", ["C", "C.UTF-8"])
async def test_a_pattern_matches_what_it_would_in_any_language(
    workspace: Workspace, language: str
) -> None:
    workspace.file("clé.pem", "x")
    for command in ("cat cl?.pem", "cat cl??.pem", f"LC_ALL={language} cat c*?.p[e]m"):
        facts = await judge(workspace, command)
        assert ("read", "clé.pem") in files(facts), command


async def test_a_language_that_pairs_bytes_is_not_read(workspace: Workspace) -> None:
    for language, opaque in (("ja_JP.SJIS", True), ("zh_CN", True), ("de_DE.ISO-8859-1", False),
                             ("C.UTF-8", False), ("zh_CN.UTF-8", False), ("", False)):  # fmt: skip
        env = {"PATH": os.environ["PATH"], "LC_ALL": language}
        context = workspace.context()
        facts, _ = await shell_facts.facts(context, "echo '日\\`id`'", env)
        assert any(found for _, found in commands(facts)) is opaque, language
        facts, _ = await shell_facts.facts(context, "echo plain", env)
        assert not any(found for _, found in commands(facts))


async def test_links_in_a_circle_do_not_hold_a_pattern_up(workspace: Workspace) -> None:
    for number in range(12):
        (workspace.root / f"l{number}").symlink_to(".")
    for number in range(300):
        workspace.file(f"wide/{number}/x", "")
    since = time.monotonic()
    for command in (
        "cat */*/*/*/*/*/*/*/*/*/zz", "ls " + "*/" * 200, "ls " + "*/*/*/zz " * 100,
        "cat " + "l?/" * 50 + "*", "ls " + "*a" * 2000, "cat " + ".*/" * 40 + "zz",
    ):  # fmt: skip
        facts = await judge(workspace, command)
        assert any(opaque for _, opaque in commands(facts)) or len(command) > 4000, command
    assert time.monotonic() - since < 6 * (expanding.SECONDS + 1)


async def test_the_facts_are_what_the_shell_does(workspace: Workspace) -> None:
    """The files that a real shell reads are among those that were named."""
    for name in ("a.txt", "b.txt", ".c.txt", "sub/d.txt", "sub/x[1].txt", "sub/x1.txt"):
        workspace.file(name, f"<{name}>")
    (workspace.root / "ln").symlink_to("sub")
    bash = next(tool for tool in make_tools(Processes()) if tool.name == "bash")
    for command in ("cat *.txt", "cat .*.txt", "cd ln && cat d.txt ../a.txt", "cat sub/x[1].txt"):
        context = await workspace.prepare(bash, command=command)
        said = (await bash.run(context, **bash.arguments({"command": command}))).for_model
        named = {r.relative for r in context.facts.resources if r.kind == "read"}
        read = {part.split(">")[0] for part in said.split("<")[1:]}
        assert read and read <= named, (command, read, named)


async def test_titles_and_sizes_are_bounded(workspace: Workspace) -> None:
    facts = await judge(workspace, "  printf 'a\tb' " + "x" * 500 + "\nsecond line")
    assert facts.title.startswith("Run printf 'a b' xxx")
    assert facts.title.endswith("xxx ⏎ second line")
    assert " … (+225 characters) … " in facts.title and len(facts.title) < 350
    facts = await judge(workspace, "cat " + " ".join(f"d/{n}" for n in range(600)))
    assert sum(r.kind == "read" for r in facts.resources) == shell_facts.FILES
    assert facts.resources[1] == Resource(
        kind="exec", subject="(names 600 files, more than Magy examines)", opaque=True
    )


async def test_the_plan_is_an_event(workspace: Workspace) -> None:
    plan = next(tool for tool in make_tools(Processes()) if tool.name == "update_plan")
    tasks = [
        {"content": "look", "status": "completed", "priority": "high"},
        {"content": "mend", "status": "in_progress"},
        {"content": "test"},
    ]
    result = await workspace.run(plan, tasks=tasks)
    assert result.for_model == "Plan updated: 1 completed, 1 in_progress, 1 pending."
    (event,) = result.events
    assert event.type == "planned"
    assert [(t.content, t.status, t.priority) for t in event.tasks] == [
        ("look", "completed", "high"), ("mend", "in_progress", "medium"),
        ("test", "pending", "medium"),
    ]  # fmt: skip
    both = [dict(task, status="in_progress") for task in tasks]
    assert "Keep one task in_progress" in (await workspace.run(plan, tasks=both)).for_model
    with pytest.raises(ToolError, match="at most 50 items"):
        plan.arguments({"tasks": [{"content": "x"}] * 51})


@pytest.mark.parametrize("work", ["./run.sh", "make test", "python3 t.py", "npm run build"])
@pytest.mark.parametrize("where", ["", "cd a && ", "cd .git && ", "cd a/b && "])
async def test_what_is_remembered_holds_in_the_directory_where_it_ran(
    workspace: Workspace, work: str, where: str
) -> None:
    changes = permit.Rule(pattern="cd *", action="allow")
    rules = [permit.Ruleset(source="me", keys={"bash": (changes,)})]
    places = ("", "cd a && ", "cd .git && ", "cd git && ", "cd a/b && ", "cd a && cd b && ")
    for name in ("a/b", ".git", "git"):
        (workspace.root / name).mkdir(parents=True)
    told = permit.proposals(await judge(workspace, where + work), "bash")

    async def answer(place: str) -> str:
        facts = await judge(workspace, place + work)
        return permit.decide(facts, "bash", "exec", rules, told).action

    same = {where, "cd a && cd b && "} if where == "cd a/b && " else {where}
    found = {place: await answer(place) for place in places}
    assert found == {place: "allow" if place in same else "ask" for place in places}
