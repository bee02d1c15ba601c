"""The service: reviews of real files in a real store."""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
from collections.abc import AsyncIterator, Sequence
from functools import partial
from pathlib import Path

import pytest

from magy_server.core.errors import InvalidRequest, NotFound, ToolError
from magy_server.core.events import Finished, Started
from magy_server.core.reviews.review_events import Noted, Reviewed
from magy_server.core.state.state import State
from magy_server.core.steps import End
from magy_server.core.values import Evidence
from magy_server.engine.feature_ports import Features
from magy_server.engine.log import Letter, Letters, Write
from magy_server.engine.perform import Performer
from magy_server.reviews.streams import taken_back
from magy_server.reviews.views import Lines, Which, Wish
from tests.engine.reviewing import Place, process
from tests.engine.running import until
from tests.patience import PATIENCE

BASE = "one\ntwo\nthree\nfour\nfive\nsix\nseven\n"
NEW = "one\nTWO\nthree\nfour\nfive\nsix\nSEVEN\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path.resolve() / "work"
    root.mkdir()
    (root / "a.py").write_text(BASE)
    return root


@pytest.fixture
async def place(root: Path, tmp_path: Path) -> AsyncIterator[Place]:
    async with process(root, tmp_path / "state") as one:
        yield one


async def test_a_change_is_pending_until_it_is_accepted(place: Place) -> None:
    agent = await place.agent()
    await agent.write("a.py", NEW)
    (listed,) = await place.reviews.list(str(place.root))
    assert (listed.status, listed.pending, listed.added, listed.removed, listed.sessions) == (
        "modified", 2, 2, 2, ("s1",)
    )  # fmt: skip
    outcome = await place.decide("accept", "a.py", 0, by="ann")
    assert [state for _, state in outcome.results] == ["accepted"]
    assert await place.hunks("a.py") == [("seven\n", "SEVEN\n")]
    assert [(d.verb, d.by) for d in await place.decisions("a.py")] == [("accept", "ann")]
    assert place.text("a.py") == NEW
    assert await agent.told() == [
        "The user accepted 1 hunk of yours in a.py. Still pending there: 1 hunk of yours."
    ]
    await place.decide("accept", "a.py")
    assert await place.reviews.list(str(place.root)) == []
    assert (await place.reviews.get(place.path("a.py"))).base == NEW


async def test_a_rejection_puts_the_lines_back_and_says_why(place: Place) -> None:
    agent = await place.agent()
    await agent.write("a.py", NEW)
    outcome = await place.decide("reject", "a.py", 1, reason="keep it small")
    assert place.text("a.py") == NEW.replace("SEVEN", "seven")
    assert [hunk.new for hunk in outcome.file.hunks] == ["TWO\n"]
    (told,) = await agent.told()
    assert told == (
        "The user rejected 1 hunk of yours in a.py. Reason: keep it small\n"
        "line 7:\n-seven\n+SEVEN\n"
        "The lines are as they were before. Do not make this change again unless asked. "
        "Still pending there: 1 hunk of yours."
    )


async def test_what_the_person_types_elsewhere_stays_and_is_no_hunk(place: Place) -> None:
    agent = await place.agent()
    place.editor.open(place.root / "a.py")
    await agent.write("a.py", NEW)
    place.editor.type(place.path("a.py"), "zero\n" + NEW.replace("four", "FOUR"))
    file = await place.reviews.get(place.path("a.py"))
    assert [(h.start, h.end, h.base_start, h.amended) for h in file.hunks] == [
        (2, 3, 2, False),
        (7, 8, 7, False),
    ]
    assert file.version == place.editor.buffers[place.path("a.py")].version
    await place.decide("reject", "a.py")
    assert place.editor.buffers[place.path("a.py")].text == "zero\n" + BASE.replace("four", "FOUR")
    assert await place.hunks("a.py") == []


async def test_a_hunk_that_the_person_amends_by_typing_stays_pending(place: Place) -> None:
    agent = await place.agent()
    await agent.write("a.py", NEW)
    place.type("a.py", NEW.replace("TWO", "TWO!"))
    file = await place.reviews.get(place.path("a.py"))
    assert [(h.new, h.amended) for h in file.hunks] == [("TWO!\n", True), ("SEVEN\n", False)]
    assert file.hunks[0].origins[0].session == "s1"
    note = await place.reviews.notes(agent.session.state)
    assert note is not None
    assert note.text == (
        "The user has not judged these changes of yours yet:\n"
        "- a.py: 2 hunks\n  changed after you wrote it; its present text:\nline 2:\n-TWO\n+TWO!"
    )


