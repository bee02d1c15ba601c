"""This separate program turns HTML into what a reader wants of it, as markdown.

Pages are hostile at times: a few megabytes of nonsense can occupy an HTML parser for hours. So a
process of its own reads them, which limits its own time and memory and can be ended. `main` takes
one JSON object on standard input and writes one; it needs nothing of Magy.
"""

from __future__ import annotations

import json
import re
import resource
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, quote, urljoin, urlsplit

from magy_server.regex import regex

if TYPE_CHECKING:
    from bs4 import BeautifulSoup, Tag

HTML = 2_000_000
"""Characters of a page that are parsed."""
TEXT = 1_000_000
"""Characters of text that are kept of it."""
DEPTH = 60
"""Elements within elements; what lies deeper keeps its words and loses its shape."""
CPU_SECONDS = 20
MEMORY = 2 << 30

_DROPPED = (
    "script", "style", "noscript", "template", "svg", "math", "iframe", "object", "embed",
    "canvas", "audio", "video", "map", "link", "meta", "base", "head", "input", "button", "select",
    "textarea", "dialog", "frame", "frameset", "title",
)  # fmt: skip
_AROUND = ("nav", "aside", "footer", "header", "form", "menu")
_AROUND_ROLES = ("navigation", "banner", "contentinfo", "search", "complementary")
_HIDDEN = regex(r"(?:display\s*:\s*none|visibility\s*:\s*hidden)", re.IGNORECASE)
_LANGUAGE = regex(
    r"\b(?:(?:language|lang|highlight-source|highlight)-|brush:\s*)([\w+#.]+)", re.IGNORECASE
)
_ENOUGH = 200
"""Characters that make an element the main content of a page, if there is less of it elsewhere."""


def page(html: str, base: str) -> dict[str, str]:
    """Title and text of a page; `base` is its URL, for the links in it."""
    soup = _soup(html)
    title = _line(soup.title.get_text()) if soup.title else ""
    if found := soup.find("base", href=True):
        base = urljoin(base, str(found["href"]))
    _drop(soup)
    _flatten(soup)
    main = _main(soup)
    for tag in main.find_all(True):
        _simplify(tag, base)
    text = _markdown(main)
    if not title and (heading := main.find("h1")):
        title = _line(heading.get_text())
    return {"title": title[:300], "text": text[:TEXT]}


def results(html: str, base: str) -> dict[str, Any]:
    """The results of DuckDuckGo's HTML page. `state` is "found", "none" (the page says that there
    are none), "challenge" (it wants a human) or "unknown" (it is some other page)."""
    soup = _soup(html)
    found = []
    for block in soup.select(".result"):
        link = block.select_one("a.result__a[href]")
        if link is None or "result--ad" in _classes(block):
            continue
        url = _aim(urljoin(base, str(link["href"])))
        if not url or _aim(url) != url:
            continue
        snippet = block.select_one(".result__snippet")
        text = _line(snippet.get_text()) if snippet else ""
        found.append({"title": _line(link.get_text()), "url": url, "snippet": text[:500]})
    if found:
        return {"state": "found", "results": found}
    if soup.select_one(".no-results, .result--no-result"):
        return {"state": "none", "results": []}
    words = html.lower()
    signs = ("anomaly-modal", "challenge-form", "anomaly.js", "bots use duckduckgo too")
    return {"state": "challenge" if any(s in words for s in signs) else "unknown", "results": []}


def _aim(url: str) -> str:
    """Where a link of the results page leads: its own redirects are followed, its advertisements
    and whatever is no web page give ""."""
    parts = urlsplit(url)
    if parts.path.rstrip("/") in ("/l", "/html/l") and "uddg=" in parts.query:
        return parse_qs(parts.query).get("uddg", [""])[0]
    if parts.scheme not in ("http", "https") or parts.path == "/y.js":
        return ""
    return url


# --- the tree -------------------------------------------------------------------------------------


def _soup(html: str) -> BeautifulSoup:
    from bs4 import BeautifulSoup

    return BeautifulSoup(html[:HTML], "html.parser")


def _line(text: str) -> str:
    return " ".join(text.split())


def _drop(soup: BeautifulSoup) -> None:
    """What a person looking at the page does not see, and what is no text."""
    from bs4 import Comment

    for node in soup.find_all(string=lambda text: isinstance(text, Comment)):
        node.extract()
    for tag in soup.find_all(lambda tag: tag.name in _DROPPED or _hidden(tag)):
        if not tag.decomposed:
            tag.decompose()


def _hidden(tag: Tag) -> bool:
    if tag.name in ("html", "body"):
        return False  # until a script shows it
    if tag.has_attr("hidden") or tag.get("aria-hidden") == "true":
        return True
    return bool(_HIDDEN.search(str(tag.get("style", ""))))


