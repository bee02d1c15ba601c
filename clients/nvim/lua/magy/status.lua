--- What a project does now, in a line: for winbars, and for a statusline of the person's.

local events = require("magy.events")
local one_line = require("magy.state.harmless").one_line
local projects = require("magy.project")
local session = require("magy.session")
local sums = require("magy.state.sums")

local M = {}

local STATES = { idle = "○ idle", running = "▸ working", requires_action = "? asks" }

--- Returns the questions that are open in a project, the oldest first.
function M.questions(project)
  local found, seen = {}, {}
  for _, view in ipairs(session.views(project)) do
    for _, id in ipairs(view.state.asked) do
      if not seen[id] then
        seen[id] = true
        table.insert(found, view.state.open[id])
      end
    end
  end
  return found
end

local function working(project)
  local count = 0
  for _, child in pairs(project.children or {}) do
    count = count + ((child.state == "running" or child.state == "queued") and 1 or 0)
  end
  return count
end

--- Returns how the project of a buffer is: {server, session, state, title, agent, model, questions, review,
--- agents, waiting, tokens, cost, context, window}. `review` counts changes that wait for a decision.
function M.status(buf)
  local project = projects.here(buf or 0)
  local view = session.main(project)
  local t = view.state
  local review = 0
  for _, file in pairs(project.review or {}) do
    review = review + file.pending
  end
  return {
    server = project.state,
    problem = project.problem,
    session = view.session,
    state = t.state,
    title = t.title,
    agent = t.options.agent,
    model = t.options.model,
    questions = #M.questions(project),
    review = review,
    agents = working(project),
    waiting = #t.waiting,
    tokens = t.spent.usage.totalTokens or 0,
    cost = t.spent.amount,
    context = t.context,
    window = t.window,
  }
end

--- Returns the same as a short text for a statusline; "" where Magy does not run.
function M.statusline(buf)
  local now = M.status(buf)
  if now.server == "stopped" or now.server == "starting" then
    return ""
  elseif now.server == "dead" then
    return "Magy ended"
  elseif now.server == "silent" then
    return "Magy does not answer"
  end
  local words = { "Magy " .. (STATES[now.state] or now.state) }
  if now.questions > 0 then
    words = { ("Magy asks %d"):format(now.questions) }
  end
  if now.review > 0 then
    table.insert(words, ("%d to review"):format(now.review))
  end
  return table.concat(words, " · ")
end

local function state_of(view)
  local project = view.project
  if project.state == "dead" then
    return "✗ the server ended"
  elseif project.state == "silent" then
    return "… the server does not answer"
  elseif project.state == "starting" then
    return "… starting"
  end
  local seconds = view.began and math.floor((vim.uv.now() - view.began) / 1000) or 0
  return (STATES[view.state.state] or view.state.state) .. (seconds > 0 and (" %d s"):format(seconds) or "")
end

local clock -- shows the seconds anew while a turn runs

events.on("changed", function(changed)
  if clock or not changed.began then
    return
  end
  clock = assert(vim.uv.new_timer())
  clock:start(
    1000,
    1000,
    vim.schedule_wrap(function()
      local some = vim.iter(projects.all()):any(function(project)
        return vim.iter(session.views(project)):any(function(view)
          return view.began ~= nil
        end)
      end)
      if clock and not some then
        clock:close()
        clock = nil
      end
      vim.cmd.redrawstatus({ bang = true })
    end)
  )
end)

local SHORTEST = 12 -- columns of a title, however narrow the window is

--- Returns a title in at most `room` columns.
local function cut(title, room)
  if vim.fn.strdisplaywidth(title) <= room then
    return title
  end
  local count = vim.fn.strchars(title)
  while count > 0 and vim.fn.strdisplaywidth(vim.fn.strcharpart(title, 0, count)) >= room do
    count = count - 1
  end
  return vim.trim(vim.fn.strcharpart(title, 0, count)) .. "…"
end

--- 'winbar' of transcripts.
function M.winbar()
  local window = vim.g.statusline_winid or 0
  local view = require("magy.view.buffer").view_of(vim.api.nvim_win_get_buf(window))
  if not view then
    return ""
  end
  local t = view.state
  local child = session.is_child(view) and t.children[view.session]
  local title = child and ("%s “%s”"):format(child.agent, child.name) or t.title or view.project.name
  local words = {}
  for _, option in ipairs({ "agent", "model" }) do
    table.insert(words, t.options[option])
  end
  if t.options.bypass == "on" then
    table.insert(words, "asks nothing")
  end
  vim.list_extend(words, sums.words(t.spent))
  if t.window > 0 and t.context > 0 then
    table.insert(words, ("%d%% full"):format(math.floor(100 * t.context / t.window)))
  end
  local count = working(view.project)
  if count > 0 then
    table.insert(words, ("%d agent%s"):format(count, count == 1 and "" or "s"))
  end
  -- Where there is no room for all, the title is cut, and then what is last; the state stays.
  local rest = vim
    .iter(words)
    :map(function(text)
      return " · " .. text
    end)
    :join("")
  local state = (" %s · "):format(state_of(view))
  local room = vim.api.nvim_win_get_width(window) - vim.fn.strdisplaywidth(state .. rest)
  local line = state .. cut(one_line(title), math.max(SHORTEST, room)) .. rest
  return (line:gsub("%%", "%%%%")) .. "%<"
end

events.on("ready", function()
  vim.cmd.redrawstatus({ bang = true })
end)

return M
