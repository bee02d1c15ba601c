--- Going from what a transcript says to what it is about, and from prompt to prompt in it.

local buffers = require("magy.view.buffer")
local context = require("magy.context")
local render = require("magy.view.render")
local say = require("magy.say")
local words = require("magy.state.words")

local api = vim.api

local M = {}

--- Shows a file in the window where the person works, or in a new one; `line` from 1.
function M.file(path, line)
  local window = context.window()
  local name = { vim.fn.fnameescape(path), magic = { file = false, bar = false } }
  if not window then
    vim.cmd.split(vim.tbl_extend("force", name, { mods = { split = "topleft" } }))
  else
    api.nvim_set_current_win(window)
    if api.nvim_buf_get_name(0) ~= path then
      vim.cmd.edit(name)
    end
  end
  if line then
    api.nvim_win_set_cursor(0, { math.max(1, math.min(line, api.nvim_buf_line_count(0))), 0 })
    vim.cmd.normal({ "zv", bang = true })
  end
end

--- Returns the file whose name the cursor is on, and a line after it, or nil.
local function named(project)
  local word = vim.fn.expand("<cWORD>"):gsub("^[`'\"(<%[]+", ""):gsub("[`'\")>%],.]+$", "")
  local path, line = word:match("^(.-):(%d+)")
  path = path or word
  if path == "" then
    return nil
  end
  local whole = vim.fs.normalize(vim.startswith(path, "/") and path or vim.fs.joinpath(project.root, path))
  local stat = vim.uv.fs_stat(whole)
  return stat and stat.type == "file" and whole or nil, tonumber(line)
end

--- Visits what the cursor is at: a question, an agent, a file.
function M.here()
  local view = buffers.view_of(0)
  if not view then
    return say.info("This is no transcript.")
  end
  local block = render.block_at(view, api.nvim_win_get_cursor(0)[1] - 1)
  if block and block.kind == "question" and not block.data.outcome then
    return require("magy.panel").answer()
  end
  local child = block
    and (
      words.task_session(block, api.nvim_get_current_line(), vim.fn.virtcol(".") - 1)
      or words.session_of(view.state, block)
    )
  if child then
    return require("magy.children").show(view.project, child)
  end
  local path, line = named(view.project)
  local place = block and block.kind == "tool" and (block.data.locations or {})[1]
  if path or place then
    return M.file(path or place.path, line or (place and place.line and place.line + 1))
  end
  say.info("Nothing here can be visited.")
end

--- Goes to the next (1) or previous (-1) prompt.
function M.prompt(step)
  local view = buffers.view_of(0)
  if not view then
    return
  end
  local row, found = api.nvim_win_get_cursor(0)[1] - 1, nil
  for _, block in ipairs(view.order or {}) do
    local at = block.kind == "user" and render.row(view, block)
    if at and step > 0 and at + 1 > row then
      found = found or at + 1
    elseif at and step < 0 and at + 1 < row then
      found = at + 1
    end
  end
  if found then
    api.nvim_win_set_cursor(0, { found + 1, 0 })
  end
end

--- Goes from a child to the transcript of its parent.
function M.parent()
  local view = buffers.view_of(0)
  local parent = view and view.session and words.parent_of(view.session)
  if not parent then
    return say.info("This session has no parent.")
  end
  require("magy.children").show(view.project, parent)
end

return M
