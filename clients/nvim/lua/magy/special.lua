--- Prompts that this client carries out itself: `@clear`, `@compact WORDS`, `@spawn AGENT TASK`
--- (`@spawn AGENT --worktree TASK`: on a git branch of its own).

local connection = require("magy.connection")
local say = require("magy.say")
local session = require("magy.session")

local M = {}

--- Carries a prompt out if it is one of these; returns whether it was.
function M.done(view, text, blocks)
  if text == "@clear" then
    session.new(view.project, function()
      say.info("A new session; `:Magy resume` goes back to the old one.")
    end)
    return true
  end
  local focus = text:match("^@compact%s*(.*)$")
  if focus and (focus == "" or text:find("^@compact%s")) then
    session.ensure(view, function()
      connection.ask(view.project, "magy/session/compact", { sessionId = view.session, focus = focus })
    end)
    return true
  end
  local agent, task = text:match("^@spawn%s+(%S+)%s+(.*)$")
  if agent then
    M.spawn(view, agent, task, vim.list_slice(blocks, 2))
    return true
  end
  return false
end

--- Returns the task without `--worktree` before it, and whether that stood there.
function M.switched(task)
  local rest = (task .. " "):match("^%s*%-%-worktree%s+(.*)$")
  return rest and vim.trim(rest) or task, rest ~= nil
end

--- Starts a child of the view's session on a task, which `--worktree` may stand before; `along` are further
--- content blocks.
function M.spawn(view, agent, task, along)
  local worktree
  task, worktree = M.switched(task)
  session.ensure(view, function()
    local prompt = vim.list_extend({ { type = "text", text = task } }, along or {})
    local params = { parentSessionId = view.session, requestKey = say.id("nvim"), agent = agent, prompt = prompt }
    params.worktree = worktree or nil
    connection.ask(view.project, "magy/child/spawn", params, function(result)
      say.info("%s begins.", result.child.agent)
    end)
  end)
end

return M
