--- Draws the blocks of a transcript into its buffer: only those that changed.
---
--- Each block that is shown has an extmark at its first line, by which its place is found whatever was
--- drawn before it. `view.drawn` has for each block {lines, mark}, `view.order` those shown in order.

local config = require("magy.config")
local look = require("magy.view.look")
local session = require("magy.session")

local api = vim.api

local M = {}

M.ns = api.nvim_create_namespace("magy.blocks")
M.looks = api.nvim_create_namespace("magy.looks")
local tail = api.nvim_create_namespace("magy.tail")

local function row_of(view, drawn)
  return api.nvim_buf_get_extmark_by_id(view.buf, M.ns, drawn.mark, {})[1]
end

local function set_lines(view, first, last, lines)
  api.nvim_buf_set_lines(view.buf, first, last, false, lines)
end

--- Puts what a block looks like on its lines; `from`: the first line of it that changed.
local function decorate(view, drawn, row, from)
  local last = row + #drawn.lines
  api.nvim_buf_clear_namespace(view.buf, M.looks, row + from, last)
  for _, one in ipairs(drawn.decor) do
    local line, col, opts = one[1], one[2], one[3]
    if line >= from then
      local place = vim.tbl_extend("force", opts, { strict = false })
      if place.end_row then
        place.end_row = place.end_row + row
      end
      api.nvim_buf_set_extmark(view.buf, M.looks, row + line, col, place)
    end
  end
  drawn.decor = nil
end

