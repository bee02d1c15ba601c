"""What is said of wrong parameters: in the words of the wire, not in those of a library."""

from __future__ import annotations

from typing import Any

import pytest

from magy_server.api.wire import children as child_wire
from magy_server.api.wire.shapes import parsed
from magy_server.core.errors import InvalidRequest

TEXT = {"type": "text", "text": "x"}
NAMES = "may have only letters, digits, `.`, `_`"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"requestKey": "a/b"}, f"requestKey {NAMES} and `-`"),
        ({"requestKey": ""}, "requestKey must not be empty"),
        ({"requestKey": "x" * 61}, "requestKey may have at most 60 characters, not 61"),
        ({"requestKey": 5}, "requestKey must be a string"),
        ({"requestKey": "1.0"}, "requestKey is refused: a number, a dot and a number name the "
         "children of calls; add a letter"),
        ({"parentSessionId": "-"}, f"parentSessionId {NAMES}, `:`, `/` and `-`, the first a letter "
         "or digit"),
        ({"name": "x" * 81}, "name may have at most 80 characters, not 81"),
        ({"context": "some"}, 'context must be "none" or "all", or be an object'),
        ({"context": {"turns": 0}}, "context.turns must be 1 or more"),
        ({"limits": {"requests": 10**30}}, "limits.requests must be 1,000,000,000 or less"),
        ({"limits": {"requests": 1e30}}, "limits.requests must be a whole number"),
        ({"limits": {"requests": True}}, "limits.requests must be a whole number"),
        ({"limits": {"cost": "1"}}, "limits.cost must be a number"),
        ({"limits": []}, "limits must be an object"),
        ({"permissions": {"bash": "maybe"}},
         'permissions.bash must be "allow", "ask" or "deny", or be an object'),
        ({"permissions": {"bash": {"*": 1}}},
         'permissions.bash.* must be "allow", "ask" or "deny"'),
        ({"prompt": []}, "prompt must not be empty"),
        ({"prompt": [TEXT, {"type": "sound"}]}, "prompt.1 has type 'sound'; known are 'text', "
         "'resource_link', 'resource', 'image'"),
        ({"prompt": [{"text": "x"}]}, "prompt.0 needs a `type`"),
        ({"prompt": [{"type": "text"}]}, "prompt.0.text is missing"),
        ({"prompt": [{"type": "resource", "resource": {"uri": "u"}}]},
         "prompt.0.resource.text is missing"),
        ({"agnet": "plan", "name": None}, "name must be a string; agnet is not "
            "known here"),
    ],
)  # fmt: skip
def test_each_is_one_plain_sentence(given: dict[str, Any], said: str) -> None:
    params = {"parentSessionId": "s", "requestKey": "k", "prompt": [TEXT], **given}
    with pytest.raises(InvalidRequest) as error:
        parsed(child_wire.ChildSpawnParams, params, "magy/child/spawn")
    assert error.value.message == f"magy/child/spawn: {said}. See docs/protocol.md."


def test_many_are_named_but_not_all() -> None:
    with pytest.raises(InvalidRequest) as error:
        parsed(child_wire.ChildSpawnParams, {f"x{n}": n for n in range(9)}, "m")
    assert error.value.message.count(";") == 4
