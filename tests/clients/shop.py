"""The project, and the model's words, of whole days in a real editor."""

from __future__ import annotations

import json

PRICES = """\
def net(price):
    return price


def gross(price):
    return price * 1.19


def label(name):
    return name


def total(prices):
    return sum(prices)
"""
TYPED = "# typed while it worked"
_NET = "def net(price):\n    return price\n"
_NEW_NET = "def net(price):\n    return round(price, 2)\n"
_NEW_TOTAL = """\
def total(prices):
    # the sum of all of them, in the order that they came
    return round(sum(prices), 2)
"""


def edit(old: str, new: str, path: str = "prices.py") -> str:
    """A step's call of `edit_file`."""
    arguments = {"path": path, "old_text": old, "new_text": new}
    return f"call: edit_file {json.dumps(arguments)}\n"


def script(thinking: float) -> str:
    """The model's script. Before it makes its three changes the model thinks for so many seconds:
    as long as a person in this editor needs to begin to type."""
    return f"""\
prompt: tidy the prices
think: The file first.
text: I look at **prices.py**.
call: read_file {{"path": "prices.py"}}
---
text: Old results must go.
call: bash {{"command": "rm -rf build"}}
---
text: Three changes.
delay: {thinking}
{edit(_NET, _NEW_NET)}
{edit("price * 1.19", "round(price * 1.19, 2)")}
{edit("    return name", "    return name.strip()")}
---
text: The prices are tidy.

prompt: shout
text: I make it loud.
{edit("sum(prices)", "sum(prices)  # TOTAL")}
---
text: It shouts.

prompt: tell me a long story
text: Once upon a time there was a price.
call: read_file {{"path": "prices.py"}}
---
text: And it lived.
call: bash {{"command": "touch told"}}
---
text: That was the story.

prompt: in one line
delay: 0.2
speed: 40
call: replace_selection {json.dumps({"text": _NEW_TOTAL})}
"""
