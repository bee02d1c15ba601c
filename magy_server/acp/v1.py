# Generated from scripts/schemas/acp-v1.json by `make docs`; edit that instead.

"""These models read what a client of ACP version 1 sends."""

# fmt: off
# ruff: noqa: I001

from typing import Any, Literal

from magy_server.acp.shapes import Lax, Sent

class AuthCapabilities(Sent):
    terminal: Lax[bool | None] = None

class ElicitationFormCapabilities(Sent):
    pass

class ElicitationUrlCapabilities(Sent):
    pass

class ElicitationCapabilities(Sent):
    form: Lax[ElicitationFormCapabilities | None] = None
    url: Lax[ElicitationUrlCapabilities | None] = None

class FileSystemCapabilities(Sent):
    read_text_file: Lax[bool | None] = None
    write_text_file: Lax[bool | None] = None

class PlanCapabilities(Sent):
    pass

class CompactionCapabilities(Sent):
    pass

class BooleanConfigOptionCapabilities(Sent):
    pass

class SessionConfigOptionsCapabilities(Sent):
    boolean: Lax[BooleanConfigOptionCapabilities | None] = None

class NoticeCapabilities(Sent):
    pass

class ClientSessionCapabilities(Sent):
    compaction: Lax[CompactionCapabilities | None] = None
    config_options: Lax[SessionConfigOptionsCapabilities | None] = None
    notices: Lax[NoticeCapabilities | None] = None

class SubagentCapabilities(Sent):
    pass

class ClientCapabilities(Sent):
    meta: Lax[dict[str, Any] | None] = None
    auth: Lax[AuthCapabilities | None] = None
    elicitation: Lax[ElicitationCapabilities | None] = None
    fs: Lax[FileSystemCapabilities | None] = None
    plan: Lax[PlanCapabilities | None] = None
    session: Lax[ClientSessionCapabilities | None] = None
    subagents: Lax[SubagentCapabilities | None] = None
    terminal: Lax[bool | None] = None

class Implementation(Sent):
    name: str
    title: Lax[str | None] = None
    version: str

class InitializeRequest(Sent):
    client_capabilities: Lax[ClientCapabilities | None] = None
    client_info: Lax[Implementation | None] = None
    protocol_version: int

class AuthenticateRequest(Sent):
    method_id: str

class HttpHeader(Sent):
    name: str
    value: str

class McpServerHttp(Sent):
    type: Literal['http']
    headers: list[HttpHeader]
    name: str
    url: str

class McpServerSse(Sent):
    type: Literal['sse']
    headers: list[HttpHeader]
    name: str
    url: str

class McpServerAcp(Sent):
    type: Literal['acp']
    name: str
    server_id: str

class EnvVariable(Sent):
    name: str
    value: str

class McpServerStdio(Sent):
    args: list[str]
    command: str
    env: list[EnvVariable]
    name: str

class Annotations(Sent):
    audience: Lax[list[Literal['assistant'] | Literal['user']] | None] = None
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

class ResourceLink(Sent):
    type: Literal['resource_link']
    annotations: Lax[Annotations | None] = None
    description: Lax[str | None] = None
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

class SystemPrompt(Sent):
    content: list[TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource]
    mode: Literal['append'] | Literal['override'] | str

class NewSessionRequest(Sent):
    additional_directories: list[str] | None = None
    cwd: str
    mcp_servers: list[McpServerHttp | McpServerSse | McpServerAcp | McpServerStdio]
    system_prompt: SystemPrompt | None = None

class LoadSessionRequest(Sent):
    additional_directories: list[str] | None = None
    cwd: str
    mcp_servers: list[McpServerHttp | McpServerSse | McpServerAcp | McpServerStdio]
    session_id: str
    system_prompt: SystemPrompt | None = None

class ResumeSessionRequest(Sent):
    additional_directories: list[str] | None = None
    cwd: str
    mcp_servers: list[McpServerHttp | McpServerSse | McpServerAcp | McpServerStdio] | None = None
    session_id: str
    system_prompt: SystemPrompt | None = None

class ForkSessionRequest(Sent):
    additional_directories: list[str] | None = None
    cwd: str
    mcp_servers: list[McpServerHttp | McpServerSse | McpServerAcp | McpServerStdio] | None = None
    session_id: str
    system_prompt: SystemPrompt | None = None

class ListSessionsRequest(Sent):
    archived: Literal['exclude'] | Literal['include'] | Literal['only'] | str | None = None
    cursor: str | None = None
    cwd: str | None = None

class CloseSessionRequest(Sent):
    session_id: str

class DeleteSessionRequest(Sent):
    session_id: str

class SetSessionModeRequest(Sent):
    mode_id: str
    session_id: str

class SetSessionConfigOptionRequest(Sent):
    type: Literal['boolean'] | None = None
    value: bool | str | None = None
    config_id: str
    session_id: str

class PromptRequest(Sent):
    prompt: list[TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource]
    session_id: str

class CancelNotification(Sent):
    session_id: str

class CancelledOutcome(Sent):
    outcome: Literal['cancelled']

class SelectedPermissionOutcome(Sent):
    outcome: Literal['selected']
    option_id: str

class RequestPermissionResponse(Sent):
    outcome: CancelledOutcome | SelectedPermissionOutcome

class ReadTextFileResponse(Sent):
    content: str