async def test_a_reminder_is_given_once(place: Place) -> None:
    agent = await place.agent()
    await agent.write("a.py", NEW)
    note = await place.reviews.notes(agent.session.state)
    assert note is not None
    await agent.session.append(lambda now: Write([note]))
    assert await place.reviews.notes(agent.session.state) is None
    await place.decide("accept", "a.py", 0)
    again = await place.reviews.notes(agent.session.state)
    assert again is not None and "1 hunk\n" in again.text + "\n"
    await place.decide("accept", "a.py")
    assert await place.reviews.notes(agent.session.state) is None


async def test_amending_puts_the_text_there_and_decides(place: Place) -> None:
    agent = await place.agent()
    await agent.write("a.py", NEW)
    outcome = await place.decide("amend", "a.py", 0, text="zwei\nund")
    assert [state for _, state in outcome.results] == ["amended"]
    assert place.text("a.py") == NEW.replace("TWO\n", "zwei\nund\n")
    assert await place.hunks("a.py") == [("seven\n", "SEVEN\n")]
    (told,) = await agent.told()
    assert "-TWO\n+zwei\n+und\n" in told
    await place.reviews.undo(outcome.decision)
    assert place.text("a.py") == NEW
    assert await place.hunks("a.py") == [("two\n", "TWO\n"), ("seven\n", "SEVEN\n")]


async def test_lines_of_a_hunk(place: Place) -> None:
    agent = await place.agent()
    await agent.write("a.py", BASE + "x\ny\nz\n")
    wish = Wish("reject", Which(lines=Lines(8, 9)))
    outcome = await place.reviews.resolve(place.path("a.py"), wish)
    assert place.text("a.py") == BASE + "x\nz\n"
    assert [hunk.new for hunk in outcome.file.hunks] == ["x\nz\n"]
    assert (await agent.told())[0].startswith(
        "The user rejected some lines of 1 hunk of yours in a.py.\nline 9:\n+y\n"
        "The lines are as they were before."
    )
    wish = Wish("accept", Which(lines=Lines(7, 8)))
    await place.reviews.resolve(place.path("a.py"), wish)
    assert await place.hunks("a.py") == [("", "z\n")]
    wish = Wish("reject", Which(lines=Lines(8, 9)))
    await place.reviews.resolve(place.path("a.py"), wish)
    assert (await agent.told())[2].startswith("The user rejected 1 hunk of yours in a.py.")


async def test_the_agent_is_told_which_lines_were_replaced(place: Place) -> None:
    agent = await place.agent()
    await agent.write("a.py", "".join(f"{line}!\n" for line in BASE.split()))
    wish = Wish("amend", Which(lines=Lines(1, 3)), text="2\n")
    await place.reviews.resolve(place.path("a.py"), wish)
    assert place.text("a.py").startswith("one!\n2\nfour!\n")
    (told,) = await agent.told()
    assert told.split("\n")[1:5] == ["lines 2-3:", "-two!", "-three!", "+2"]


async def test_an_unknown_hunk_is_never_guessed(place: Place) -> None:
    agent = await place.agent()
    await agent.write("a.py", NEW)
    file = await place.reviews.get(place.path("a.py"))
    wish = Wish("reject", Which(ids=("0123456789ab", file.hunks[0].id)))
    outcome = await place.reviews.resolve(place.path("a.py"), wish)
    assert outcome.results == (("0123456789ab", "stale"), (file.hunks[0].id, "pending"))
    assert outcome.decision == "" and outcome.message
    assert len(outcome.file.hunks) == 2
    assert place.text("a.py") == NEW


async def test_ids_and_revisions(place: Place) -> None:
    agent = await place.agent()
    await agent.write("a.py", NEW)
    first = await place.reviews.get(place.path("a.py"))
    assert (await place.reviews.get(place.path("a.py"))).revision == first.revision
    place.type("a.py", "above\n" + NEW)
    second = await place.reviews.get(place.path("a.py"))
    assert [h.id for h in second.hunks] == [h.id for h in first.hunks]
    assert second.revision != first.revision


async def test_the_same_key_again_is_harmless(place: Place) -> None:
    agent = await place.agent()
    await agent.write("a.py", NEW)
    one = await place.decide("reject", "a.py", 0, key="k1")
    await agent.write("a.py", NEW)
    again = await place.decide("reject", "a.py", 0, key="k1")
    assert (one.known, again.known) == (False, True)
    assert again.results == one.results
    assert place.text("a.py") == NEW
    assert len(await agent.told()) == 1