--- Returns how many entries two lists have in common at their beginning, and how many more at their end.
local function alike(old, new)
  local most = math.min(#old, #new)
  local head = 0
  while head < most and old[head + 1] == new[head + 1] do
    head = head + 1
  end
  local foot = 0
  while foot < most - head and old[#old - foot] == new[#new - foot] do
    foot = foot + 1
  end
  return head, foot
end

--- Replaces the lines of a block that is shown by what it looks like now. While it streams, what is above
--- the first line that changed looks as before.
local function redraw(view, drawn, lines, decor, streamed)
  local row, old = row_of(view, drawn), drawn.lines
  local same, rest = alike(old, lines)
  set_lines(view, row + same, row + #old - rest, vim.list_slice(lines, same + 1, #lines - rest))
  api.nvim_buf_set_extmark(view.buf, M.ns, row, 0, { id = drawn.mark })
  drawn.lines, drawn.decor = lines, decor
  decorate(view, drawn, row, streamed and same or 0)
end

--- Puts blocks, which are not shown yet, before the line `row`.
local function insert(view, blocks, row)
  local lines = {}
  for _, block in ipairs(blocks) do
    vim.list_extend(lines, view.drawn[block].lines)
  end
  -- A buffer is never without a line: its one empty line gives way to the first blocks.
  local blank = view.empty and 1 or 0
  view.empty = false
  set_lines(view, row, row + blank, lines)
  for _, block in ipairs(blocks) do
    local drawn = view.drawn[block]
    drawn.mark = api.nvim_buf_set_extmark(view.buf, M.ns, row, 0, { id = drawn.mark })
    view.marks[drawn.mark] = block
    decorate(view, drawn, row, 0)
    row = row + #drawn.lines
  end
end

--- Takes the blocks out that stand in `view.order` from `first` to `last`.
local function remove(view, first, last)
  if first > last then
    return
  end
  local start, count = row_of(view, view.drawn[view.order[first]]), 0
  for at = first, last do
    local drawn = view.drawn[view.order[at]]
    count = count + #drawn.lines
    api.nvim_buf_del_extmark(view.buf, M.ns, drawn.mark)
    view.marks[drawn.mark] = nil
    drawn.mark = nil
  end
  api.nvim_buf_clear_namespace(view.buf, M.looks, start, start + count)
  if count == api.nvim_buf_line_count(view.buf) then
    view.empty = true
  end
  set_lines(view, start, start + count, {})
end

--- Makes the blocks that are shown those of the list `wanted`, in that order.
local function arrange(view, wanted)
  local old = view.order
  local head, foot = alike(old, wanted)
  remove(view, head + 1, #old - foot)
  if head < #wanted - foot then
    local row = view.empty and 0 or api.nvim_buf_line_count(view.buf)
    if foot > 0 then
      row = row_of(view, view.drawn[old[#old - foot + 1]])
    end
    insert(view, vim.list_slice(wanted, head + 1, #wanted - foot), row)
  end
  view.order = wanted
end

--- Below the last line: what goes on, and which prompts wait.
local function draw_tail(view)
  api.nvim_buf_clear_namespace(view.buf, tail, 0, -1)
  local lines = look.tail(view.state, session.on_its_way(view), not view.session and view.project.last or nil)
  if #lines > 0 then
    local last = api.nvim_buf_line_count(view.buf) - 1
    api.nvim_buf_set_extmark(view.buf, tail, last, 0, { virt_lines = lines })
  end
end

local function forget_gone(view)
  for block in pairs(view.drawn) do
    if view.state:get(block.id) ~= block then
      view.drawn[block] = nil
    end
  end
end

--- Returns whether all of a block is shown, and not only its head.
function M.is_open(view, block)
  local open = (view.opened or {})[block.id]
  if open == nil then
    return not config.get().fold or block.data.graph ~= nil or block.data.deliberation ~= nil
  end
  return open
end

--- Returns whether the drawing of a deliberation, 73 columns and the indent, does not fit the window.
local function is_narrow(view)
  local window = vim.fn.bufwinid(view.buf)
  return window ~= -1 and api.nvim_win_get_width(window) < 77
end

--- Draws what changed since the last call. The buffer must be loaded.
function M.draw(view)
  local changes, narrow = view.state:take(), is_narrow(view)
  if view.narrow ~= narrow then
    view.narrow = narrow
    for _, block in ipairs(view.state.blocks) do
      if block.data.deliberation then
        changes.blocks[block] = true
      end
    end
  end
  if view.fresh then
    view.drawn, view.order, view.marks, view.empty, view.fresh = {}, {}, {}, true, false
    api.nvim_buf_clear_namespace(view.buf, -1, 0, -1)
    set_lines(view, 0, -1, {})
    changes.order = true
    for _, block in ipairs(view.state.blocks) do
      changes.blocks[block] = true
    end
  end
  local moved = changes.order
  for block in pairs(changes.blocks) do
    local lines, decor = look.block(view.state, block, M.is_open(view, block), narrow)
    local drawn = view.drawn[block]
    if drawn and drawn.mark and #lines > 0 then
      redraw(view, drawn, lines, decor, block.streamed)
    else
      moved = moved or #lines > 0 or (drawn and drawn.mark ~= nil)
      if drawn and drawn.mark and #lines == 0 then
        drawn.goes = true
      else
        view.drawn[block] = { lines = lines, decor = decor }
      end
    end
  end
  if moved then
    local wanted = {}
    for _, block in ipairs(view.state.blocks) do
      local drawn = view.drawn[block]
      if drawn and #drawn.lines > 0 and not drawn.goes then
        table.insert(wanted, block)
      end
    end
    arrange(view, wanted)
    for block, drawn in pairs(view.drawn) do
      if drawn.goes then
        view.drawn[block] = nil
      end
    end
    forget_gone(view)
  end
  if changes.frame or moved then
    draw_tail(view)
  end
end

--- Returns the block at a line of the buffer (from 0), and its first line; nil above the first.
function M.block_at(view, row)
  local mark = api.nvim_buf_get_extmarks(view.buf, M.ns, { row, -1 }, 0, { limit = 1 })[1]
  if not mark then
    return nil
  end
  return view.marks[mark[1]], mark[2]
end

--- Returns how many lines a block has that is shown.
function M.height(view, block)
  return #view.drawn[block].lines
end

--- Returns the first line (from 0) of a block that is shown, or nil.
function M.row(view, block)
  local drawn = view.drawn and view.drawn[block]
  return drawn and drawn.mark and row_of(view, drawn) or nil
end

return M
