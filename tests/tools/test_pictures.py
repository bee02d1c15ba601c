"""Pictures: what models may be shown, and reading one."""

from __future__ import annotations

import os
from hashlib import sha256

import pytest

from magy_server.core.errors import InvalidRequest, ToolError
from magy_server.tools.files.pictures import LARGEST, mime, picture, size
from magy_server.tools.files.read_tool import read_file

from .conftest import FakeEditor, Workspace
from .pictures import gif, jpeg, png, webp

KINDS = [
    (png(), "image/png", (2, 1)),
    (png(8000, 3), "image/png", (8000, 3)),
    (gif(), "image/gif", (3, 2)),
    (gif() + b"\0\0", "image/gif", (3, 2)),
    (jpeg(), "image/jpeg", (4, 5)),
    (jpeg(640, 480, frame=0xC2), "image/jpeg", (640, 480)),
    (webp(b"VP8X"), "image/webp", (6, 7)),
    (webp(b"VP8L"), "image/webp", (6, 7)),
    (webp(b"VP8 "), "image/webp", (6, 7)),
]


@pytest.mark.parametrize(("data", "kind", "sides"), KINDS)
def test_the_four_kinds(data: bytes, kind: str, sides: tuple[int, int]) -> None:
    image = picture(data, "a.txt")
    assert (image.mime, image.name) == (kind, "a.txt")
    assert image.hash == sha256(data).hexdigest()
    assert size(data) == sides


@pytest.mark.parametrize("data", [data for data, _, _ in KINDS if data != gif() + b"\0\0"])
def test_a_picture_that_breaks_off_is_damaged(data: bytes) -> None:
    """The last bytes of all of them mark the end; shorter, even the size is missing."""
    for length in range(16, len(data)):
        with pytest.raises(InvalidRequest, match="damaged"):
            picture(data[:length], "a")


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "not a PNG"),
        (b"%PDF", "not a PNG"),
        (b"BM" + bytes(50), "not a PNG"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "not a PNG"),
        (png(0, 1), "no width or height"),
        (png(8001, 1), "8001x1 pixels.*magick"),
        (png().replace(b"IHDR", b"JHDR"), "damaged"),
        (jpeg().replace(b"\xff\xff\xff", b"abc"), "damaged"),
        (webp(b"VP8 ").replace(b"\x9d\x01\x2a", b"abc"), "first part is unknown"),
        (webp(b"VP8X").replace(b"VP8X", b"ALPH"), "first part is unknown"),
    ],
)
def test_what_providers_would_refuse(data: bytes, why: str) -> None:
    with pytest.raises(InvalidRequest, match=why):
        picture(data, "shot.png")


def test_the_largest_picture() -> None:
    whole = png(padding=LARGEST - len(png()) - 12)
    assert len(whole) == LARGEST and picture(whole, "").mime == "image/png"
    with pytest.raises(InvalidRequest, match=r"3,750,001 bytes.*at most 3,750,000.*magick"):
        picture(whole + b"\0", "")


def test_kinds_are_known_by_their_first_bytes() -> None:
    assert [mime(data[:16]) for data, _, _ in KINDS] == [kind for _, kind, _ in KINDS]
    with pytest.raises(ValueError, match="another kind"):
        size(b"text")


# --- read_file ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("data", "kind", "sides"), KINDS)
async def test_read_file_shows_a_picture(
    workspace: Workspace, data: bytes, kind: str, sides: tuple[int, int]
) -> None:
    workspace.file("shots/one.bin", data)
    result = await workspace.run(read_file, path="shots/one.bin", offset=1)
    assert result.for_model == f"(picture shots/one.bin, {sides[0]}x{sides[1]})"
    (image,) = result.images
    assert image.mime == kind and result.blobs == {image.hash: data}


async def test_read_file_of_a_picture_that_cannot_be_shown(workspace: Workspace) -> None:
    workspace.file("cut.png", png()[:-1])
    with pytest.raises(ToolError, match=r"cut.png looks like a PNG image.*damaged"):
        await workspace.run(read_file, path="cut.png")
    with workspace.file("huge.png", png()).open("ab") as file:
        os.truncate(file.fileno(), 1 << 40)
    with pytest.raises(ToolError, match=r"huge.png has 1,099,511,627,776 bytes.*magick"):
        await workspace.run(read_file, path="huge.png")


async def test_other_binary_files_and_text_are_as_ever(workspace: Workspace) -> None:
    workspace.file("a.ico", b"\0\0\x01\0")
    with pytest.raises(ToolError, match=r"a.ico is not text"):
        await workspace.run(read_file, path="a.ico")
    workspace.file("GIF.txt", "GIF89 is a format\n")
    assert "GIF89 is a format" in (await workspace.run(read_file, path="GIF.txt")).for_model
    os.mkfifo(workspace.root / "fifo.png")
    with pytest.raises(ToolError, match="fifo"):
        await workspace.run(read_file, path="fifo.png")


async def test_an_open_buffer_is_read_as_text(workspace: Workspace, editor: FakeEditor) -> None:
    path = workspace.file("a.png", png())
    editor.open(path, "the editor shows this")
    assert "the editor shows this" in (await workspace.run(read_file, path="a.png")).for_model


async def test_a_link_put_there_later_is_not_followed(workspace: Workspace) -> None:
    path = workspace.file("a.png", png())
    context = await workspace.prepare(read_file, path="a.png")
    outside = workspace.root.parent / "outside.png"
    outside.write_bytes(png(9, 9))
    path.unlink()
    path.symlink_to(outside)
    with pytest.raises(ToolError, match="symbolic link was put"):
        await read_file.run(context, path="a.png")