async def test_comments_stay_with_their_hunk(place: Place) -> None:
    agent = await place.agent()
    await agent.write("a.py", NEW)
    await place.decide("comment", "a.py", 0, text="why not 2?")
    assert (await agent.told())[0].startswith(
        "The user commented on 1 hunk of yours in a.py: why not 2?\nline 2:\n-two\n+TWO\n"
    )
    place.type("a.py", NEW.replace("TWO", "Two"))
    await place.reviews.settle(str(place.root))
    file = await place.reviews.get(place.path("a.py"))
    assert [c.text for c in file.hunks[0].comments] == ["why not 2?"]
    assert file.hunks[1].comments == ()
    with pytest.raises(InvalidRequest):
        await place.decide("comment", "a.py", 0, text=" ")


# --- taking back ----------------------------------------------------------------------------------


async def test_any_decision_can_be_taken_back_and_that_too(place: Place) -> None:
    agent = await place.agent()
    await agent.write("a.py", NEW)
    yes = await place.decide("accept", "a.py", 0)
    no = await place.decide("reject", "a.py")
    assert (place.text("a.py"), await place.hunks("a.py")) == (NEW.replace("SEVEN", "seven"), [])
    place.type("a.py", "zero\n" + place.text("a.py"))
    await place.reviews.undo(yes.decision)
    assert await place.hunks("a.py") == [("two\n", "TWO\n")]
    back = await place.reviews.undo(no.decision)
    assert await place.hunks("a.py") == [("two\n", "TWO\n"), ("seven\n", "SEVEN\n")]
    assert place.text("a.py") == "zero\n" + NEW
    made = [decision.verb for decision in await place.decisions("a.py")]
    assert made == ["accept", "reject", "undo", "undo"]
    assert taken_back(await place.journal("a.py")) == {yes.decision, no.decision}
    assert (await place.reviews.undo(no.decision)).message.endswith("undone already.")
    await place.reviews.undo(back.decision)
    assert place.text("a.py") == "zero\n" + NEW.replace("SEVEN", "seven")
    assert await place.hunks("a.py") == [("two\n", "TWO\n")]
    file = await place.reviews.get(place.path("a.py"))
    assert file.hunks[0].origins[0].session == "s1"
    assert (await agent.told())[-1] == (
        "The user took back a decision (undo) about 1 hunk of yours in a.py. It is as it was "
        "before that decision."
    )


async def test_what_was_changed_since_cannot_be_taken_back_by_itself(place: Place) -> None:
    agent = await place.agent()
    await agent.write("a.py", NEW)
    no = await place.decide("reject", "a.py", 0)
    place.type("a.py", NEW.replace("TWO", "zwei"))
    outcome = await place.reviews.undo(no.decision)
    assert outcome.decision == "" and "changed later" in outcome.message
    assert "zwei" in place.text("a.py")
    with pytest.raises(NotFound):
        await place.reviews.undo("nothing")


# --- files as a whole -----------------------------------------------------------------------------


async def test_a_created_file_is_removed_only_if_nobody_else_wrote_into_it(place: Place) -> None:
    agent = await place.agent()
    await agent.write("new.py", "a\nb\n")
    assert (await place.reviews.list(str(place.root)))[0].status == "created"
    no = await place.decide("reject", "new.py")
    assert not (place.root / "new.py").exists()
    assert (await agent.told())[-1].count("The file is removed.") == 1
    await place.reviews.undo(no.decision)
    assert place.text("new.py") == "a\nb\n"
    place.type("new.py", "a\nmine\nb\n")
    await place.decide("reject", "new.py")
    assert place.text("new.py") == "mine\n"
    assert await place.hunks("new.py") == [], "what is left is the person's"


async def test_an_empty_file_that_an_agent_made(place: Place) -> None:
    agent = await place.agent()
    await agent.write("__init__.py", "")
    file = await place.reviews.get(place.path("__init__.py"))
    assert [(h.kind, h.whole) for h in file.hunks] == [("create", True)]
    await place.decide("reject", "__init__.py")
    assert not (place.root / "__init__.py").exists()
    await agent.write("__init__.py", "")
    await place.decide("accept", "__init__.py")
    assert await place.hunks("__init__.py") == []
    await agent.write("__init__.py", None)
    assert (await place.reviews.get(place.path("__init__.py"))).hunks[0].kind == "remove"
    await place.decide("reject", "__init__.py")
    assert place.text("__init__.py") == ""


async def test_a_deleted_file_comes_back(place: Place) -> None:
    agent = await place.agent()
    os.chmod(place.root / "a.py", 0o755)
    await agent.write("a.py", None, was="executable")
    (listed,) = await place.reviews.list(str(place.root))
    assert (listed.status, listed.removed) == ("deleted", 7)
    await place.decide("reject", "a.py")
    assert place.text("a.py") == BASE
    assert (place.root / "a.py").stat().st_mode & stat.S_IXUSR
    await agent.write("a.py", None, was="executable")
    await place.decide("accept", "a.py")
    assert await place.reviews.list(str(place.root)) == []


