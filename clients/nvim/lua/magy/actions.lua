--- What Magy offers at the cursor: its code actions, without those of other servers.

local connection = require("magy.connection")
local context = require("magy.context")
local editor = require("magy.editor")
local projects = require("magy.project")
local say = require("magy.say")
local session = require("magy.session")

local api = vim.api

local M = {}

local function diagnostics_at(buf, first, last)
  local found = vim.tbl_filter(function(one)
    return one.lnum <= last and (one.end_lnum or one.lnum) >= first
  end, vim.diagnostic.get(buf))
  return vim.tbl_map(function(one)
    local made = editor.diagnostic(one)
    made.uri = nil
    return made
  end, found)
end

--- Runs the command of an action, and shows the session that it went to.
local function run(project, command)
  connection.request(project, "workspace/executeCommand", {
    command = command.command,
    arguments = command.arguments,
  }, function(problem, result)
    if problem then
      return say.problem(problem)
    end
    local id = type(result) == "table" and result.sessionId
    local view = session.main(project)
    if id and not id:find("/", 1, true) and command.command ~= "magy.rewrite" then
      if view.session ~= id then
        session.show(view, id)
      end
      local window = api.nvim_get_current_win()
      require("magy.view.buffer").open(view)
      api.nvim_set_current_win(window)
      session.ensure(view, function() end)
    end
  end)
end

local function carry_out(project, action)
  if action.edit == nil and action.command == nil then
    connection.request(project, "codeAction/resolve", action, function(problem, resolved)
      if problem then
        return say.problem(problem)
      elseif resolved.command then
        run(project, resolved.command)
      end
    end)
  elseif action.command then
    run(project, type(action.command) == "table" and action.command or action)
  end
end

--- Has the person choose what to do here; `range`: about these lines.
function M.choose(range)
  local project, buf = projects.here(0), api.nvim_get_current_buf()
  if vim.bo[buf].buftype ~= "" then
    return say.info("Actions are about files.")
  end
  local at = api.nvim_win_get_cursor(0)
  connection.when_ready(project, function()
    if not vim.lsp.buf_is_attached(buf, project.client.id) then
      return say.info("This buffer is in no project of Magy's.")
    end
    local place = { line = at[1] - 1, character = at[2] }
    local span = range and context.lines(buf, range[1], range[2]) or { start = place, ["end"] = place }
    local params = {
      textDocument = { uri = vim.uri_from_bufnr(buf) },
      range = span,
      context = { diagnostics = diagnostics_at(buf, span.start.line, span["end"].line), triggerKind = 1 },
    }
    connection.request(project, "textDocument/codeAction", params, function(problem, actions)
      if problem or not actions or #actions == 0 then
        return say.info("%s", problem and problem.message or "Magy offers nothing here.")
      end
      vim.ui.select(actions, {
        prompt = "Magy",
        format_item = function(one)
          return one.title
        end,
      }, function(chosen)
        if chosen then
          carry_out(project, chosen)
        end
      end)
    end)
  end)
end

return M
