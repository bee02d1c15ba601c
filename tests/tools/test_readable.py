"""HTML to markdown, also of pages that mean harm."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from magy_server.core.errors import ToolError
from magy_server.tools.shell import capture
from magy_server.tools.web import decoding, readable
from magy_server.tools.web.decoding import from_html

BASE = "https://example.org/docs/start/"
SENTENCE = "A sentence that is long enough to be taken for the content of a page. " * 4


def text(body: str) -> str:
    return readable.page(f"<html><body>{body}</body></html>", BASE)["text"]


def test_a_page_as_a_reader_wants_it() -> None:
    html = f"""<!doctype html><html><head><title> The\n title </title>
      <style>p {{ color: red }}</style><script>var secret = 1</script></head><body>
      <header><a href="/">Home</a></header><nav><a href="/other">Elsewhere</a></nav>
      <main><h1>Heading &amp; more</h1><p>{SENTENCE}See <a href="../next.html?a=1#part">the next
      page</a> or <a href="//cdn.example/x">that</a>.</p>
      <ul><li>one</li><li>two <ol><li>deep</li></ol></li></ul>
      <pre><code class="language-python">def f(x):
    return x * 2 &lt; 3_4
</code></pre>
      <table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>
      <img src="cat.png" alt="A cat"></main><footer>Imprint</footer></body></html>"""
    found = readable.page(html, BASE)
    assert found["title"] == "The title"
    assert found["text"] == "\n".join(
        [
            "# Heading & more", "",
            f"{SENTENCE}See [the next\npage](https://example.org/docs/next.html?a=1#part) or "
            "[that](https://cdn.example/x).", "",
            "- one", "- two", "  1. deep", "",
            "```python", "def f(x):", "    return x * 2 < 3_4", "```", "",
            "| a | b |", "| --- | --- |", "| 1 | 2 |", "",
            "[image: A cat]",
        ]
    )  # fmt: skip


@pytest.mark.parametrize(
    "hidden",
    [
        "<script>IGNORE</script>",
        "<style>IGNORE</style>",
        "<noscript>IGNORE</noscript>",
        "<!-- IGNORE -->",
        "<p hidden>IGNORE</p>",
        "<p style='color: red; DISPLAY : none'>IGNORE</p>",
        "<div style='visibility:hidden'><p>IGNORE</p></div>",
        "<span aria-hidden='true'>IGNORE</span>",
        "<template><p>IGNORE</p></template>",
        "<svg><text>IGNORE</text></svg>",
        "<iframe srcdoc='IGNORE'>IGNORE</iframe>",
        "<textarea>IGNORE</textarea>",
        "<p title='IGNORE' data-x='IGNORE'></p>",
        "<input value='IGNORE'>",
    ],
)
def test_what_nobody_sees_is_dropped(hidden: str) -> None:
    assert text(f"<p>before</p>{hidden}<p>after</p>") == "before\n\nafter"


@pytest.mark.parametrize(
    ("link", "shown"),
    [
        ('<a href="javascript:alert(1)">x</a>', "x"),
        ('<a href="data:text/html,hi">x</a>', "x"),
        ('<a href="#part">x</a>', "x"),
        ("<a>x</a>", "x"),
        ('<a href="http://[broken">x</a>', "x"),
        ('<a href="mailto:me@example.org">x</a>', "[x](mailto:me@example.org)"),
        ('<a href=" /a b ">x</a>', "[x](https://example.org/a%20b)"),
        (f'<a href="/{"a" * 3000}">x</a>', "x"),
        ('<img src="data:image/png;base64,AAAA">', ""),
    ],
)
def test_links_lead_somewhere_or_are_words(link: str, shown: str) -> None:
    assert text(f"<p>see {link}</p>") == f"see {shown}".strip()


def test_base_elements_and_code_languages() -> None:
    page = '<html><head><base href="/v2/"></head><body><a href="a">x</a></body></html>'
    assert readable.page(page, BASE)["text"] == "[x](https://example.org/v2/a)"
    sphinx = (
        '<div class="highlight-rust notranslate"><div class="highlight"><pre>x</pre></div></div>'
    )
    assert text(sphinx) == "```rust\nx\n```"
    assert text('<div class="highlight-default"><pre>x</pre></div>') == "```\nx\n```"


def test_main_content_only_where_it_is_the_content() -> None:
    assert text(f"<p>{SENTENCE}</p><main></main>") == SENTENCE.strip()
    assert "more words" in text(f"<p>{SENTENCE * 9}</p><main>x</main><p>more words</p>")
    one = text(f"<nav>menu</nav><article>{SENTENCE}</article><div>comments</div>")
    assert one == SENTENCE.strip()
    several = text("".join(f"<article>{n} {SENTENCE}</article>" for n in (1, 2)))
    assert several.count(SENTENCE.strip()) == 2
    assert text("<form><p>The whole page is a form.</p></form>") == "The whole page is a form."
    assert text("<nav>menu</nav><p>Hello.</p><footer>end</footer>") == "Hello."


def test_no_title_and_no_text() -> None:
    assert readable.page("<h1>Only a heading</h1>", BASE)["title"] == "Only a heading"
    assert readable.page("", BASE) == {"title": "", "text": ""}
    assert readable.page("<html><div id=root></div><script>go()</script>", BASE)["text"] == ""
    assert readable.page("just words", BASE)["text"] == "just words"
    assert readable.page('<body style="display:none">shown by a script</body>', BASE)["text"]


@pytest.mark.parametrize(
    "unit",
    ["<div>", "<ul><li>", "<blockquote>", "<b></i>", "<table><tr><td colspan=1000>", "<a href=x>"],
)
def test_nonsense_is_read_in_bounded_depth(unit: str) -> None:
    found = readable.page(unit * 10_000 + "the end", BASE)["text"]
    assert "the end" in found and len(found) <= readable.TEXT


def ask(asked: object) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-P", readable.__file__]
    return subprocess.run(command, input=json.dumps(asked).encode(), capture_output=True)


def test_the_program_reads_one_page() -> None:
    done = ask({"what": "page", "html": "<h1>\u00e4\U0001f600</h1>", "base": BASE})
    assert json.loads(done.stdout) == {"title": "\u00e4\U0001f600", "text": "# \u00e4\U0001f600"}
    assert ask({"what": "os.system", "html": "", "base": ""}).returncode != 0


async def test_a_page_that_would_take_long_is_given_up() -> None:
    """This one takes ten seconds; with a parser of Python's that is not mended, unfinished comments
    would take hours."""
    with pytest.raises(ToolError, match="too large or too unusual"):
        await from_html("page", "<b>x</b>" * 250_000, BASE, seconds=0.5)


async def test_the_program_does_not_see_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "secret")
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    said = bytearray()

    def take(data: bytes) -> bool:
        said.extend(data)
        return False

    argv = [sys.executable, "-c", "import json, os; print(json.dumps(dict(os.environ)))"]
    assert await capture.ask(argv, take, passed=decoding.PYTHON) == (0, b"")
    seen = json.loads(said)
    assert "SOME_API_KEY" not in seen and seen["PYTHONPATH"] == "/somewhere"


RESULT = """<div class="result results_links results_links_deep {more}">
  <h2 class="result__title"><a rel="nofollow" class="result__a" href="{href}">{title}</a></h2>
  <a class="result__snippet" href="{href}">Words about <b>{title}</b>.</a></div>"""


def redirect(url: str) -> str:
    return f"//duckduckgo.com/l/?uddg={url}&amp;rut=0123"


def test_results_are_found_and_redirects_followed() -> None:
    html = "".join(
        [
            RESULT.format(
                more="result--ad", href=redirect("https%3A%2F%2Fad.example%2F"), title="Ad"
            ),
            RESULT.format(
                more="web-result",
                href=redirect("https%3A%2F%2Fa.example%2Fb%3Fc%3Dd%26e"),
                title="A",
            ),
            RESULT.format(more="web-result", href="https://b.example/", title="B"),
            RESULT.format(more="", href=redirect("javascript%3Aalert"), title="C"),
            RESULT.format(more="", href="//duckduckgo.com/y.js?ad_domain=x", title="D"),
        ]
    )
    found = readable.results(html, "https://html.duckduckgo.com/html/?q=x")
    assert found["state"] == "found"
    assert found["results"] == [
        {"title": "A", "url": "https://a.example/b?c=d&e", "snippet": "Words about A."},
        {"title": "B", "url": "https://b.example/", "snippet": "Words about B."},
    ]


@pytest.mark.parametrize(
    ("html", "state"),
    [
        ('<div class="result result--no-result"><div class="no-results">No results.</div>', "none"),
        ('<div class="anomaly-modal__title">Unfortunately, bots use DuckDuckGo too.', "challenge"),
        ('<form id="challenge-form" action="//duckduckgo.com/anomaly.js?x">', "challenge"),
        ("<h1>A new design</h1>", "unknown"),
        ("", "unknown"),
    ],
)
def test_a_page_without_results_says_why(html: str, state: str) -> None:
    assert readable.results(html, BASE) == {"state": state, "results": []}