async def test_binary_files_are_reviewed_as_a_whole(place: Place) -> None:
    agent = await place.agent()
    (place.root / "x.bin").write_bytes(b"\0\1\2")
    await agent.write("x.bin", b"\0\1\2\3")
    file = await place.reviews.get(place.path("x.bin"))
    assert [(h.kind, h.old, h.new) for h in file.hunks] == [
        ("binary", "a file, 3 bytes that are not text", "a file, 4 bytes that are not text")
    ]
    await place.decide("reject", "x.bin")
    assert (place.root / "x.bin").read_bytes() == b"\0\1\2"
    await agent.write("x.bin", b"\0new")
    (place.root / "x.bin").write_bytes(b"\0mine")
    with pytest.raises(InvalidRequest) as refused:
        await place.decide("reject", "x.bin")
    assert refused.value.reason == "conflict"
    await place.decide("accept", "x.bin")
    assert await place.hunks("x.bin") == []


async def test_executable_bits_and_links(place: Place) -> None:
    agent = await place.agent()
    os.chmod(place.root / "a.py", 0o755)
    await agent.wrote("a.py", BASE.encode(), BASE.encode(), now="executable", via="command",
                      command="chmod +x a.py")  # fmt: skip
    file = await place.reviews.get(place.path("a.py"))
    assert [h.kind for h in file.hunks] == ["mode"]
    assert file.hunks[0].origins[0].command == "chmod +x a.py"
    await place.decide("reject", "a.py")
    assert not (place.root / "a.py").stat().st_mode & stat.S_IXUSR
    (place.root / "link").symlink_to("a.py")
    await agent.wrote("link", None, b"a.py", now="link", via="command")
    file = await place.reviews.get(place.path("link"))
    assert [(h.kind, h.new) for h in file.hunks] == [("create", "a link to a.py")]
    await place.decide("reject", "link")
    assert not (place.root / "link").is_symlink()


async def test_a_moved_file_keeps_its_review_and_goes_back(place: Place) -> None:
    from magy_server.core.values import FileChange
    from tests.engine.reviewing import digest

    agent = await place.agent()
    await agent.write("a.py", NEW)
    (place.root / "a.py").rename(place.root / "b.py")
    more = NEW + "eight\n"
    (place.root / "b.py").write_text(more)
    made = FileChange(path=place.path("b.py"), before=None, after=digest(more.encode()),
                      moved_from=place.path("a.py"))  # fmt: skip
    gone = FileChange(path=place.path("a.py"), before=digest(NEW.encode()), after=None)
    blobs = {digest(text.encode()): text.encode() for text in (NEW, more)}
    await agent.changes(made, gone, blobs=blobs)
    (listed,) = await place.reviews.list(str(place.root))
    assert (listed.path, listed.status, listed.pending) == (place.path("b.py"), "renamed", 3)
    await place.decide("accept", "b.py", 1)
    await place.decide("reject", "b.py")
    assert not (place.root / "b.py").exists()
    assert place.text("a.py") == NEW.replace("SEVEN", "seven")
    assert await place.reviews.list(str(place.root)) == []


async def test_line_ends_and_encodings_stay(place: Place) -> None:
    agent = await place.agent()
    old = "\ufeffeins\r\nzwei\r\ndrei".encode("utf-8")
    (place.root / "dos.txt").write_bytes(old)
    await agent.write("dos.txt", "\ufeffeins\r\nZWEI\r\ndrei".encode())
    outcome = await place.decide("reject", "dos.txt")
    assert (place.root / "dos.txt").read_bytes() == old
    assert (outcome.file.eol, outcome.file.live_ends) == ("\r\n", False)
    (place.root / "latin.txt").write_bytes("a\nsch\xf6n\nb\n".encode("latin-1"))
    await agent.write("latin.txt", "a\nh\xe4\xdflich\nb\n".encode("latin-1"))
    await place.decide("amend", "latin.txt", 0, text="gut\xe9\n")
    assert (place.root / "latin.txt").read_bytes() == "a\ngut\xe9\nb\n".encode("latin-1")


# --- what else happens ----------------------------------------------------------------------------


async def test_two_sessions_in_one_file_are_told_apart(place: Place) -> None:
    one, two = await place.agent("one"), await place.agent("two")
    await one.write("a.py", NEW.replace("SEVEN", "seven"))
    await two.write("a.py", NEW)
    file = await place.reviews.get(place.path("a.py"))
    assert [[o.session for o in h.origins] for h in file.hunks] == [["one"], ["two"]]
    await place.decide("reject", "a.py", reason="no")
    assert [text.split("\n")[1] for text in await one.told()] == ["line 2:"]
    assert [text.split("\n")[1] for text in await two.told()] == ["line 7:"]


