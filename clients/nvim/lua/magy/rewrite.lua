--- Rewriting in place: the lines are dimmed, what will stand there is shown below while it streams, and at
--- the end it is one change under review.

local connection = require("magy.connection")
local context = require("magy.context")
local documents = require("magy.documents")
local events = require("magy.events")
local harmless = require("magy.state.harmless").harmless
local projects = require("magy.project")
local say = require("magy.say")

local api = vim.api

local M = {}

local ns = api.nvim_create_namespace("magy.rewrite")
local going = {} -- session id -> {project, buf, marks}
local over = {} -- ids of those that have ended: the answer to the request may come later

local function clear(one)
  for _, mark in ipairs(one.marks) do
    if api.nvim_buf_is_valid(one.buf) then
      api.nvim_buf_del_extmark(one.buf, ns, mark)
    end
  end
  one.marks = {}
end

local function draw(one, range, text)
  clear(one)
  local count = api.nvim_buf_line_count(one.buf)
  local first = math.min(range.start.line, count - 1)
  local last = range["end"].line + (range["end"].character > 0 and 1 or 0)
  last = math.max(first + 1, math.min(last, count))
  local lines = {}
  for _, line in ipairs(text ~= "" and vim.split(text:gsub("\n$", ""), "\n", { plain = true }) or {}) do
    table.insert(lines, { { "+ " .. harmless(line):gsub("\t", "    "), "MagyAdded" } })
  end
  if #lines == 0 then
    lines = { { { "  Magy rewrites this; :Magy stop here ends it", "MagyMeta" } } }
  end
  one.marks = {
    api.nvim_buf_set_extmark(one.buf, ns, first, 0, {
      end_row = last,
      hl_group = "MagyReplaced",
      hl_eol = true,
      strict = false,
      sign_text = "…",
    }),
    api.nvim_buf_set_extmark(one.buf, ns, last - 1, 0, { virt_lines = lines }),
  }
end

--- It ended otherwise than by a change in the text: what came of it is not lost.
local function ended(news)
  if news.state == "applied" then
    return (news.message or "") ~= "" and say.info("%s", news.message)
  end
  local why = (news.message or "") ~= "" and news.message or "Rewriting was stopped."
  if news.text ~= "" then
    vim.fn.setreg('"', news.text)
    why = why .. " The new text is in the unnamed register."
  end
  say.warn("%s", why)
end

events.on("magy/rewrite/draft", function(project, news)
  local one = going[news.sessionId]
  if not one then
    local buf = documents.buffer_of(news.uri)
    if not buf or news.state ~= "streaming" then
      return
    end
    one = { project = project, buf = buf, marks = {} }
    going[news.sessionId] = one
  end
  if news.state == "streaming" and api.nvim_buf_is_loaded(one.buf) then
    return draw(one, news.range, news.text)
  end
  clear(one)
  going[news.sessionId], over[news.sessionId] = nil, true
  if news.state ~= "streaming" then
    ended(news)
  end
end)

events.on("died", function(project)
  for id, one in pairs(going) do
    if one.project == project then
      clear(one)
      going[id] = nil
    end
  end
end)

--- Rewrites lines {first, last}, or without them the paragraph at the cursor, by an instruction; "" asks for it.
function M.start(range, instruction)
  local project, buf = projects.here(0), api.nvim_get_current_buf()
  if vim.bo[buf].buftype ~= "" then
    return say.info("Only the text of files can be rewritten.")
  end
  if not range then
    local last = vim.fn.search("^\\s*$", "nW")
    range = { vim.fn.search("^\\s*$", "nbW") + 1, last > 0 and last - 1 or api.nvim_buf_line_count(buf) }
  end
  local function begin(words)
    connection.when_ready(project, function()
      local params = {
        requestKey = say.id("rewrite"),
        uri = vim.uri_from_bufnr(buf),
        range = context.lines(buf, range[1], range[2]),
        instruction = words,
        cwd = project.root,
      }
      connection.request(project, "magy/rewrite/start", params, function(problem, result)
        if problem then
          return say.problem(problem)
        end
        if not going[result.sessionId] and not over[result.sessionId] then
          going[result.sessionId] = { project = project, buf = buf, marks = {} }
          draw(going[result.sessionId], params.range, "")
        end
      end)
    end)
  end
  if instruction ~= "" then
    return begin(instruction)
  end
  say.ask("Rewrite as: ", begin)
end

--- Stops the rewriting at the cursor; returns whether there was one.
function M.stop_here()
  local row, buf = api.nvim_win_get_cursor(0)[1] - 1, api.nvim_get_current_buf()
  for id, one in pairs(going) do
    local id_of = one.buf == buf and one.marks[1]
    local mark = id_of and api.nvim_buf_get_extmark_by_id(buf, ns, id_of, { details = true }) or {}
    if mark[1] and row >= mark[1] and row < mark[3].end_row then
      connection.ask(one.project, "magy/session/cancel", { sessionId = id })
      return true
    end
  end
  return false
end

return M
