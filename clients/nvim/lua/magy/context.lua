--- What goes along with a prompt: what is around the cursor, as the server proposes it.

local config = require("magy.config")
local connection = require("magy.connection")
local editor = require("magy.editor")
local problems = require("magy.problems")
local projects = require("magy.project")

local api = vim.api

local M = {}

local function is_file(buf)
  return vim.bo[buf].buftype == "" and api.nvim_buf_get_name(buf) ~= ""
end

local last -- the window with a file that was left last

api.nvim_create_autocmd("WinLeave", {
  group = api.nvim_create_augroup("magy.context", {}),
  callback = function()
    if is_file(api.nvim_get_current_buf()) then
      last = api.nvim_get_current_win()
    end
  end,
})

--- Returns the window with the file that the person works in, or nil.
function M.window()
  if is_file(api.nvim_get_current_buf()) then
    return api.nvim_get_current_win()
  end
  if last and api.nvim_win_is_valid(last) and is_file(api.nvim_win_get_buf(last)) then
    return last
  end
  for _, window in ipairs(api.nvim_tabpage_list_wins(0)) do
    if is_file(api.nvim_win_get_buf(window)) then
      return window
    end
  end
end

--- Returns the lines from `first` to `last` (from 1) of a buffer as a range of LSP's.
function M.lines(buf, first, last_line)
  local count = api.nvim_buf_line_count(buf)
  if last_line >= count then
    local text = api.nvim_buf_get_lines(buf, count - 1, count, false)[1] or ""
    return { start = { line = first - 1, character = 0 }, ["end"] = { line = count - 1, character = #text } }
  end
  return { start = { line = first - 1, character = 0 }, ["end"] = { line = last_line, character = 0 } }
end

local function open_uris(buf)
  local infos = vim.tbl_filter(function(info)
    return info.bufnr ~= buf and is_file(info.bufnr)
  end, vim.fn.getbufinfo({ buflisted = 1, bufloaded = 1 }))
  table.sort(infos, function(a, b)
    return a.lastused > b.lastused
  end)
  local uris = vim.tbl_map(function(info)
    return vim.uri_from_bufnr(info.bufnr)
  end, infos)
  return vim.list_slice(uris, 1, 20)
end

--- Asks the server what may go along from a window; `range`: lines {first, last} that the person marked.
--- `done` gets a list of {label, on, block}.
function M.get(project, window, range, done)
  local buf = api.nvim_win_get_buf(window)
  local at = api.nvim_win_get_cursor(window)
  local info = vim.fn.getwininfo(window)[1]
  local diagnostics = vim.tbl_map(function(one)
    local made = editor.diagnostic(one)
    made.uri = nil
    return made
  end, vim.list_slice(vim.diagnostic.get(buf), 1, 200))
  local params = {
    uri = vim.uri_from_bufnr(buf),
    position = { line = at[1] - 1, character = at[2] },
    selection = range and M.lines(buf, range[1], range[2]) or nil,
    visible = M.lines(buf, info.topline, math.max(info.botline, info.topline)),
    diagnostics = diagnostics,
    openUris = open_uris(buf),
  }
  connection.request(project, "magy/context/get", params, function(_, result)
    local automatic = config.get().auto_context
    done(vim.tbl_map(function(item)
      local on = item.default and (automatic or item.kind == "selection")
      local label = item.label .. (item.kind == "selection" and " (marked)" or "")
      return { label = label, on = on, block = item.block }
    end, result and result.items or {}))
  end)
end

--- Returns the content blocks of a prompt: the text, and what goes along of `items`, as `get` gives them.
function M.blocks(project, text, items)
  local blocks = { { type = "text", text = text } }
  for _, item in ipairs(items) do
    if item.on then
      table.insert(blocks, item.block)
    end
  end
  if problems.named(text) then
    table.insert(blocks, problems.block(project))
  end
  return blocks
end

--- Returns whether a window shows a file of that project.
function M.belongs(project, window)
  return window ~= nil and projects.root_of(api.nvim_win_get_buf(window)) == project.root
end

return M