async def test_a_session_that_was_deleted_meanwhile(place: Place) -> None:
    one, two = await place.agent("one"), await place.agent("two")
    await one.write("a.py", NEW.replace("SEVEN", "seven"))
    await two.write("a.py", NEW)
    await place.world.store.delete(one.session.stream)
    await place.decide("accept", "a.py")
    assert len(await two.told()) == 1
    assert await place.world.store.head(one.session.stream) == 0
    assert await place.reviews.list(str(place.root)) == []


async def test_a_file_that_goes_away_meanwhile(place: Place) -> None:
    agent = await place.agent()
    await agent.write("a.py", NEW)
    (place.root / "a.py").unlink()
    assert await place.reviews.list(str(place.root)) == []
    await place.reviews.settle(str(place.root))
    (place.root / "a.py").write_text(NEW)
    assert len(await place.hunks("a.py")) == 2, "it came back, as after a change of branches"
    (place.root / "a.py").unlink()
    (place.root / "a.py").mkdir()
    file = await place.reviews.get(place.path("a.py"))
    assert [h.kind for h in file.hunks] == ["binary"]
    with pytest.raises(ToolError):
        await place.decide("reject", "a.py")
    (place.root / "a.py").rmdir()
    (place.root / "a.py").write_bytes(b"\0\1")
    assert [h.kind for h in (await place.reviews.get(place.path("a.py"))).hunks] == ["binary"]


async def test_a_file_that_cannot_be_written_stays_undecided(place: Place) -> None:
    agent = await place.agent()
    await agent.write("a.py", NEW)
    os.chmod(place.root / "a.py", 0o444)
    with pytest.raises(ToolError):
        await place.decide("reject", "a.py")
    assert (await agent.told(), len(await place.hunks("a.py"))) == ([], 2)
    os.chmod(place.root / "a.py", 0o644)
    place.type("a.py", BASE)
    assert await place.hunks("a.py") == []
    assert await agent.told() == [], "the person did that by hand, and was not asked why"


async def test_an_editor_that_refuses_leaves_all_undecided(place: Place) -> None:
    from magy_server.core.errors import EditRefused

    agent = await place.agent()
    await agent.write("a.py", NEW)
    place.editor.open(place.root / "a.py")
    place.editor.refuse = "not now"
    with pytest.raises(EditRefused):
        await place.decide("reject", "a.py")
    assert await agent.told() == []
    place.editor.refuse = ""
    path = place.path("a.py")
    place.editor.before_apply = lambda path: place.editor.type(path, "typed\n" + NEW)
    await place.decide("reject", "a.py")
    assert place.editor.buffers[path].text == "typed\n" + BASE


async def test_a_formatter_that_runs_on_saving_is_the_persons(place: Place) -> None:
    agent = await place.agent()
    await agent.write("a.py", NEW)
    place.editor.open(place.root / "a.py")
    place.editor.on_save = lambda text: "# formatted\n" + text
    await place.decide("reject", "a.py", 0)
    assert place.text("a.py") == "# formatted\n" + NEW.replace("TWO", "two")
    assert await place.hunks("a.py") == [("seven\n", "SEVEN\n")]


async def test_large_files_are_reviewed_as_a_whole(place: Place) -> None:
    agent = await place.agent()
    large = b"x" * 10_000_001
    (place.root / "big.txt").write_bytes(large)
    await agent.wrote("big.txt", b"small\n", large, via="command")
    file = await place.reviews.get(place.path("big.txt"))
    assert [h.kind for h in file.hunks] == ["binary"]
    with pytest.raises(ToolError):
        await place.decide("reject", "big.txt")
    await place.decide("accept", "big.txt")
    assert await place.hunks("big.txt") == []


async def test_modes(root: Path, tmp_path: Path) -> None:
    async with process(root, tmp_path / "state", review="auto") as place:
        await (await place.agent()).write("a.py", NEW)
        assert await place.reviews.list(str(root)) == []
        with pytest.raises(NotFound):
            await place.reviews.get(place.path("a.py"))


async def test_watchers_are_told_of_changes_and_decisions(place: Place) -> None:
    seen: list[list[str]] = []
    end = place.reviews.watch(lambda paths: seen.append(list(paths)))
    agent = await place.agent()
    assert not place.reviews.under(place.path("a.py"))
    await agent.write("a.py", NEW)
    assert place.reviews.under(place.path("a.py"))
    await place.decide("accept", "a.py")
    assert not place.reviews.under(place.path("a.py"))
    assert seen == [[place.path("a.py")]] * 2
    end()
    await agent.write("a.py", BASE)
    assert len(seen) == 2


