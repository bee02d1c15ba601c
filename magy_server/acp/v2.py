# Generated from scripts/schemas/acp-v2.json by `make docs`; edit that instead.

"""These models read what a client of ACP version 2 sends."""

# fmt: off
# ruff: noqa: E501, I001

from typing import Any, Literal

from magy_server.acp.shapes import Lax, Sent

class TerminalAuthCapabilities(Sent):
    pass

class ClientAuthCapabilities(Sent):
    terminal: Lax[TerminalAuthCapabilities | None] = None

class ElicitationFormCapabilities(Sent):
    pass

class ElicitationUrlCapabilities(Sent):
    pass

class ElicitationCapabilities(Sent):
    form: Lax[ElicitationFormCapabilities | None] = None
    url: Lax[ElicitationUrlCapabilities | None] = None

class ClientCapabilities(Sent):
    meta: Lax[dict[str, Any] | None] = None
    auth: Lax[ClientAuthCapabilities | None] = None
    elicitation: Lax[ElicitationCapabilities | None] = None

class Implementation(Sent):
    name: str
    title: Lax[str | None] = None
    version: str

class InitializeRequest(Sent):
    capabilities: Lax[ClientCapabilities | None] = None
    info: Implementation
    protocol_version: int

class LoginAuthRequest(Sent):
    method_id: str

class HttpHeader(Sent):
    name: str
    value: str

class McpServerHttp(Sent):
    type: Literal['http']
    headers: list[HttpHeader] | None = None
    name: str
    url: str

class EnvVariable(Sent):
    name: str
    value: str

class McpServerStdio(Sent):
    type: Literal['stdio']
    args: list[str] | None = None
    command: str
    env: list[EnvVariable] | None = None
    name: str

class NewSessionRequest(Sent):
    additional_directories: list[str] | None = None
    cwd: str
    mcp_servers: list[McpServerHttp | McpServerStdio | dict[str, Any]] | None = None

class ReplayFromStart(Sent):
    type: Literal['start']

class ResumeSessionRequest(Sent):
    additional_directories: list[str] | None = None
    cwd: str
    mcp_servers: list[McpServerHttp | McpServerStdio | dict[str, Any]] | None = None
    replay_from: ReplayFromStart | dict[str, Any] | None = None
    session_id: str

class SetSessionConfigOptionRequest(Sent):
    type: Literal['id'] | Literal['boolean'] | str | None = None
    value: str | bool | Any | None = None
    config_id: str
    session_id: str

class Annotations(Sent):
    audience: Lax[list[Literal['assistant'] | Literal['user'] | str] | None] = None
    last_modified: Lax[str | None] = None
    priority: Lax[float | None] = None

class TextContent(Sent):
    type: Literal['text']
    annotations: Lax[Annotations | None] = None
    text: str

class ImageContent(Sent):
    type: Literal['image']
    annotations: Lax[Annotations | None] = None
    data: str
    mime_type: str
    uri: Lax[str | None] = None

class AudioContent(Sent):
    type: Literal['audio']
    annotations: Lax[Annotations | None] = None
    data: str
    mime_type: str

class Icon(Sent):
    mime_type: Lax[str | None] = None
    sizes: Lax[list[str] | None] = None
    src: str
    theme: Lax[Literal['light'] | Literal['dark'] | str | None] = None

class ResourceLink(Sent):
    type: Literal['resource_link']
    annotations: Lax[Annotations | None] = None
    description: Lax[str | None] = None
    icons: Lax[list[Icon] | None] = None
    mime_type: Lax[str | None] = None
    name: str
    size: Lax[int | None] = None
    title: Lax[str | None] = None
    uri: str

class TextResourceContents(Sent):
    mime_type: Lax[str | None] = None
    text: str
    uri: str

class BlobResourceContents(Sent):
    blob: str
    mime_type: Lax[str | None] = None
    uri: str

class EmbeddedResource(Sent):
    type: Literal['resource']
    annotations: Lax[Annotations | None] = None
    resource: TextResourceContents | BlobResourceContents

class PromptRequest(Sent):
    prompt: list[TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource | dict[str, Any]]
    session_id: str
