--- The sessions of a project: going on with another one, copying, naming, writing to a file, deleting.

local connection = require("magy.connection")
local fold = require("magy.state.fold")
local one_line = require("magy.state.harmless").one_line
local options = require("magy.options")
local projects = require("magy.project")
local prompt = require("magy.prompt")
local render = require("magy.view.render")
local say = require("magy.say")
local session = require("magy.session")
local Transcript = require("magy.state.transcript")

local api = vim.api

local M = {}

local STATES = { running = "  works", requires_action = "  asks" }

local function described(one)
  local title = one.title and one_line(one.title) or "(without a title)"
  local when = (one.updatedAt or ""):sub(1, 16):gsub("T", " ")
  local turns = ("%d turn%s"):format(one.turns or 0, one.turns == 1 and "" or "s")
  return ("%s  %s  %s%s"):format(when, title, turns, STATES[one.state] or "")
end

local LATEST, MOMENT = 100, 500 -- entries of a preview; milliseconds that it may take

--- Returns a buffer that shows the end of a session, as its transcript would.
local function preview(project, one)
  local buf = api.nvim_create_buf(false, true)
  local params = { sessionId = one.sessionId, limit = LATEST }
  local answer = project.client and project.client:request_sync("magy/session/events", params, MOMENT)
  local state = Transcript.new(one.sessionId)
  if answer and answer.result then
    fold.older(state, answer.result)
  end
  render.draw({
    project = project,
    session = one.sessionId,
    state = state,
    buf = buf,
    unsent = {},
    coming = {},
    fresh = true,
  })
  return buf
end

--- Has the person choose a session. A `vim.ui.select` that shows previews (by `preview_item`, as Neovim 0.12.3
--- has it in its manual) shows the end of each.
local function choose(project, words, done)
  local params = { cwd = project.root, limit = 200 }
  connection.ask(project, "magy/session/list", params, function(result)
    local list, previews = {}, {}
    for _, one in ipairs(result.sessions) do
      table.insert(list, one.agent ~= "rewrite" and one or nil)
    end
    if #list == 0 then
      return say.info("There are no sessions yet.")
    end
    local function preview_item(one)
      previews[one] = previews[one] or preview(project, one)
      return { buf = previews[one], pos = { api.nvim_buf_line_count(previews[one]), 0 } }
    end
    vim.ui.select(list, {
      prompt = words,
      kind = "magy_session",
      format_item = described,
      preview_item = preview_item,
    }, function(chosen)
      for _, buf in pairs(previews) do
        pcall(api.nvim_buf_delete, buf, { force = true })
      end
      if chosen then
        done(chosen)
      end
    end)
  end)
end

local function show(project, id)
  local view = session.main(project)
  session.show(view, id)
  prompt.show(view)
  session.ensure(view, function() end)
end

--- Has the person choose a session, this project's first, and goes on with it; `which` is "last": with that one.
function M.resume(_, which)
  local project = projects.here(0)
  if which == "last" then
    return connection.awaited(project, function()
      M.last(project)
    end)
  end
  choose(project, "Resume", function(chosen)
    show(project, chosen.sessionId)
  end)
end

--- Goes on with the session of the project before the one that is shown.
function M.last(project)
  session.find_last(project, session.main(project).session, function(last)
    if not last then
      return say.info("There is no other session of %s.", project.name)
    end
    show(project, last.sessionId)
  end)
end

--- Copies the session of a view and shows the copy.
function M.fork(view)
  if not view.session then
    return say.info("No session is shown here.")
  end
  local id = say.id("nvim")
  local params = { sessionId = view.session, newSessionId = id }
  connection.ask(view.project, "magy/session/fork", params, function()
    show(view.project, id)
    say.info("This is the copy.")
  end)
end

--- Gives the session of a view a title; "" asks for one.
function M.rename(view, title)
  if title ~= "" then
    return options.set(view, "title", title)
  end
  say.ask("Title: ", function(text)
    options.set(view, "title", text)
  end, view.state.title)
end

--- Deletes a session that the person chooses, for good.
function M.delete()
  local project = projects.here(0)
  choose(project, "Delete for good", function(chosen)
    vim.ui.select({ "No", "Delete it" }, { prompt = "Delete " .. described(chosen) .. "?" }, function(answer)
      if answer ~= "Delete it" then
        return
      end
      connection.ask(project, "magy/session/delete", { sessionId = chosen.sessionId }, function(result)
        say.info(result.deleted and "Deleted." or "It was gone already.")
        local view = session.main(project)
        if view.session == chosen.sessionId then
          session.show(view, nil)
        end
      end)
    end)
  end)
end

--- Writes the whole session of a view as Markdown to a file; "" asks for its name.
function M.export(view, path)
  if not view.session then
    return say.info("No session is shown here.")
  end
  local function write(name)
    local target = vim.fs.normalize(vim.startswith(name, "/") and name or vim.fs.joinpath(view.project.root, name))
    local cmd = vim.lsp.config.magy.cmd
    if type(cmd) ~= "table" then
      return say.warn("`cmd` is a function: run `magy sessions export` in a shell.")
    end
    local words = { cmd[1], "sessions", "export", view.session, "--output", target }
    vim.system(words, { text = true, cwd = view.project.root }, function(done)
      vim.schedule(function()
        if done.code == 0 then
          say.info("Written to %s.", target)
        else
          say.warn("%s", vim.trim(done.stderr ~= "" and done.stderr or done.stdout))
        end
      end)
    end)
  end
  if path ~= "" then
    return write(path)
  end
  local name = (view.state.title or view.session):gsub("[^%w%-]+", "-"):lower()
  say.ask("Write to: ", write, name .. ".md")
end

--- Lists what was allowed for good or for this session; the one that is chosen is withdrawn.
function M.permissions(view)
  local of = view.session and { sessionId = view.session } or { root = view.project.root }
  connection.ask(view.project, "magy/permission/list", of, function(result)
    if #result.grants == 0 then
      return say.info("Nothing was allowed for the session or the project.")
    end
    vim.ui.select(result.grants, {
      prompt = "Withdraw",
      format_item = function(one)
        return one_line(("%s `%s`  for the %s"):format(one.key, one.pattern, one.scope))
      end,
    }, function(chosen)
      if chosen then
        local params = vim.tbl_extend("force", of, { grantId = chosen.grantId })
        connection.ask(view.project, "magy/permission/withdraw", params, function()
          say.info("Withdrawn: Magy asks again.")
        end)
      end
    end)
  end)
end

return M