async def test_navigation_goes_round(place: Place) -> None:
    agent = await place.agent()
    await agent.write("a.py", NEW)
    await agent.write("b.py", "x\n")
    a, b, root = place.path("a.py"), place.path("b.py"), str(place.root)
    go = place.reviews.navigate
    assert await go(root, a, 0, "next") == (a, 1)
    assert await go(root, a, 1, "next") == (a, 6)
    assert await go(root, a, 6, "next") == (b, 0)
    assert await go(root, b, 0, "next") == (a, 1)
    assert await go(root, a, 1, "previous") == (b, 0)
    assert await go(root, "", 0, "next") == (a, 1)
    await place.decide("accept", "a.py")
    await place.decide("accept", "b.py")
    assert await go(root, a, 0, "next") is None


# --- restarts and other processes -----------------------------------------------------------------


async def test_after_a_restart_all_is_there_and_other_differences_are_the_persons(
    root: Path, tmp_path: Path
) -> None:
    async with process(root, tmp_path / "state") as place:
        agent = await place.agent()
        await agent.write("a.py", NEW)
        file = await place.reviews.get(place.path("a.py"))
        yes = await place.decide("accept", "a.py", 0)
    (root / "a.py").write_text("while away\n" + NEW)
    async with process(root, tmp_path / "state") as place:
        again = await place.reviews.get(place.path("a.py"))
        assert [h.id for h in again.hunks] == [file.hunks[1].id]
        assert again.base == "while away\n" + NEW.replace("SEVEN", "seven")
        await place.decide("reject", "a.py")
        await place.reviews.undo(yes.decision)
        assert await place.hunks("a.py") == [("two\n", "TWO\n")]
        assert place.text("a.py") == "while away\n" + NEW.replace("SEVEN", "seven")
        agent = await place.agent()
        assert len(await agent.told()) == 3


async def test_two_processes_decide_at_once(root: Path, tmp_path: Path) -> None:
    async with (
        process(root, tmp_path / "state") as one,
        process(root, tmp_path / "state") as two,
    ):
        agent = await one.agent()
        await agent.write("a.py", NEW)
        heard: list[str] = []
        two.reviews.watch(heard.extend)
        first = [Which(ids=(id,)) for id in await one.ids("a.py")]
        second = [Which(ids=(id,)) for id in await two.ids("a.py")]
        results = await asyncio.gather(
            one.wish("accept", "a.py", first[0]),
            two.wish("reject", "a.py", second[1]),
            one.wish("accept", "a.py", first[0]),
            two.wish("accept", "a.py", second[0]),
        )
        done = [r for r in results if r.decision]
        assert len(done) == 2 and len([r for r in results if r.message]) == 2
        assert root.joinpath("a.py").read_text() == NEW.replace("SEVEN", "seven")
        assert await one.hunks("a.py") == await two.hunks("a.py") == []
        assert len(await agent.told()) == 2
        await until(lambda: heard)


async def test_an_agent_writes_while_the_person_decides(root: Path, tmp_path: Path) -> None:
    """The log gets the agent's change after the decision that already saw it in the file."""
    async with process(root, tmp_path / "state") as place:
        agent = await place.agent()
        await agent.write("a.py", NEW)
        after = NEW.replace("four", "FOUR")
        (root / "a.py").write_text(after)
        await place.decide("reject", "a.py", 0)
        assert await place.hunks("a.py") == [("seven\n", "SEVEN\n")]
        await agent.wrote("a.py", NEW.encode(), after.encode())
        assert await place.hunks("a.py") == [("four\n", "FOUR\n"), ("seven\n", "SEVEN\n")]
        await place.decide("reject", "a.py")
        assert place.text("a.py") == BASE


async def test_what_git_has_committed_is_accepted(place: Place) -> None:
    git = shutil.which("git")
    assert git

    async def run(*words: str) -> None:
        who = {f"GIT_{role}_{what}": "a@b" for role in ("AUTHOR", "COMMITTER")
               for what in ("NAME", "EMAIL")}  # fmt: skip
        who |= {"HOME": str(place.root), "PATH": os.environ["PATH"]}
        done = await asyncio.create_subprocess_exec(
            git, "-C", str(place.root), *words, env=who, stdout=asyncio.subprocess.DEVNULL
        )
        assert await done.wait() == 0

    await run("init", "-q")
    await run("add", ".")
    await run("commit", "-qm", "first")
    agent = await place.agent()
    await agent.write("a.py", NEW)
    await agent.write("b.py", "new\n")
    assert len(await place.reviews.list(str(place.root))) == 2
    place.type("a.py", NEW.replace("SEVEN", "seven"))
    await run("add", ".")
    await run("commit", "-qm", "second")
    place.type("a.py", NEW)
    (listed,) = await place.reviews.list(str(place.root))
    assert (listed.path, listed.pending) == (place.path("a.py"), 1)
    assert await place.hunks("a.py") == [("seven\n", "SEVEN\n")]
    assert sorted(text.partition(" Still")[0] for text in await agent.told()) == [
        f"Committed to git, which counts as accepted: 1 hunk of yours in {name}."
        for name in ("a.py", "b.py")
    ]
    assert [(d.verb, d.by) for d in await place.decisions("a.py")] == [("commit", "git")]


