"""What a prompt mentions, and what it does not."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from magy_server.core.permit import Rule, Ruleset
from magy_server.core.skills.skill import Skill, Skills
from magy_server.core.values import Content, Embedded, Image, Link, Text
from magy_server.tools.prompts.mentions import LINES, MOST, PICTURES, expand

from .conftest import FakeEditor, Workspace
from .pictures import gif, png

INIT = Skill(name="init", description="x", body="Write AGENTS.md.")
SKILLS = Skills({"init": INIT})
LINED = "".join(f"line {n}\n" for n in range(1, 31))


async def added(workspace: Workspace, text: str, **more: Any) -> list[Content]:
    """What comes behind the words, which stay as they are."""
    content, blobs = await expand(str(workspace.root), [Text(text=text)], skills=SKILLS, **more)
    assert content[0] == Text(text=text)
    assert set(blobs) == {part.hash for part in content if isinstance(part, Image)}
    return list(content[1:])


def names(content: Sequence[Content]) -> list[str]:
    return [part.name for part in content if isinstance(part, Link | Image)]


@pytest.fixture
def project(workspace: Workspace) -> Workspace:
    files: Mapping[str, str | bytes] = {
        "a.py": LINED,
        "src/deep/b.txt": "b\n",
        "with blank/c d.md": "c\n",
        "Makefile": "all:\n",
        "init": "a file of that name\n",
        "x:7": "odd name\n",
        "\u00fcber.txt": "u\n",
        "shot.png": png(),
        "data.bin": b"\0\1\2",
    }
    for name, data in files.items():
        workspace.file(name, data)
    return workspace


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("look at @a.py please", ["a.py"]),
        ("@src/deep/b.txt", ["src/deep/b.txt"]),
        ("in @src/deep and @src/ too", ["src/deep/", "src/"]),
        ("(@a.py), @Makefile!", ["a.py", "Makefile"]),
        ("@a.py,@Makefile;@src", ["a.py", "Makefile", "src/"]),
        ("what is @a.py's use? @a.py...", ["a.py"]),
        ('"@a.py" and `@Makefile` and <@src>', ["a.py", "Makefile", "src/"]),
        ('@"with blank/c d.md" there', ["with blank/c d.md"]),
        ('@"a.py"', ["a.py"]),
        ("\u770b@a.py", []),
        ("see @a.py\u770b\u770b", ["a.py"]),
        ("@\u00fcber.txt\u3002", ["\u00fcber.txt"]),
        ("@./a.py @src/../Makefile", ["a.py", "Makefile"]),
        ("@x:7 is odd", ["x:7"]),
        ("line one\n@a.py\n", ["a.py"]),
        ("@a.py:", ["a.py"]),
    ],
)
async def test_files_and_directories_are_linked(
    project: Workspace, text: str, found: list[str]
) -> None:
    content = await added(project, text)
    assert names(content) == found
    for part in content:
        assert isinstance(part, Link)
        assert part.uri == (project.root / part.name).as_uri()


@pytest.mark.parametrize(
    "text",
    [
        "mail me@a.py or you@src",
        "@pytest.fixture\ndef f(): ...",
        "@alice said @missing.py",
        "a@a.py x.@a.py /@a.py @@a.py",
        "@",
        "@ a.py",
        "@. @.. @/ @// @~ @~/a.py",
        '@"" @"missing" @"a.py',
        "@../outside.txt @/etc/passwd @src/../../outside.txt",
        "@link.txt @dangling @loop @fifo",
        "@a.py/b @a.py\x00 @\ud800",
        "@" + "a" * 5000,
        "@" + "../" * 2000,
    ],
)
async def test_what_is_no_mention(project: Workspace, text: str) -> None:
    outside = project.root.parent / "outside.txt"
    outside.write_text("secret")
    (project.root / "link.txt").symlink_to(outside)
    (project.root / "dangling").symlink_to("nowhere")
    (project.root / "loop").symlink_to("loop")
    os.mkfifo(project.root / "fifo")
    assert await added(project, text) == []


async def test_a_link_within_the_workspace_names_the_real_file(project: Workspace) -> None:
    (project.root / "also.py").symlink_to("a.py")
    assert names(await added(project, "@also.py and @a.py")) == ["a.py"]


async def test_an_absolute_path_in_the_workspace(project: Workspace) -> None:
    assert names(await added(project, f"@{project.root}/a.py")) == ["a.py"]


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("@a.py:10-12", 10, 12),
        ("@a.py:10-12.", 10, 12),
        ("(@a.py:12-10)", 10, 12),
        ("@a.py:7", 7, 7),
        ("@a.py:7:3 is wrong", 7, 7),
        ("@a.py#L5-L6", 5, 6),
        ("@a.py#L5", 5, 5),
        ('@"a.py":3-4 and', 3, 4),
        ("@a.py:29-400", 29, 30),
    ],
)
async def test_lines_are_given(project: Workspace, text: str, first: int, last: int) -> None:
    (part,) = await added(project, text)
    lines = [f"line {n}" for n in range(first, last + 1)]
    uri = f"{(project.root / 'a.py').as_uri()}#L{first}-L{last}"
    assert part == Embedded(uri=uri, text="\n".join(lines))


@pytest.mark.parametrize("text", ["@a.py:31", "@data.bin:1", "@src:1-2", "@shot.png:1"])
async def test_where_there_are_no_such_lines_the_file_is_linked(
    project: Workspace, text: str
) -> None:
    (part,) = await added(project, text)
    assert isinstance(part, Link)


async def test_lines_are_those_of_the_open_buffer(project: Workspace, editor: FakeEditor) -> None:
    editor.open(project.root / "a.py", "one\r\ntwo\r\nthree\r\n")
    (part,) = await added(project, "@a.py:2-3", editor=editor)
    assert isinstance(part, Embedded) and part.text == "two\nthree"


async def test_many_lines_and_long_ones_are_bounded(project: Workspace) -> None:
    project.file("long.txt", "x\n" * (LINES + 5))
    project.file("wide.txt", "y" * 1_000_000)
    many, wide = await added(project, "@long.txt:1-999999 @wide.txt:1-1")
    assert isinstance(many, Embedded) and many.text.count("\n") == LINES - 1
    assert isinstance(wide, Embedded) and len(wide.text) < 3_000


async def test_pictures_are_shown(project: Workspace) -> None:
    project.file("notes.txt", gif())
    shot, notes = await added(project, "compare @shot.png with @notes.txt and @shot.png")
    assert isinstance(shot, Image) and (shot.mime, shot.name) == ("image/png", "shot.png")
    assert isinstance(notes, Image) and notes.mime == "image/gif"
    _, blobs = await expand(str(project.root), [Text(text="@shot.png")])
    assert list(blobs.values()) == [png()]


async def test_a_picture_that_models_would_refuse_is_linked(project: Workspace) -> None:
    project.file("cut.png", png()[:-4])
    project.file("big.png", png(9000, 1))
    assert all(isinstance(part, Link) for part in await added(project, "@cut.png @big.png"))


async def test_what_may_not_be_read_is_only_linked(project: Workspace) -> None:
    project.file(".env", "KEY=secret\n")
    project.file("keep.txt", "kept\n")
    read = (
        Rule(pattern=".env", action="deny"),
        Rule(pattern="*.png", action="deny"),
        Rule(pattern="a.py", action="ask"),
    )
    rules = [Ruleset(source="test", keys={"read": read})]
    content = await added(project, "pasted: @.env:1 @shot.png @a.py:1 @keep.txt:1", rules=rules)
    assert [type(part) for part in content] == [Link, Link, Link, Link]
    rules.append(Ruleset(source="more", keys={"read": (Rule(pattern="keep.txt", action="allow"),)}))
    content = await added(project, "pasted: @.env:1 @shot.png @a.py:1 @keep.txt:1", rules=rules)
    assert [type(part) for part in content] == [Link, Link, Link, Embedded]


async def test_nothing_is_given_twice(project: Workspace) -> None:
    root = str(project.root)
    uri = (project.root / "a.py").as_uri()
    odd = uri.replace("a.py", "%61.py")
    before: list[Content] = [
        Text(text="@a.py @a.py @Makefile"),
        Link(uri=odd, name="a.py"),
        Text(text="@Makefile @src"),
    ]
    content, _ = await expand(root, before)
    assert [part for part in content if part in before] == before
    assert names(content) == ["Makefile", "a.py", "src/"]
    assert content[1] == Link(uri=(project.root / "Makefile").as_uri(), name="Makefile")


async def test_other_content_stays_and_is_not_searched(project: Workspace) -> None:
    before = (
        Embedded(uri="file:///x", text="@a.py"),
        Link(uri="https://example.org/@a.py", name="@a.py"),
        Link(uri="http://[", name="odd"),
        Text(text="no mention@all"),
    )
    assert await expand(str(project.root), before, skills=SKILLS) == (before, {})
    assert await expand(str(project.root), []) == ((), {})


async def test_a_prompt_full_of_names_is_bounded(project: Workspace) -> None:
    for number in range(MOST + 10):
        project.file(f"many/{number}")
    text = " ".join(f"@many/{number}" for number in range(MOST + 10))
    assert len(await added(project, text)) == MOST
    assert await added(project, "@no/such/thing " * 20_000) == []
    assert await added(project, "@" + ".,;:" * 20_000) == []


async def test_what_a_prompt_gives_at_once_is_bounded(project: Workspace) -> None:
    for number in range(6):
        project.file(f"wide/{number}", f"{number} {'y' * 97}\n" * 3_000)
    content = await added(project, " ".join(f"@wide/{n}:1-2000" for n in range(6)))
    assert [type(part) for part in content] == [Embedded] * 4 + [Link] * 2
    for number in range(PICTURES + 2):
        project.file(f"pictures/{number}.png", png(number + 1))
    content = await added(project, " ".join(f"@pictures/{n}.png" for n in range(PICTURES + 2)))
    assert [type(part) for part in content] == [Image] * PICTURES + [Link] * 2
    for number in range(5):
        project.file(f"large/{number}.png", png(number + 1, padding=3_600_000))
    content = await added(project, " ".join(f"@large/{n}.png" for n in range(5)))
    assert [type(part) for part in content] == [Image] * 4 + [Link]


# --- skills ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["@init", "  @init keep it short", "@init.", "@init\nand", "@init, do"]
)
async def test_a_skill_at_the_beginning(project: Workspace, text: str) -> None:
    skill = INIT.content(alone=True)
    assert await added(project, text) == [skill]


@pytest.mark.parametrize("text", ["please @init", "@initialise", "@init/x", "@init-2", "@init.txt"])
async def test_a_skill_elsewhere_is_none(project: Workspace, text: str) -> None:
    assert not any(isinstance(part, Embedded) for part in await added(project, text))


async def test_a_skill_with_mentions_and_only_in_the_first_text(project: Workspace) -> None:
    content = await added(project, "@init as in @a.py")
    assert [type(part) for part in content] == [Embedded, Link]
    both, _ = await expand(
        str(project.root), [Text(text="first"), Text(text="@init")], skills=SKILLS
    )
    assert [type(part) for part in both] == [Text, Text, Link]
