r"""A conversation in full, with the messages as they are on the wire: `->` is sent by the client,
and `<-` by Magy. A file is open in an editor, an agent changes it, asks whether it may run a
command, and the person reviews the change.

### Connect

The client starts the process `magy lsp` and sends the first frame, here with its header:

```frame
Content-Length: 409

{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"processId": null, "rootUri": "file:///home/you/greeter", "capabilities": {"general": {"positionEncodings": ["utf-8"]}, "workspace": {"applyEdit": true, "workspaceEdit": {"documentChanges": true}}}, "initializationOptions": {"magy": {"client": {"name": "mine"}, "capabilities": {"interactions": true, "review": true, "editor": {"save": true}}}}}}
```

From here on headers are left out, and so is `"jsonrpc": "2.0"`, which every message has. `…` stands
for what is left out of a message.

```wire
<- {"id": 1, "result": {"capabilities": {"positionEncoding": "utf-8", "textDocumentSync": {"openClose": true, "change": 2, "save": true}, "experimental": {"magy": {"version": "…", "protocol": 1}}, "…": "…"}, "serverInfo": {"name": "magy", "version": "…"}}}
-> {"method": "initialized", "params": {}}
-> {"method": "textDocument/didOpen", "params": {"textDocument": {"uri": "file:///home/you/greeter/app.py", "languageId": "python", "version": 1, "text": "def greet():\n    return 'hello'\n"}}}
```

[What a client announces](#what-a-client-announces) tells what the options mean. The client opens
each document that the person has open, as for any language server. From then on the agent reads
that text and not the file on disk.

### Open a session and subscribe

```wire
-> {"id": 2, "method": "magy/session/new", "params": {"sessionId": "greeting", "cwd": "/home/you/greeter"}}
<- {"id": 2, "result": {"sessionId": "greeting", "configOptions": [{"configId": "agent", "name": "Agent", "currentValue": "build", "options": ["build", "plan"]}, "…"]}}
-> {"id": 3, "method": "magy/session/subscribe", "params": {"sessionId": "greeting"}}
<- {"id": 3, "result": {"headSeq": 1, "floorSeq": 1, "summary": {"…": "…"}, "events": [{"seq": 1, "at": 1764000000.25, "update": {"sessionUpdate": "session_info_update", "title": null, "updatedAt": "2025-11-24T16:00:00.250+00:00"}}], "more": false}}
```

The client chose the id `greeting`. `events` is a page of the log, which has one entry so far. What
comes after it is sent as `magy/session/update`.

### Prompt

```wire
-> {"id": 4, "method": "magy/session/prompt", "params": {"sessionId": "greeting", "messageId": "one", "prompt": [{"type": "text", "text": "Make the greeting polite"}]}}
<- {"method": "magy/session/update", "params": {"sessionId": "greeting", "update": {"sessionUpdate": "user_message", "messageId": "one", "content": [{"type": "text", "text": "Make the greeting polite"}], "_meta": {"magy": {"seq": 2, "at": 1764000000.25}}}}}
<- {"method": "magy/session/update", "params": {"sessionId": "greeting", "update": {"sessionUpdate": "_magy_queue", "added": "one", "delivery": "steer", "_meta": {"magy": {"seq": 2, "at": 1764000000.25}}}}}
<- {"id": 4, "result": {"messageId": "one", "outcome": "started"}}
<- {"method": "magy/session/update", "params": {"sessionId": "greeting", "update": {"sessionUpdate": "_magy_queue", "admitted": ["one"], "_meta": {"magy": {"seq": 4, "at": 1764000000.25}}}}}
<- {"method": "magy/session/update", "params": {"sessionId": "greeting", "update": {"sessionUpdate": "state_update", "state": "running", "_meta": {"magy": {"turnId": "one", "opens": true, "seq": 4, "at": 1764000000.25}}}}}
```

`seq` and `at` say where an update stands in the log. The last two updates belong together: message
`one` entered the turn `one`, which began with it. Updates and answers may come in another order
than here; those of one session come in the order of their `seq`.

### The reply streams

```wire
<- {"method": "magy/session/update", "params": {"sessionId": "greeting", "update": {"sessionUpdate": "agent_message_chunk", "messageId": "4", "content": {"type": "text", "text": "I "}}}}
<- {"method": "magy/session/update", "params": {"sessionId": "greeting", "update": {"sessionUpdate": "agent_message", "messageId": "4", "content": [{"type": "text", "text": "I will greet politely."}], "_meta": {"magy": {"seq": 5, "at": 1764000000.25}}}}}
<- {"method": "magy/session/update", "params": {"sessionId": "greeting", "update": {"sessionUpdate": "tool_call_update", "toolCallId": "4.0", "name": "edit_file", "title": "edit_file", "status": "pending", "rawInput": {"path": "app.py", "old_text": "'hello'", "new_text": "'good morning'"}, "_meta": {"magy": {"seq": 5, "at": 1764000000.25}}}}}
```

A chunk is a delta: it has no `seq`, and its text is to be appended. `agent_message` is the whole
text; it replaces the chunks. The reply also calls a tool. Its id, `4.0`, is new to the client: this
update introduces the call.

### An edit of the open document

The rules allow the call, and its preview comes as `content`. Then Magy asks the client to change the
document, and after that to save it.

```wire
<- {"method": "magy/session/update", "params": {"sessionId": "greeting", "update": {"sessionUpdate": "tool_call_update", "toolCallId": "4.0", "kind": "edit", "locations": [{"path": "/home/you/greeter/app.py"}], "title": "Edit app.py", "content": [{"type": "diff", "changes": [{"operation": "modify", "path": "/home/you/greeter/app.py"}], "patch": {"format": "git_patch", "text": "--- a/app.py\n+++ b/app.py\n@@ -1,2 +1,2 @@\n def greet():\n-    return 'hello'\n+    return 'good morning'\n"}}], "_meta": {"magy": {"decision": {"action": "allow", "rule": "agent build: edit -> allow", "firm": false, "proposed": false}, "seq": 6, "at": 1764000000.25}}}}}
<- {"id": "magy-1", "method": "workspace/applyEdit", "params": {"label": "Edit app.py", "edit": {"documentChanges": [{"textDocument": {"uri": "file:///home/you/greeter/app.py", "version": 1}, "edits": [{"range": {"start": {"line": 1, "character": 12}, "end": {"line": 1, "character": 17}}, "newText": "good morning"}]}]}}}
-> {"method": "textDocument/didChange", "params": {"textDocument": {"uri": "file:///home/you/greeter/app.py", "version": 2}, "contentChanges": [{"text": "def greet():\n    return 'good morning'\n"}]}}
-> {"id": "magy-1", "result": {"applied": true}}
<- {"id": "magy-2", "method": "magy/editor/save", "params": {"uri": "file:///home/you/greeter/app.py", "version": 2}}
-> {"id": "magy-2", "result": {"saved": true}}
-> {"method": "textDocument/didSave", "params": {"textDocument": {"uri": "file:///home/you/greeter/app.py"}}}
<- {"method": "magy/session/update", "params": {"sessionId": "greeting", "update": {"sessionUpdate": "tool_call_update", "toolCallId": "4.0", "status": "completed", "content": [{"type": "diff", "changes": [{"operation": "modify", "path": "/home/you/greeter/app.py"}], "patch": {"format": "git_patch", "…": "…"}}, {"type": "content", "content": {"type": "text", "text": "app.py +1 -1"}}], "_meta": {"magy": {"status": "completed", "duration": 0.013, "seq": 8, "at": 1764000000.25}}}}}
```

[Edits of open files](#edits-of-open-files) says what the client has to do, and what it may do when
the person has typed in the meantime.

### A question and its answer

The agent wants to run a command, and the rules say *ask*.

```wire
<- {"method": "magy/session/update", "params": {"sessionId": "greeting", "update": {"sessionUpdate": "tool_call_update", "toolCallId": "8.0", "name": "bash", "title": "bash", "status": "pending", "rawInput": {"command": "rm -rf build"}, "_meta": {"magy": {"seq": 9, "at": 1764000000.25}}}}}
<- {"method": "magy/session/update", "params": {"sessionId": "greeting", "update": {"sessionUpdate": "_magy_interaction", "open": {"interactionId": "greeting/8.0", "kind": "permission", "toolCallId": "8.0", "title": "Run rm -rf build", "rule": "agent build: bash `*` -> ask", "remember": [{"key": "bash", "pattern": "rm -rf build"}], "covers": ["bash `rm -rf build`"], "content": []}, "_meta": {"magy": {"seq": 11, "at": 1764000000.25}}}}}
<- {"method": "magy/session/update", "params": {"sessionId": "greeting", "update": {"sessionUpdate": "state_update", "state": "requires_action", "_meta": {"magy": {"seq": 11, "at": 1764000000.25}}}}}
-> {"id": 5, "method": "magy/interaction/respond", "params": {"sessionId": "greeting", "interactionId": "greeting/8.0", "outcome": "refuse", "reason": "It takes long to build."}}
<- {"method": "magy/session/update", "params": {"sessionId": "greeting", "update": {"sessionUpdate": "_magy_interaction", "resolved": {"interactionId": "greeting/8.0", "outcome": "refused", "reason": "It takes long to build.", "scope": "once", "by": "mine"}, "_meta": {"magy": {"seq": 12, "at": 1764000000.25}}}}}
<- {"id": 5, "result": {"accepted": true, "winner": null}}
<- {"method": "magy/session/update", "params": {"sessionId": "greeting", "update": {"sessionUpdate": "state_update", "state": "running", "_meta": {"magy": {"seq": 12, "at": 1764000000.25}}}}}
<- {"method": "magy/session/update", "params": {"sessionId": "greeting", "update": {"sessionUpdate": "tool_call_update", "toolCallId": "8.0", "status": "failed", "content": [{"type": "content", "content": {"type": "text", "text": "The user refused this call. Reason: It takes long to build."}}], "_meta": {"magy": {"status": "denied", "duration": 0.0, "seq": 13, "at": 1764000000.25}}}}}
```

The person refused, with a reason, which the model reads. The same question also came as
`magy/interaction/changed`, which tells of questions in all sessions of the workspace.

### The end of the turn

```wire
<- {"method": "magy/session/update", "params": {"sessionId": "greeting", "update": {"sessionUpdate": "agent_message", "messageId": "13", "content": [{"type": "text", "text": "The greeting is polite now; build/ is still there."}], "_meta": {"magy": {"seq": 14, "at": 1764000000.25}}}}}
<- {"method": "magy/session/update", "params": {"sessionId": "greeting", "update": {"sessionUpdate": "state_update", "state": "idle", "stopReason": "end_turn", "_meta": {"magy": {"turnId": "one", "stop": "end_turn", "message": "", "seq": 15, "at": 1764000000.25}}}}}
```

The turn is over: the state is `idle`, and `turnId` is the turn of our prompt. [Turns](#turns) has the
rule.

### Review

The change waits for a decision. The client announced `review`, so it was told:

```wire
<- {"method": "magy/review/changed", "params": {"files": [{"uri": "file:///home/you/greeter/app.py", "path": "/home/you/greeter/app.py", "root": "/home/you/greeter", "status": "modified", "mode": "applied", "revision": "1.bacfb0de3701.f", "pending": 1, "added": 1, "removed": 1, "sessions": ["greeting"]}]}}
-> {"id": 6, "method": "magy/review/get", "params": {"uri": "file:///home/you/greeter/app.py"}}
<- {"id": 6, "result": {"file": {"uri": "file:///home/you/greeter/app.py", "revision": "1.bacfb0de3701.f", "docVersion": 2, "mode": "applied", "hunks": [{"hunkId": "3c0e3555469e", "kind": "change", "range": {"start": {"line": 1, "character": 0}, "end": {"line": 2, "character": 0}}, "oldText": "    return 'hello'\n", "newText": "    return 'good morning'\n", "state": "pending", "amended": false, "…": "…"}], "…": "…"}}}
-> {"id": 7, "method": "magy/review/resolve", "params": {"uri": "file:///home/you/greeter/app.py", "decision": "accept", "hunkIds": ["3c0e3555469e"], "revision": "1.bacfb0de3701.f", "requestKey": "k1"}}
<- {"id": 7, "result": {"decisionId": "k1", "results": [{"hunkId": "3c0e3555469e", "state": "accepted"}], "applied": false, "message": "", "pending": 0, "file": null}}
```

### Shut down

```wire
-> {"id": 8, "method": "shutdown", "params": null}
<- {"id": 8, "result": null}
-> {"method": "exit"}
```

The process ends with the status 0, at the latest after 15 seconds: commands that an agent was
running have two seconds to end by themselves, then they are killed. When the client goes away
without this, it ends with 1, and the same holds: sessions stay, and a turn that was running stays
open in the log.

To play the model while a client is written, `MAGY_SCRIPT` in the environment names a
[script](reference/script-format.md); no key is needed. `MAGY_STATE_DIR` and `MAGY_CONFIG_DIR` name
directories that take the place of your own, so that your sessions and settings stay out of it. This
script was used here:

```script
prompt: polite
text: I will greet politely.
delay: 0.2
call: edit_file {"path": "app.py", "old_text": "'hello'", "new_text": "'good morning'"}
---
text: And I clean up.
call: bash {"command": "rm -rf build"}
---
text: The greeting is polite now; build/ is still there.
```
"""  # noqa: E501