# --- proposals ------------------------------------------------------------------------------------


async def test_a_proposal_changes_nothing_until_it_is_accepted(place: Place) -> None:
    agent = await place.agent()
    await agent.propose("a.py", NEW)
    assert place.text("a.py") == BASE
    (listed,) = await place.reviews.list(str(place.root))
    assert (listed.proposed, listed.pending) == (True, 2)
    proposal = await place.reviews.proposal(place.path("a.py"))
    assert proposal and proposal.data == NEW.encode()
    place.type("a.py", "zero\n" + BASE)
    proposal = await place.reviews.proposal(place.path("a.py"))
    assert proposal and proposal.data == b"zero\n" + NEW.encode()
    file = await place.reviews.get(place.path("a.py"), proposed=True)
    assert [(h.start, h.end) for h in file.hunks] == [(2, 3), (7, 8)]
    yes = await place.decide("accept", "a.py", 0, proposed=True)
    assert place.text("a.py") == "zero\n" + BASE.replace("two", "TWO")
    await place.decide("reject", "a.py", proposed=True, reason="no")
    assert place.text("a.py") == "zero\n" + BASE.replace("two", "TWO")
    assert await place.reviews.proposal(place.path("a.py")) is None
    told = await agent.told()
    assert told[0].startswith("The user accepted 1 hunk that you proposed for a.py: they are")
    assert "It was not applied." in told[1]
    await place.reviews.undo(yes.decision)
    assert place.text("a.py") == "zero\n" + BASE
    assert await place.hunks("a.py", proposed=True) == [("two\n", "TWO\n")]


async def test_a_proposal_grows_and_follows(place: Place) -> None:
    agent = await place.agent()
    await agent.propose("a.py", NEW)
    place.type("a.py", BASE.replace("four", "FOUR"))
    proposal = await place.reviews.proposal(place.path("a.py"))
    assert proposal and proposal.data
    now = proposal.data.decode()
    assert now == NEW.replace("four", "FOUR")
    await agent.propose("a.py", now + "eight\n")
    file = await place.reviews.get(place.path("a.py"), proposed=True)
    assert [(h.old, h.new) for h in file.hunks] == [
        ("two\n", "TWO\n"), ("seven\n", "SEVEN\neight\n"),
    ]  # fmt: skip
    await place.decide("accept", "a.py", proposed=True)
    assert place.text("a.py") == now + "eight\n"
    assert await place.reviews.list(str(place.root)) == []


async def test_a_conflict_of_a_proposal_overwrites_nothing(place: Place) -> None:
    agent = await place.agent()
    await agent.propose("a.py", NEW)
    place.type("a.py", BASE.replace("two", "zwei"))
    file = await place.reviews.get(place.path("a.py"), proposed=True)
    assert [(h.state, h.old, h.new) for h in file.hunks] == [
        ("conflict", "zwei\n", "TWO\n"), ("pending", "seven\n", "SEVEN\n"),
    ]  # fmt: skip
    outcome = await place.decide("accept", "a.py", proposed=True)
    assert [state for _, state in outcome.results] == ["conflict", "accepted"]
    assert place.text("a.py") == BASE.replace("two", "zwei").replace("seven", "SEVEN")
    assert [h.state for h in outcome.file.hunks] == ["conflict"]
    await place.decide("amend", "a.py", 0, proposed=True, text="ZWEI")
    assert place.text("a.py") == BASE.replace("two", "ZWEI").replace("seven", "SEVEN")
    assert await place.reviews.list(str(place.root)) == []