def _flatten(soup: BeautifulSoup) -> None:
    waiting: list[tuple[Tag, int]] = [(soup, 0)]
    while waiting:
        tag, depth = waiting.pop()
        if depth >= DEPTH:
            tag.string = tag.get_text(" ")
        else:
            waiting.extend((child, depth + 1) for child in _children(tag))


def _children(tag: Tag) -> Iterator[Tag]:
    from bs4 import Tag

    return (child for child in tag.children if isinstance(child, Tag))


def _main(soup: BeautifulSoup) -> Tag:
    """The main content if the page marks it; else all but what surrounds it."""
    body: Tag = soup.body or soup
    articles = soup.find_all("article")
    marked = list(soup.find_all("main") or soup.select('[role="main"]'))
    if marked := marked or (list(articles) if len(articles) == 1 else []):
        best = max(marked, key=_length)
        if _length(best) >= min(_ENOUGH, _length(body) // 2) and _length(best):
            return _without_surroundings(best)
    before = _length(body)
    around = _surroundings(body)
    if sum(map(_length, around)) * 10 < before * 9:  # else it is all there is
        for tag in around:
            if not tag.decomposed:
                tag.decompose()
    return body


def _surroundings(tag: Tag) -> list[Tag]:
    found = tag.find_all(lambda t: t.name in _AROUND or t.get("role") in _AROUND_ROLES)
    return [t for t in found if not (t.name == "header" and t.find_parent("article"))]


def _without_surroundings(main: Tag) -> Tag:
    """Headers and asides within the main content belong to it; ways to other pages do not."""
    for tag in main.find_all(lambda t: t.name == "nav" or t.get("role") == "navigation"):
        if not tag.decomposed:
            tag.decompose()
    return main


def _length(tag: Tag) -> int:
    return 0 if tag.decomposed else sum(len(text.strip()) for text in tag.strings)


def _simplify(tag: Tag, base: str) -> None:
    """Leaves the attributes that mean something in markdown; links get absolute."""
    href, alt = str(tag.get("href", "")), _line(str(tag.get("alt", "")))
    classes = _classes(tag) if tag.name in ("pre", "code", "div") else []
    start = str(tag.get("start", ""))
    tag.attrs = {}
    if tag.name == "a":
        if url := _absolute(base, href):
            tag["href"] = url
        else:
            tag.unwrap()
    elif tag.name == "img":
        tag.replace_with(f"[image: {alt}]" if alt else "")
    elif tag.name == "ol" and start.isascii() and start.isdigit() and len(start) < 7:
        tag["start"] = start
    elif classes:
        tag["class"] = " ".join(classes)


def _absolute(base: str, href: str) -> str:
    """ "" for what leads nowhere else."""
    href = href.strip()
    if not href or href.startswith("#") or len(href) > 2_000:
        return ""
    try:
        url = re.sub(r"[\s<>]", lambda found: quote(found[0]), urljoin(base, href))
        return url if urlsplit(url).scheme in ("http", "https", "mailto") else ""
    except ValueError:
        return ""


def _markdown(tag: Tag) -> str:
    from markdownify import MarkdownConverter

    text: str = MarkdownConverter(
        heading_style="atx",
        bullets="-",
        escape_asterisks=False,
        escape_underscores=False,
        newline_style="backslash",
        code_language_callback=_language,
        table_infer_header=True,
    ).convert_soup(tag)
    text = re.sub(r"[^\S\n]+\n", "\n", text)
    return re.sub(r"\n{3,}", "\n\n", text).strip()


def _language(pre: Tag) -> str:
    """The language of a code block, from the classes that sites give it or to what is around it."""
    for tag in (pre, pre.find("code"), pre.parent, pre.parent and pre.parent.parent):
        classes = " ".join(_classes(tag)) if tag is not None else ""
        found = _LANGUAGE.search(classes)
        if found and found[1].lower() not in ("default", "none", "text", "plaintext"):
            return found[1].lower()
    return ""


def _classes(tag: Any) -> list[str]:
    found = tag.get("class") or []
    return found.split() if isinstance(found, str) else list(found)


# --- the program ----------------------------------------------------------------------------------


def main() -> None:
    """{"what": "page" | "results", "html": ..., "base": ...} -> what that function gives."""
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_CPU, CPU_SECONDS)
    if sys.platform == "linux":  # elsewhere the address space says little
        _limit(resource.RLIMIT_AS, MEMORY)
    asked = json.loads(sys.stdin.buffer.read())
    function = {"page": page, "results": results}[asked["what"]]
    answer = function(asked["html"], asked["base"])
    sys.stdout.buffer.write(json.dumps(answer).encode())


def _limit(which: int, most: int) -> None:
    _, hard = resource.getrlimit(which)
    resource.setrlimit(which, (most if hard < 0 else min(most, hard), hard))


if __name__ == "__main__":
    main()
