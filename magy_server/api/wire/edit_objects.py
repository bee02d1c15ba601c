"""`magy/edit/preview` and `magy/edit/apply` take an edit as `text`, in any format of the [edit
engine](howto/edit.md#formats), or as `edits`, a list of objects, each in one of these forms:

```json edits
{"path": "app.py", "old_text": "'hello'", "new_text": "'good morning'"}
{"path": "app.py", "old_text": "greet", "new_text": "hail", "replace_all": true}
{"path": "app.py", "insert": {"line": 0, "text": "import sys"}}
{"path": "app.py", "insert": {"after": "def greet():", "text": "    print('greeting')"}}
{"path": "notes.txt", "content": "The whole text of the file.\\n"}
{"path": "notes.txt", "command": "create", "content": "The text of a file that must be new.\\n"}
{"path": "notes.txt", "command": "delete"}
{"path": "app.py", "edits": [{"old_text": "'hello'", "new_text": "'hi'"}]}
```

`path` is relative to `cwd`; it may be left out where `uri` names the file. `old_text` has to be
found in one place, unless `replace_all` is set; it may differ in blanks and quotes, and `notes` of
the result then say how it was found. All objects together are one edit: all of it is made, or
nothing. The names that other tools use (`old_str`, `oldString`, `search`, ...) are understood, too.
"""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class EditObject(BaseModel):
    """Its names are those of the edit tools of models, not those of the wire."""

    model_config = ConfigDict(extra="forbid")


class Replacement(EditObject):
    path: str = ""
    old_text: str
    new_text: str
    replace_all: bool = Field(default=False, description="Replace it wherever it stands")
    line: int | None = Field(
        default=None, ge=1, description="About where `old_text` begins, from 1: a hint"
    )


class Insertion(EditObject):
    """Whole lines. Exactly one of `line` and `after` says where."""

    line: int | None = Field(default=None, ge=0, description="After this line; 0: at the beginning")
    after: str | None = Field(default=None, description="After these lines")
    text: str


class InsertObject(EditObject):
    path: str = ""
    insert: Insertion


class WholeFile(EditObject):
    path: str = ""
    content: str
    command: Literal["create", "write"] = Field(
        default="write", description="create: refused if the file exists"
    )


class Removal(EditObject):
    path: str = ""
    command: Literal["delete"]


class EditList(EditObject):
    path: str = ""
    edits: list[Replacement | InsertObject]


OBJECTS = (Replacement, InsertObject, Insertion, WholeFile, Removal, EditList)