async def test_proposals_of_whole_files(place: Place) -> None:
    agent = await place.agent()
    await agent.propose("new.py", "a\n")
    await agent.propose("a.py", None)
    assert {one.status for one in await place.reviews.list(str(place.root))} == {
        "created", "deleted",
    }  # fmt: skip
    yes = await place.decide("accept", "new.py", proposed=True)
    await place.decide("accept", "a.py", proposed=True)
    assert place.text("new.py") == "a\n" and not (place.root / "a.py").exists()
    await place.reviews.undo(yes.decision)
    assert not (place.root / "new.py").exists()
    await place.decide("reject", "new.py", proposed=True)
    assert await place.reviews.list(str(place.root)) == []
    await agent.propose("new.py", "agent's\n")
    place.type("new.py", "mine\n")
    outcome = await place.decide("accept", "new.py", proposed=True)
    assert [state for _, state in outcome.results] == ["conflict"]
    assert place.text("new.py") == "mine\n"


async def test_the_journal_keeps_the_text_before_each_decision(place: Place) -> None:
    agent = await place.agent()
    await agent.write("a.py", NEW)
    await place.decide("reject", "a.py", 0)
    events = [entry.event for entry in await place.journal("a.py")]
    kept = [(e.decision.verb, e.decision.intent) for e in events
            if isinstance(e, Reviewed) and e.decision]  # fmt: skip
    assert kept == [("reject", True), ("reject", False)]


async def test_a_decision_between_a_change_and_its_entry_is_kept(
    root: Path, tmp_path: Path
) -> None:
    """The log of the review moves on while a call ends: what it changed is worked out anew."""
    async with (
        process(root, tmp_path / "state") as one,
        process(root, tmp_path / "state") as two,
    ):
        agent = await one.agent()
        await agent.write("a.py", NEW)
        racing = True

        def overtaken(state: State, write: Write) -> Letters | None:
            found = one.reviews.along(state, write)
            return partial(overtake, found) if found else None

        async def overtake(working: Letters) -> Sequence[Letter]:
            nonlocal racing
            made = await working()
            if racing:
                racing = False
                await two.decide("accept", "a.py", 0)
            return made

        one.sessions.companions[:] = [overtaken]
        call, finished, blobs = await agent.called("a.py", NEW.replace("four", "FOUR"))
        performer = Performer(agent.session, one.world, Features(one.reviews))
        await performer._append((finished, blobs), 0.0, ())
        assert agent.session.state.turn is not None
        assert agent.session.state.turn.calls[call].finished
        assert await two.hunks("a.py") == [("four\n", "FOUR\n"), ("seven\n", "SEVEN\n")]
        assert [decision.verb for decision in await two.decisions("a.py")] == ["accept"]
        assert len(await agent.told()) == 1


async def test_others_append_while_a_review_is_worked_out(place: Place) -> None:
    agent = await place.agent()
    _, finished, blobs = await agent.called("a.py", NEW)
    working, going = asyncio.Event(), asyncio.Event()

    def slow(state: State, write: Write) -> Letters | None:
        found = place.reviews.along(state, write)
        return partial(wait, found) if found else None

    async def wait(letters: Letters) -> Sequence[Letter]:
        working.set()
        await going.wait()
        return await letters()

    place.sessions.companions[:] = [slow]
    ending = asyncio.create_task(agent.session.append(lambda now: Write([finished], blobs)))
    await working.wait()
    async with asyncio.timeout(PATIENCE):
        await agent.session.append(lambda now: Write([Noted(id="n", text="Meanwhile.")]))
    assert not ending.done()
    going.set()
    assert [entry.event for entry in await ending] == [finished]
    assert await place.hunks("a.py") == [("two\n", "TWO\n"), ("seven\n", "SEVEN\n")]


async def test_a_call_that_is_stopped_after_it_wrote_is_under_review(place: Place) -> None:
    agent = await place.agent()
    call, finished, blobs = await agent.called("a.py", NEW)
    started = Started(call=call, evidence=Evidence(changes=finished.changes))
    await agent.session.append(lambda now: Write([started], blobs))
    await Performer(agent.session, place.world, Features(place.reviews)).end(End("cancelled"))
    assert await place.hunks("a.py") == [("two\n", "TWO\n"), ("seven\n", "SEVEN\n")]
    ended = [item for item in agent.session.state.conversation.items if isinstance(item, Finished)]
    assert [item.status for item in ended] == ["cancelled"]
    assert ended[0].for_model.endswith(f"Changed before that: {place.path('a.py')}")
    assert agent.session.state.turn is None


async def test_a_call_that_is_stopped_before_it_wrote_changed_nothing(place: Place) -> None:
    agent = await place.agent()
    call, finished, blobs = await agent.called("a.py", NEW)
    started = Started(call=call, evidence=Evidence(changes=finished.changes))
    await agent.session.append(lambda now: Write([started], blobs))
    place.type("a.py", BASE)
    await Performer(agent.session, place.world, Features(place.reviews)).end(End("cancelled"))
    assert await place.reviews.list(str(place.root)) == []
