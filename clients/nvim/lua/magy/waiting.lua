--- Prompts that wait for the turn to end: taking them back, putting them first. And trusting a project.

local connection = require("magy.connection")
local events = require("magy.events")
local one_line = require("magy.state.harmless").one_line
local projects = require("magy.project")
local say = require("magy.say")

local M = {}

local function send(view, method, more)
  local params = vim.tbl_extend("force", { sessionId = view.session }, more)
  connection.ask(view.project, method, params, function(result)
    view.state.waiting = result.waiting
    view.state:frame()
    events.tell("changed", view)
  end)
end

--- Has the person choose one of the prompts that wait, and what to do with it.
function M.choose(view)
  local waiting = view.state.waiting
  if #waiting == 0 then
    return say.info("No prompt waits.")
  end
  vim.ui.select(waiting, {
    prompt = "Prompts that wait",
    format_item = function(one)
      return one_line(one.text)
    end,
  }, function(chosen)
    if not chosen then
      return
    end
    local actions = { "Take it back", "Put it first" }
    vim.ui.select(actions, { prompt = one_line(chosen.text) }, function(action)
      if action == actions[1] then
        send(view, "magy/queue/drop", { messageIds = { chosen.messageId } })
      elseif action == actions[2] then
        send(view, "magy/queue/reorder", { order = { chosen.messageId } })
      end
    end)
  end)
end

--- Has the person decide whether the project's own configuration may do more than restrict.
function M.trust()
  local project = projects.here(0)
  connection.ask(project, "magy/workspace/trust", { root = project.root }, function(now)
    local words = now.trusted and "is trusted" or "is not trusted"
    if #(now.ignored or {}) > 0 then
      local ignored = vim.tbl_map(function(one)
        return projects.short(project, one)
      end, now.ignored)
      words = words .. "; ignored until then: " .. table.concat(ignored, ", ")
    end
    local offered = { "Leave it so", now.trusted and "Trust it no more" or "Trust it" }
    vim.ui.select(offered, { prompt = ("%s %s"):format(project.name, one_line(words)) }, function(chosen)
      if chosen == offered[2] then
        local params = { root = project.root, trusted = not now.trusted }
        connection.ask(project, "magy/workspace/trust", params, function(result)
          say.info("%s %s.", project.name, result.trusted and "is trusted" or "is not trusted")
        end)
      end
    end)
  end)
end

return M
