"""New texts that leave something out in words are refused, in every format; comments of that kind
that the text had before are lines like any other."""

from __future__ import annotations

import json

import pytest

from magy_server.edits.formats import parse
from magy_server.edits.model import EditError, Hunk
from magy_server.edits.placing.omission import leaves_out, omission
from magy_server.edits.plan import plan, plan_text
from magy_server.edits.rebasing.diff import apply
from magy_server.edits.selection import Rewrite

SAYING = """
// ... rest of the code ...
# unchanged
# same as before
# (rest unchanged)
// keep existing implementation
# [existing code]
<!-- existing content -->
// ...
/* ... */
{/* existing JSX */}
// The rest of the function remains unchanged.
...existing code...
# … existing code …
// [... existing code ...]
// Rest of the implementation remains the same...
-- rest of the query unchanged
% rest of the document
(* ... rest of the module ... *)
{- ... existing code ... -}
--[[ rest of code ]]
{# existing content #}
{{!-- existing content --}}
<%-- rest of the page --%>
@* existing markup *@
' ... rest of code
REM rest of the script unchanged
;; ... existing code ...
// other methods remain the same
// no changes here
# keep the rest of the file as is
# everything else stays the same
# code omitted for brevity
# --- rest of the code unchanged ---
[rest of the code]
function foo() { /* ... */ }
function foo() { // ... existing code ...
pass  # existing code
// TODO: rest of the code
# rest of main()
""".strip().split("\n")

OTHERS = """
# handle existing users
# unchanged files are skipped
#[derive(...)]
## Unchanged
* unchanged
- everything else is unchanged
\"\"\"Same as before.\"\"\"
" ...",
for line in lines:  # the rest of the file
x = 1  # unchanged
# other options
// other methods
//        ...other._def.shape,
(...args) => x
{...rest}
<Foo {...rest} />
const {a, ...rest} = x;
# skip the rest of the line
# keep existing connections alive
# read the rest of the file
# Unchanged since 2019
// Insert the code here
// existing file
# leave it as is, see #12
""".strip().split("\n")


@pytest.mark.parametrize("line", SAYING)
def test_what_stands_for_code(line: str) -> None:
    assert leaves_out(line, shorter=False)
    assert omission(["a", "b"], ["x", "y", f"    {line}"], []) == line


@pytest.mark.parametrize("line", OTHERS)
def test_what_does_not(line: str) -> None:
    assert not leaves_out(line)


def test_the_end_of_a_sentence_is_none() -> None:
    new = ["/// Strips `prefix` from `path`, otherwise returns it", "/// unchanged.", "fn f() {}"]
    assert omission(["a", "b"], new, []) is None
    assert omission(["a", "b"], ["/// Strips it.", *new[1:]], []) == "/// unchanged."
    assert omission(["a", "b", "c", "d"], new, []) == "/// unchanged."  # of what is gone
    new = ["/* A parser should never do this before imports */", "/* unchanged */", "f();"]
    assert omission(["a", "b"], new, []) == "/* unchanged */"


TEXT = "def f():\n    a = 1\n    b = 2\n    return a + b\n\n\ndef g():\n    return f()\n"


@pytest.mark.parametrize("line", ["    # ... rest of the code ...", "    # unchanged", "    # ..."])
def test_a_whole_text_that_leaves_something_out(line: str) -> None:
    new = f"def f():\n    a = 3\n{line}\n"
    (failure,) = plan_text(TEXT, new).failures
    assert failure.code == "placeholder"
    assert "in full, or send an edit with only the lines that change" in failure.message
    (failure,) = plan_text(f"# typed\n{TEXT}", new, TEXT).failures
    assert failure.code == "placeholder"
    assert not plan_text("", new).failures  # there is nothing that it could stand for


def test_a_whole_text_keeps_the_comments_it_has() -> None:
    text = TEXT.replace("    b = 2", "    # unchanged\n    b = 2\n    # ...")
    new = text.replace("a = 1", "a = 3")
    assert apply(text, plan_text(text, new).changes) == new
    (failure,) = plan_text(text, f"{new}    # unchanged\n").failures
    assert failure.code == "placeholder"


OLD, NEW = "    a = 1\n    b = 2\n", "    a = 3\n    # unchanged\n"
SIGNED = "-    a = 1\n-    b = 2\n+    a = 3\n+    # unchanged\n"


@pytest.mark.parametrize(
    ("kind", "edit"),
    [
        ("str_replace", json.dumps({"path": "f.py", "old_str": OLD, "new_str": NEW})),
        ("aider", f"f.py\n<<<<<<< SEARCH\n{OLD}=======\n{NEW}>>>>>>> REPLACE\n"),
        ("v4a", f"*** Begin Patch\n*** Update File: f.py\n@@\n{SIGNED}*** End Patch\n"),
        ("unified", f"--- f.py\n+++ f.py\n@@ -2,2 +2,2 @@\n{SIGNED}"),
    ],
)
def test_in_every_format(kind: str, edit: str) -> None:
    (found,) = parse(kind, edit)
    (failure,) = plan(TEXT, found.hunks).failures
    assert failure.code == "placeholder"
    assert "`# unchanged`" in failure.message


def test_a_comment_that_old_has_may_stay() -> None:
    text = TEXT.replace("    b = 2", "    # ... rest of the code ...\n    b = 2")
    old = "    a = 1\n    # ... rest of the code ...\n"
    found = plan(text, [Hunk(old, old.replace("1", "3"), lines=True)])
    assert apply(text, found.changes) == text.replace("a = 1", "a = 3")
    taken = Hunk("    b = 2\n", "    # ... rest of the code ...\n", lines=True)
    assert plan(text, [taken]).failures[0].code == "placeholder"


def test_dots_alone_are_the_body_of_a_stub() -> None:
    old = ["def f():", "    a = 1", "    return a", ""]
    assert omission(old, ["def f():", "    ..."], []) is None
    assert omission(old, ["def f():", "    # ..."], []) == "# ..."


def test_a_selection_is_rewritten_in_full() -> None:
    start, end = TEXT.index("    a = 1"), TEXT.index("\n\ndef g")
    with pytest.raises(EditError, match="has a placeholder"):
        Rewrite(TEXT, (start, end)).fitted("    a = 3\n    # ... existing code ...\n")
    assert Rewrite(TEXT, (start, end)).fitted("    a = 3\n") == "    a = 3\n"
