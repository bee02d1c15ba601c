"""Going back on real files, with a real store."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from magy_server.core.errors import EditUnverified, InvalidRequest, NotFound
from magy_server.core.events import Prompted
from magy_server.core.no_editor import NO_EDITOR
from magy_server.core.ports import Found, Put
from magy_server.core.reviews.review_events import Noted, Restoring
from magy_server.core.values import FileChange, Link, Text, Version
from magy_server.reviews.reviews import Reviews
from magy_server.reviews.undo_plan import first_words
from magy_server.reviews.views import Which, Wish
from magy_server.tools.files.commits import Commits
from magy_server.tools.files.workspace import WorkspaceFiles
from magy_server.tools.shell.processes import Processes

from .going_back import Agent, Place, place


@pytest.fixture
def root(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    project.mkdir()
    return project.resolve()


@pytest.fixture
async def here(root: Path, tmp_path: Path) -> AsyncIterator[Place]:
    async with place(root, tmp_path / "state") as one:
        yield one


async def notes(agent: Agent) -> list[str]:
    return [item.text for item in agent.session.state.conversation.items if isinstance(item, Noted)]


async def test_a_turn_is_undone_and_redone(here: Place) -> None:
    here.write("a.py", "1\n")
    agent = await here.session()
    await agent.turn("Make a two", a_py="2\n")
    await agent.turn("Make it three\nplease", a_py="3\n", b_py="new\n", sub__c_py="new\n")
    after, said = here.files(), agent.session.state.conversation.items
    undone = await here.checkpoints.restore(agent.session, "r1")
    assert (undone.turn, undone.turns, undone.text) == ("p2", ("p2",), "Make it three\nplease")
    assert [(file.action, file.added, file.removed) for file in undone.files] == [
        ("change", 1, 1), ("remove", 0, 1), ("remove", 0, 1)
    ]  # fmt: skip
    assert here.files() == {"a.py": "2\n"}
    prompts = [i.id for i in agent.session.state.conversation.items if isinstance(i, Prompted)]
    assert prompts == ["p1"] and await notes(agent) == []
    redone = await here.checkpoints.restore(agent.session, "r2", undoes="r1")
    assert here.files() == after and agent.session.state.conversation.items == said
    assert redone.turns == ("p2",) and redone.text == ""
    await here.checkpoints.restore(agent.session, "r3", undoes="r2")
    assert here.files() == {"a.py": "2\n"}
    await here.checkpoints.restore(agent.session, "r4", undoes="r3")
    assert here.files() == after and agent.session.state.conversation.items == said


async def test_turn_after_turn_back_and_forth(here: Place) -> None:
    here.write("a.py", "0\n")
    agent = await here.session()
    states = [here.files()]
    for number in range(4):
        await agent.turn(a_py=f"{number}\n", b_py=f"b {number}\n")
        states.append(here.files())
    for number in range(3, -1, -1):
        await here.checkpoints.restore(agent.session, f"undo {number}")
        assert here.files() == states[number]
    with pytest.raises(InvalidRequest, match="nothing to undo"):
        await here.checkpoints.restore(agent.session, "more")
    for number in range(4):
        await here.checkpoints.restore(agent.session, f"redo {number}", undoes=f"undo {number}")
        assert here.files() == states[number + 1]
    await here.checkpoints.restore(agent.session, "all", "p1")
    assert here.files() == states[0]
    listed = await here.checkpoints.list(agent.session)
    assert {point.state for point in listed} == {"undone"}
    assert {point.restore for point in listed} == {"all"}
    await here.checkpoints.restore(agent.session, "all again", undoes="all")
    assert here.files() == states[4]


async def test_what_the_list_says(here: Place) -> None:
    here.write("a.py", "1\n2\n")
    agent = await here.session()
    await agent.turn("First\nline of many", a_py="1\nzwei\ndrei\n")
    await agent.turn("x" * 200)
    await agent.turn("Third", a_py=None, b_py="b\n")
    await here.checkpoints.restore(agent.session, "r", "p3", conversation=False)
    one, two, three = await here.checkpoints.list(agent.session)
    assert one.prompt == "First" and len(two.prompt) == 80 and two.files == ()
    counted = [(os.path.basename(f.path), f.added, f.removed) for f in (*one.files, *three.files)]
    assert counted == [("a.py", 2, 1), ("a.py", 0, 3), ("b.py", 1, 0)]
    assert [point.state for point in (one, two, three)] == ["applied", "applied", "undone"]
    assert all(point.conversation for point in (one, two, three)) and three.restore == "r"
    assert one.at <= two.at <= three.at
    assert [p.turn for p in await here.checkpoints.list(agent.session, limit=2)] == ["p2", "p3"]
    older = await here.checkpoints.list(agent.session, limit=1, before="p3")
    assert [p.turn for p in older] == ["p2"]
    with pytest.raises(NotFound):
        await here.checkpoints.list(agent.session, before="nobody")


def test_a_turn_is_named_by_what_was_written_not_by_what_was_attached() -> None:
    file = Link(uri="file:///a.py", name="a.py")
    assert first_words((Text(text="Make it polite"), file)) == "Make it polite"
    assert first_words((Text(text=" "), file)) == "(attached: a.py)"


async def test_edits_of_the_person_and_of_another_session_stay(here: Place) -> None:
    here.write("a.py", "".join(f"{n}\n" for n in range(1, 10)))
    agent, other = await here.session("s"), await here.session("other")
    await agent.turn(a_py=(here.read("a.py") or "").replace("2\n", "zwei\n"))
    await other.turn(a_py=(here.read("a.py") or "").replace("5\n", "fünf\n"))
    here.write("a.py", (here.read("a.py") or "").replace("9\n", "mine\n"))
    await here.checkpoints.restore(agent.session, "r")
    assert here.read("a.py") == "1\n2\n3\n4\nfünf\n6\n7\n8\nmine\n"
    await here.checkpoints.restore(other.session, "r")
    assert here.read("a.py") == "1\n2\n3\n4\n5\n6\n7\n8\nmine\n"
    await here.checkpoints.restore(agent.session, "r2", undoes="r")
    assert here.read("a.py") == "1\nzwei\n3\n4\n5\n6\n7\n8\nmine\n"


async def test_a_conflict_leaves_that_file_alone_and_the_others_go_back(here: Place) -> None:
    here.write("a.py", "1\n2\n3\n")
    here.write("b.py", "b\n")
    agent = await here.session()
    await agent.turn(a_py="1\nzwei\n3\n", b_py="B\n", c_py="made\n", d_py="made\n")
    here.write("a.py", "1\nzwo\n3\n")
    here.write("c.py", "made\nand changed\n")
    shown = {os.path.basename(f.path): f for f in
             (await here.checkpoints.preview(agent.session)).files}  # fmt: skip
    assert "at 2" in shown["a.py"].conflict and "created" in shown["c.py"].conflict
    assert (shown["a.py"].action, shown["b.py"].action) == ("nothing", "change")
    assert "-B\n+b\n" in shown["b.py"].diff and shown["d.py"].action == "remove"
    before = here.files()
    done = await here.checkpoints.restore(agent.session, "r")
    assert {os.path.basename(f.path): f for f in done.files} == shown
    assert here.files() == {**{k: before[k] for k in ("a.py", "c.py")}, "b.py": "b\n"}
    (point,) = await here.checkpoints.list(agent.session)
    assert point.state == "partly"
    # What was in the way is gone: the rest can follow; and all of it comes back in two steps.
    here.write("a.py", "1\nzwei\n3\n")
    here.write("c.py", "made\n")
    await here.checkpoints.restore(agent.session, "rest", "p1", conversation=False)
    assert here.files() == {"a.py": "1\n2\n3\n", "b.py": "b\n"}
    await here.checkpoints.restore(agent.session, "back 1", undoes="rest")
    await here.checkpoints.restore(agent.session, "back 2", undoes="r")
    assert here.files() == {"a.py": "1\nzwei\n3\n", "b.py": "B\n", "c.py": "made\n",
                            "d.py": "made\n"}  # fmt: skip


async def test_looking_changes_nothing(here: Place) -> None:
    here.write("a.py", "1\n")
    agent = await here.session()
    await agent.turn(a_py="2\n", b_py="new\n")
    before, seq = here.files(), agent.session.state.seq
    preview = await here.checkpoints.preview(agent.session)
    assert preview.conversation and preview.turns == ("p1",) and preview.text == "Do p1"
    assert here.files() == before and agent.session.state.seq == seq


async def test_only_files_go_back_and_the_model_is_told(here: Place) -> None:
    here.write("a.py", "1\n")
    agent = await here.session()
    await agent.turn(a_py="2\n", b_py="new\n")
    said = len(agent.session.state.conversation.items)
    done = await here.checkpoints.restore(agent.session, "r", conversation=False)
    assert here.files() == {"a.py": "1\n"} and not done.conversation and done.text == ""
    (told,) = await notes(agent)
    assert "undid your changes to these files: a.py, b.py." in told
    assert len(agent.session.state.conversation.items) == said + 1
    assert agent.session.state.conversation.seen == {}  # what it knew is in neither file any more
    assert agent.session.state.history.files == {}
    await here.checkpoints.restore(agent.session, "r2", undoes="r")
    assert "has now restored them: a.py, b.py." in (await notes(agent))[-1]
    assert len(agent.session.state.conversation.seen) == 2 and here.read("a.py") == "2\n"


async def test_only_the_conversation_goes_back(here: Place) -> None:
    agent = await here.session()
    await agent.turn(a_py="1\n")
    said, seen = (
        agent.session.state.conversation.items,
        dict(agent.session.state.conversation.seen),
    )
    await agent.turn(a_py="2\n")
    spent = agent.session.state.spending.usage
    done = await here.checkpoints.restore(agent.session, "r", files=False)
    assert done.conversation and done.files == () and done.text == "Do p2"
    assert here.read("a.py") == "2\n"
    state = agent.session.state
    assert (
        state.conversation.items == said
        and state.conversation.seen == seen
        and state.spending.usage == spent
    )
    assert list(state.history.files.values()) == ["created"]  # that is as true as before
    again = await here.checkpoints.restore(agent.session, "r2", undoes="r")
    assert again.conversation and await notes(agent) == []


async def test_a_conversation_that_comes_back_without_its_files_is_told(here: Place) -> None:
    agent = await here.session()
    await agent.turn(a_py="1\n", b_py="1\n")
    await here.checkpoints.restore(agent.session, "r")
    await here.checkpoints.restore(agent.session, "r2", undoes="r", files=False)
    assert here.files() == {} and agent.session.state.conversation.seen == {}
    assert "undid your changes to these files: a.py, b.py." in (await notes(agent))[0]
    await here.checkpoints.restore(agent.session, "r3", undoes="r")
    assert here.files() == {"a.py": "1\n", "b.py": "1\n"}
    said = agent.session.state.conversation.items
    await here.checkpoints.restore(agent.session, "r4", "p1")
    await here.checkpoints.restore(agent.session, "r5", undoes="r4", conversation=False)
    assert here.files() == {"a.py": "1\n", "b.py": "1\n"}
    await here.checkpoints.restore(agent.session, "r6", undoes="r4", files=False)
    assert agent.session.state.conversation.items == said


async def test_the_conversation_does_not_come_back_once_it_has_gone_on(here: Place) -> None:
    agent = await here.session()
    await agent.turn(a_py="1\n2\n3\n4\n")
    await agent.turn(a_py="1\n2\n3\nvier\n")
    await here.checkpoints.restore(agent.session, "r")
    await agent.turn(a_py="eins\n2\n3\n4\n")
    with pytest.raises(InvalidRequest, match="has gone on since"):
        await here.checkpoints.restore(agent.session, "r2", undoes="r")
    await here.checkpoints.restore(agent.session, "r2", undoes="r", conversation=False)
    assert here.read("a.py") == "eins\n2\n3\nvier\n"
    with pytest.raises(InvalidRequest, match="gone back to before this turn"):
        await here.checkpoints.restore(agent.session, "r3", "p2")
    await here.checkpoints.restore(agent.session, "r3", "p2", conversation=False)
    assert here.read("a.py") == "1\n2\n3\n4\n"


async def test_special_files(here: Place) -> None:
    (here.root / "run").write_text("#!/bin/sh\n")
    (here.root / "link").symlink_to("run")
    agent = await here.session()
    turn = await agent.begin()
    await agent.call("run", "#!/bin/sh\necho\n", "executable")
    await agent.call("link", "elsewhere", "link")
    await agent.move("run", "bin/run")
    await agent.call("picture", "\0after")
    await agent.end(turn)
    await here.checkpoints.restore(agent.session, "r")
    assert sorted(os.listdir(here.root)) == ["bin", "link", "run"]
    assert os.readlink(here.root / "link") == "run"
    assert (here.root / "run").read_text() == "#!/bin/sh\n"
    assert not (here.root / "run").stat().st_mode & 0o111
    assert os.listdir(here.root / "bin") == []  # directories stay
    await here.checkpoints.restore(agent.session, "r2", undoes="r")
    assert sorted(os.listdir(here.root)) == ["bin", "link", "picture"]
    assert os.readlink(here.root / "link") == "elsewhere"


async def test_a_moved_file_that_was_edited_goes_back_with_the_edits(here: Place) -> None:
    here.write("old.py", "1\n2\n3\n")
    agent = await here.session()
    turn = await agent.begin()
    await agent.move("old.py", "new.py")
    await agent.end(turn)
    here.write("new.py", "1\n2\n3\nmine\n")
    (file,) = (await here.checkpoints.preview(agent.session)).files
    assert (os.path.basename(file.path), os.path.basename(file.moved_from)) == ("old.py", "new.py")
    assert (file.action, file.added, file.removed) == ("rename", 0, 0)
    assert file.diff == "rename from new.py\nrename to old.py\n"
    done = await here.checkpoints.restore(agent.session, "r")
    assert done.files == (file,)
    assert here.files() == {"old.py": "1\n2\n3\nmine\n"}
    await here.checkpoints.restore(agent.session, "r2", undoes="r")
    assert here.files() == {"new.py": "1\n2\n3\nmine\n"}


async def test_what_is_in_the_way_is_said(here: Place) -> None:
    for name in ("a.py", "b.py", "c.py"):
        here.write(name, "1\n")
    agent = await here.session()
    await agent.turn(a_py="2\n", b_py="2\n", c_py="2\n", d_py=None)
    (here.root / "a.py").unlink()
    (here.root / "a.py").mkdir()
    (here.root / "b.py").chmod(0o444)
    done = await here.checkpoints.restore(agent.session, "r")
    conflicts = {os.path.basename(f.path): f.conflict for f in done.files if f.conflict}
    assert "directory" in conflicts["a.py"] and "read-only" in conflicts["b.py"]
    assert here.read("c.py") == "1\n" and (here.root / "b.py").read_text() == "2\n"
    (here.root / "b.py").chmod(0o644)
    await here.checkpoints.restore(agent.session, "r2", "p1", conversation=False)
    assert here.read("b.py") == "1\n"


async def test_a_call_that_wrote_nothing_is_in_the_way_of_nothing(here: Place) -> None:
    here.write("a.py", "1\n")
    agent = await here.session()
    digests = [hashlib.sha256(text).hexdigest() for text in (b"1\n", b"2\n", b"3\n")]
    turn = await agent.begin()
    await agent.call("a.py", "2\n")
    meant = FileChange(path=str(here.root / "a.py"), before=digests[1], after=digests[2])
    await agent.finish([meant], {digests[1]: b"2\n", digests[2]: b"3\n"}, "failed")
    await agent.end(turn)
    done = await here.checkpoints.restore(agent.session, "r")
    assert [file.conflict for file in done.files] == [""]
    assert here.files() == {"a.py": "1\n"}


async def test_what_was_only_proposed_is_not_touched(here: Place) -> None:
    here.write("a.py", "1\n")
    agent = await here.session()
    one, two = (hashlib.sha256(text).hexdigest() for text in (b"1\n", b"2\n"))
    turn = await agent.begin()
    proposed = FileChange(path=str(here.root / "a.py"), before=one, after=two, via="proposed")
    await agent.finish([proposed], {one: b"1\n", two: b"2\n"})
    await agent.end(turn)
    here.write("a.py", "2\n")
    done = await here.checkpoints.restore(agent.session, "r")
    assert done.files == () and here.read("a.py") == "2\n"


@pytest.fixture
def reviews(here: Place) -> Reviews:
    return under_review(here)


def under_review(here: Place) -> Reviews:
    """What changes files here comes under review."""
    here.sessions.companions.append(here.service.reviews.along)
    return here.service.reviews


async def propose(agent: Agent, path: Path, text: str) -> None:
    """A turn that proposes another text of the file."""
    before, after = path.read_bytes(), text.encode()
    one, two = (hashlib.sha256(data).hexdigest() for data in (before, after))
    turn = await agent.begin()
    change = FileChange(path=str(path), before=one, after=two, via="proposed")
    await agent.finish([change], {one: before, two: after})
    await agent.end(turn)


LINES = [f"{number}\n" for number in range(20)]


@pytest.mark.req("G014")
async def test_what_was_proposed_and_accepted_goes_back_and_comes_again(
    here: Place, reviews: Reviews
) -> None:
    here.write("a.py", "".join(LINES))
    agent = await here.session()
    path = here.root / "a.py"
    await propose(agent, path, "".join(["zero\n", *LINES[1:10], "ten\n", *LINES[11:]]))
    first, second = (await reviews.get(str(path), True)).hunks
    await reviews.resolve(str(path), Wish("accept", Which(ids=(first.id,))), True)
    here.write("a.py", "".join(["zero\n", *LINES[1:19], "mine\n"]))
    (listed,) = await here.checkpoints.list(agent.session)
    assert [(file.path, file.added, file.removed) for file in listed.files] == [(str(path), 1, 1)]
    preview = await here.checkpoints.preview(agent.session)
    done = await here.checkpoints.restore(agent.session, "r1")
    assert [file.diff for file in preview.files] == [file.diff for file in done.files] != []
    assert here.read("a.py") == "".join([*LINES[:19], "mine\n"])
    assert [hunk.new for hunk in (await reviews.get(str(path), True)).hunks] == [second.new]
    await here.checkpoints.restore(agent.session, "r2", undoes="r1")
    assert here.read("a.py") == "".join(["zero\n", *LINES[1:19], "mine\n"])


async def test_an_accepted_proposal_that_was_taken_back_is_not_undone_again(
    here: Place, reviews: Reviews
) -> None:
    here.write("a.py", "1\n")
    agent = await here.session()
    path = here.root / "a.py"
    await propose(agent, path, "2\n")
    accepted = await reviews.resolve(str(path), Wish("accept", Which(all=True)), True)
    taken = await reviews.undo(accepted.decision)
    assert here.read("a.py") == "1\n"
    await reviews.undo(taken.decision)
    assert here.read("a.py") == "2\n"
    (file,) = (await here.checkpoints.restore(agent.session, "r1")).files
    assert (file.action, here.read("a.py")) == ("change", "1\n")


async def test_what_a_person_wrote_in_the_place_of_a_proposal_stays(
    here: Place, reviews: Reviews
) -> None:
    here.write("a.py", "1\n")
    agent = await here.session()
    path = here.root / "a.py"
    await propose(agent, path, "2\n")
    (hunk,) = (await reviews.get(str(path), True)).hunks
    await reviews.resolve(str(path), Wish("amend", Which(ids=(hunk.id,)), text="3\n"), True)
    done = await here.checkpoints.restore(agent.session, "r1")
    assert (done.files, here.read("a.py")) == ((), "3\n")


@pytest.mark.parametrize("codec", ["utf-8-sig", "utf-16", "cp1252"])
async def test_encodings_and_line_ends_stay(here: Place, codec: str) -> None:
    file, lines = here.root / "a.txt", ["eins", "zwei", "drei", "vier", "fünf"]
    file.write_bytes("\r\n".join(lines).encode(codec))
    agent = await here.session()
    turn = await agent.begin()
    await agent.call("a.txt", "\r\n".join(["eins", "2", *lines[2:]]).encode(codec))
    await agent.end(turn)
    file.write_bytes("\r\n".join(["eins", "2", *lines[2:], "müßig", ""]).encode(codec))
    await here.checkpoints.restore(agent.session, "r")
    assert file.read_bytes() == "\r\n".join([*lines, "müßig", ""]).encode(codec)


class Racing(WorkspaceFiles):
    """Somebody is faster, so many times: writes right before a file is put."""

    def __init__(self, times: int) -> None:
        super().__init__(NO_EDITOR, Commits(Processes()))
        self.times = times

    async def put(self, root: str, was: Found, now: Version, data: bytes, label: str) -> Put:
        if self.times:
            self.times -= 1
            file = Path(was.path)
            file.write_text(f"{file.read_text()}faster {self.times}\n")
        return await super().put(root, was, now, data, label)


class Slow(WorkspaceFiles):
    """An editor that makes a change only when it is let."""

    def __init__(self) -> None:
        super().__init__(NO_EDITOR, Commits(Processes()))
        self.asked, self.let = asyncio.Event(), asyncio.Event()

    async def put(self, root: str, was: Found, now: Version, data: bytes, label: str) -> Put:
        self.asked.set()
        await self.let.wait()
        return await super().put(root, was, now, data, label)


async def test_an_undo_knows_of_a_proposal_that_is_being_accepted(
    root: Path, tmp_path: Path
) -> None:
    files = Slow()
    async with place(root, tmp_path / "state", files) as here:
        reviews = under_review(here)
        here.write("a.py", "1\n")
        agent = await here.session()
        await propose(agent, here.root / "a.py", "2\n")
        wish = Wish("accept", Which(all=True))
        accepting = asyncio.create_task(reviews.resolve(str(here.root / "a.py"), wish, True))
        await files.asked.wait()
        looking = asyncio.create_task(here.checkpoints.preview(agent.session))
        undoing = asyncio.create_task(here.checkpoints.restore(agent.session, "r1"))
        await here.checkpoints.list(agent.session)  # which waits for nothing
        files.let.set()
        await accepting
        for done in (await looking, await undoing):
            assert [file.action for file in done.files] == ["change"]
        assert here.read("a.py") == "1\n"


class Unsure(WorkspaceFiles):
    """An editor that says it may have gone wrong; `done`: it did not."""

    def __init__(self, *, done: bool) -> None:
        super().__init__(NO_EDITOR, Commits(Processes()))
        self.done = done

    async def put(self, root: str, was: Found, now: Version, data: bytes, label: str) -> Put:
        if self.done:
            await super().put(root, was, now, data, label)
        raise EditUnverified("The editor took it, but now has another text.")


@pytest.mark.parametrize("times", [1, 4, 20])
async def test_who_is_faster_loses_nothing(root: Path, tmp_path: Path, times: int) -> None:
    async with place(root, tmp_path / "state", Racing(times)) as here:
        here.write("a.py", "1\n2\n3\n4\n")
        agent = await here.session()
        await agent.turn(a_py="eins\n2\n3\n4\n")
        done = await here.checkpoints.restore(agent.session, "r")
        faster = "".join(f"faster {n}\n" for n in range(times - 1, -1, -1))
        first = "1" if times < 20 else "eins"
        assert here.read("a.py") == f"{first}\n2\n3\n4\n{faster}"
        assert bool(done.files[0].conflict) is (times == 20)


@pytest.mark.parametrize("done", [True, False])
async def test_what_an_editor_says_is_looked_at(root: Path, tmp_path: Path, done: bool) -> None:
    async with place(root, tmp_path / "state", Unsure(done=done)) as here:
        here.write("a.py", "1\n")
        agent = await here.session()
        await agent.turn(a_py="2\n")
        restored = await here.checkpoints.restore(agent.session, "r")
        assert here.read("a.py") == ("1\n" if done else "2\n")
        assert bool(restored.files[0].conflict) is not done
        (point,) = await here.checkpoints.list(agent.session)
        assert point.state == ("undone" if done else "applied")


async def test_what_was_begun_is_finished(here: Place) -> None:
    here.write("a.py", "1\n2\n3\n")
    agent = await here.session()
    await agent.turn(a_py="1\n2\ndrei\n", b_py="new\n")
    plan = await here.checkpoints.preview(agent.session)
    blobs = {hashlib.sha256(text).hexdigest(): text for text in
             (b"1\n2\n3\n", b"1\n2\ndrei\n", b"new\n")}  # fmt: skip
    before, after, new = blobs
    changes = (
        FileChange(path=plan.files[0].path, before=after, after=before),
        FileChange(path=plan.files[1].path, before=new, after=None),
    )
    await agent.say(Restoring(id="r", turn="p1", files=True, conversation=True, changes=changes),
                    blobs=blobs)  # fmt: skip
    (here.root / "b.py").unlink()  # so far it had come
    here.write("a.py", "eins\n2\ndrei\n")  # and then the person typed
    await here.checkpoints.finish(agent.session)
    assert (
        here.files() == {"a.py": "eins\n2\n3\n"} and agent.session.state.history.restoring is None
    )
    await here.checkpoints.finish(agent.session)
    done = await here.checkpoints.restore(agent.session, "r")
    assert done.text == "Do p1" and [f.action for f in done.files] == ["change", "remove"]
    await here.checkpoints.restore(agent.session, "r2", undoes="r")
    assert here.files() == {"a.py": "eins\n2\ndrei\n", "b.py": "new\n"}


async def test_a_running_turn_must_be_cancelled_first(here: Place) -> None:
    agent = await here.session()
    await agent.turn(a_py="1\n")
    turn = await agent.begin()
    with pytest.raises(InvalidRequest, match="cancel it first") as refused:
        await here.checkpoints.restore(agent.session, "r")
    assert refused.value.reason == "busy"
    await agent.end(turn)
    lease = await here.store.lease(agent.session.stream)
    waiting = asyncio.ensure_future(here.checkpoints.restore(agent.session, "r", "p1"))
    while not (held := agent.session.arriving.locked()):
        await asyncio.sleep(0)
    assert held and lease and not waiting.done()
    await here.store.release(lease)
    await waiting
    assert here.files() == {}


async def test_words_for_what_cannot_be(here: Place) -> None:
    agent = await here.session()
    for turn, undoes, message in (
        ("", "", "nothing to undo"), ("nobody", "", "no turn 'nobody'"),
        ("", "never", "no restore 'never'"),
    ):  # fmt: skip
        with pytest.raises((NotFound, InvalidRequest), match=message):
            await here.checkpoints.restore(agent.session, "r", turn, undoes=undoes)
    await agent.turn("Only talk")
    with pytest.raises(InvalidRequest, match="changed no files"):
        await here.checkpoints.restore(agent.session, "r", "p1", conversation=False)
    with pytest.raises(InvalidRequest, match="Choose what"):
        await here.checkpoints.restore(agent.session, "r", files=False, conversation=False)
    await here.checkpoints.restore(agent.session, "r")
    assert len(agent.session.state.conversation.items) == 0
    await here.checkpoints.restore(agent.session, "r2", undoes="r")
    with pytest.raises(InvalidRequest, match="redone already"):
        await here.checkpoints.restore(agent.session, "r3", undoes="r")


async def test_the_same_id_again_is_harmless(here: Place) -> None:
    here.write("a.py", "1\n")
    agent = await here.session()
    await agent.turn(a_py="2\n", b_py="2\n")
    here.write("b.py", "2\nmine\n")
    first, second = await asyncio.gather(
        here.checkpoints.restore(agent.session, "r"), here.checkpoints.restore(agent.session, "r")
    )
    seq = agent.session.state.seq
    assert first.text == second.text == "Do p1" and first.turns == second.turns
    assert [f.path for f in first.files] == [f.path for f in second.files]
    assert await here.checkpoints.restore(agent.session, "r") == second
    assert agent.session.state.seq == seq and here.files() == {"a.py": "1\n", "b.py": "2\nmine\n"}


async def test_who_asked_may_go_away(here: Place) -> None:
    agent = await here.session()
    await agent.turn(a_py="2\n", b_py="2\n")
    asked = asyncio.ensure_future(here.checkpoints.restore(agent.session, "r"))
    while agent.session.state.history.restoring is None:
        await asyncio.sleep(0)
    asked.cancel()
    while agent.session.state.history.restoring is not None:
        await asyncio.sleep(0)
    assert here.files() == {}


async def test_a_copy_of_a_session_takes_back_only_its_own_files(here: Place) -> None:
    agent = await here.session()
    await agent.turn(a_py="1\n")
    await agent.turn(b_py="1\n")
    await here.checkpoints.restore(agent.session, "r")
    fork = Agent(here.root, await here.service.fork("s", "copy", None))
    fork.turns = 2
    await fork.turn(c_py="1\n")
    listed = await here.checkpoints.list(fork.session)
    assert [(p.turn, p.inherited, p.state) for p in listed] == [
        ("p1", True, "applied"), ("p2", True, "undone"), ("p3", False, "applied"),
    ]  # fmt: skip
    done = await here.checkpoints.restore(fork.session, "back", "p1")
    assert here.files() == {"a.py": "1\n"} and done.turns == ("p1", "p3")
    assert len(fork.session.state.conversation.items) == 0
    await here.checkpoints.restore(fork.session, "forth", undoes="back")
    assert here.files() == {"a.py": "1\n", "c.py": "1\n"}
    await here.checkpoints.restore(agent.session, "again", undoes="r")
    assert here.files() == {"a.py": "1\n", "b.py": "1\n", "c.py": "1\n"}


async def test_another_process_sees_it_and_cannot_interfere(
    here: Place, root: Path, tmp_path: Path
) -> None:
    agent = await here.session()
    await agent.turn(a_py="1\n")
    async with place(root, tmp_path / "state") as there:
        twin = await there.session()
        both = await asyncio.gather(
            here.checkpoints.restore(agent.session, "r"),
            there.checkpoints.restore(twin.session, "r"),
        )
        assert both[0].text == both[1].text == "Do p1" and here.files() == {}
        await there.checkpoints.restore(twin.session, "r2", undoes="r")
        await agent.session.refresh()
        assert agent.session.state.conversation.items == twin.session.state.conversation.items
        assert here.files() == {"a.py": "1\n"}


@pytest.mark.parametrize("below", ["e/y", "e/a/b/y"])
async def test_a_file_gets_its_place_back_from_a_directory(here: Place, below: str) -> None:
    here.write("e", "1\n")
    agent = await here.session()
    turn = await agent.begin()
    await agent.call("e", None)
    await agent.call(below, "y\n")
    await agent.end(turn)
    before = await here.checkpoints.preview(agent.session, conversation=False)
    assert [file.conflict for file in before.files] == ["", ""]
    await here.checkpoints.restore(agent.session, "r1", conversation=False)
    assert here.files() == {"e": "1\n"} and (here.root / "e").is_file()
    await here.checkpoints.restore(agent.session, "r2", undoes="r1", conversation=False)
    assert here.files() == {below: "y\n"}


async def test_a_directory_in_which_others_have_files_stays(here: Place) -> None:
    here.write("e", "1\n")
    agent = await here.session()
    turn = await agent.begin()
    await agent.call("e", None)
    await agent.call("e/y", "y\n")
    await agent.call("e/z", "z\n")
    await agent.end(turn)
    here.write("e/z", "mine\n")
    before = await here.checkpoints.preview(agent.session, conversation=False)
    done = await here.checkpoints.restore(agent.session, "r1", conversation=False)
    assert here.files() == {"e/z": "mine\n"}
    for files in (before.files, done.files):
        conflicts = {os.path.basename(file.path): file.conflict for file in files}
        assert conflicts["y"] == "" and conflicts["z"] and "is a directory" in conflicts["e"]
    (here.root / "e/z").unlink()
    (here.root / "e/link").symlink_to(here.root)
    again = await here.checkpoints.restore(agent.session, "r2", "p1", conversation=False)
    assert any("is a directory" in file.conflict for file in again.files)
    (here.root / "e/link").unlink()
    (here.root / "e/empty").mkdir()
    await here.checkpoints.restore(agent.session, "r3", "p1", conversation=False)
    assert here.files() == {"e": "1\n"}


async def test_a_file_goes_back_from_below_its_own_place(here: Place) -> None:
    """By way of another one: a move in which a path lies below the other."""
    here.write("e", "1\n")
    agent = await here.session()
    turn = await agent.begin()
    await agent.move("e", "b")
    await agent.move("b", "e/y")
    await agent.end(turn)
    here.write("e/y", "mine\n1\n")
    await here.checkpoints.restore(agent.session, "r1", conversation=False)
    assert here.files() == {"e": "mine\n1\n"}
    await here.checkpoints.restore(agent.session, "r2", undoes="r1", conversation=False)
    assert here.files() == {"e/y": "mine\n1\n"}
