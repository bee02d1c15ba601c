--- Changes under review in their buffers: new lines are marked, the lines that they replaced stand above
--- them as virtual lines. Every mark moves along with what is typed.

local config = require("magy.config")
local data = require("magy.review.data")
local documents = require("magy.documents")
local events = require("magy.events")
local harmless = require("magy.state.harmless").harmless

local api = vim.api

local M = {}

local ns = api.nvim_create_namespace("magy.review")

local SIGNS = { add = "+", change = "~", delete = "-" }
--- What a hunk did that is of a file as a whole; `OLD` and `NEW` are what the server says of it.
local WHOLE = {
  create = "the file is new: NEW",
  remove = "the file is removed; it was OLD",
  rename = "the file was OLD before",
  mode = "it is NEW; it was OLD",
  link = "it is NEW; it was OLD",
  binary = "the file is NEW; it was OLD",
}

--- Returns what a hunk did to the file as a whole, in words; nil of one that is of lines.
function M.sentence(hunk)
  local words = { OLD = hunk.oldText, NEW = hunk.newText }
  return WHOLE[hunk.kind] and harmless((WHOLE[hunk.kind]:gsub("%u%u%u", words)))
end

local function split(text)
  local lines = vim.split(text, "\n", { plain = true })
  if lines[#lines] == "" then
    table.remove(lines)
  end
  return lines
end

--- Returns a line as chunks of a virtual line, the words in `words` set off.
local function chunks(prefix, line, words, group)
  local made, at = { { prefix, group } }, 0
  for _, word in ipairs(words) do
    local first, last = math.min(word.start, #line), math.min(word["end"], #line)
    if first > at then
      table.insert(made, { harmless(line:sub(at + 1, first)), group })
    end
    table.insert(made, { harmless(line:sub(first + 1, last)), "MagyWord" })
    at = last
  end
  table.insert(made, { harmless(line:sub(at + 1)):gsub("\t", "    "), group })
  return vim.tbl_filter(
    function(chunk)
      return chunk[1] ~= ""
    end,
    vim.tbl_map(function(chunk)
      return { (chunk[1]:gsub("[\n\t]", " ")), chunk[2] }
    end, made)
  )
end

local function words_of(hunk, side, line)
  return vim.tbl_filter(function(word)
    return word.side == side and word.line == line
  end, hunk.words or {})
end

local function virtual(hunk, side)
  local text = side == "old" and hunk.oldText or hunk.newText
  local group = side == "old" and "MagyRemoved" or "MagyAdded"
  local made = {}
  for number, line in ipairs(split(text or "")) do
    table.insert(made, chunks(side == "old" and "- " or "+ ", line, words_of(hunk, side, number - 1), group))
  end
  return made
end

--- Returns what stands behind the first line of a hunk.
local function remarks(file, hunk)
  local made = {}
  local said = M.sentence(hunk)
  if said then
    table.insert(made, { "  Magy: " .. said, "MagyQuestion" })
  end
  if hunk.state == "conflict" then
    table.insert(made, { "  you have changed these lines since", "MagyWarning" })
  elseif file.mode == "proposed" then
    table.insert(made, { "  proposed", "MagyMeta" })
  end
  for _, comment in ipairs(hunk.comments or {}) do
    table.insert(made, { "  » " .. harmless(comment.text):gsub("%s+", " "), "MagyMeta" })
  end
  return #made > 0 and made or nil
end

local function new_words(buf, hunk, first)
  for _, word in ipairs(hunk.words or {}) do
    if word.side == "new" then
      local row = first + word.line
      local opts = { end_row = row, end_col = word["end"], hl_group = "MagyWord", strict = false, priority = 210 }
      pcall(api.nvim_buf_set_extmark, buf, ns, row, word.start, opts)
    end
  end
end

--- Returns the first line of a hunk, and the line after its last.
local function span(hunk, count)
  local last = hunk.range["end"].line + (hunk.range["end"].character > 0 and 1 or 0)
  return math.min(hunk.range.start.line, count - 1), math.min(last, count)
end

local function sign(buf, hunk, first, last, group)
  for row = first, math.max(first, last - 1) do
    local opts = { sign_text = SIGNS[hunk.kind] or "!", sign_hl_group = group, strict = false }
    api.nvim_buf_set_extmark(buf, ns, row, 0, opts)
  end
end

--- Puts the old lines of a hunk above the new ones; of what is proposed, the new lines below the old ones.
local function draw_others(buf, hunk, proposed, last)
  local lines = M.sentence(hunk) and {} or virtual(hunk, proposed and "new" or "old")
  if #lines == 0 then
    return
  end
  local anchor = math.min(proposed and math.max(0, last - 1) or hunk.anchor, api.nvim_buf_line_count(buf) - 1)
  local above = not proposed and hunk.above
  api.nvim_buf_set_extmark(buf, ns, anchor, 0, { virt_lines = lines, virt_lines_above = above })
  if above and anchor == 0 then
    M.uncover(buf, #lines)
  end
end

--- Draws a hunk and returns the mark that keeps its place; `plain`: nothing but that mark.
local function draw_hunk(buf, file, hunk, plain)
  local first, last = span(hunk, api.nvim_buf_line_count(buf))
  local proposed = file.mode == "proposed"
  local group = proposed and "MagyRemoved" or "MagyAdded"
  local opts = { right_gravity = last > first, strict = false }
  if last > first then
    opts.end_row, opts.end_right_gravity = last, false
  end
  if plain then
    return api.nvim_buf_set_extmark(buf, ns, first, 0, opts)
  end
  opts.virt_text = remarks(file, hunk)
  if last > first then
    opts.hl_group, opts.hl_eol = group, true
  end
  if config.get().review.signs then
    sign(buf, hunk, first, last, group)
  end
  draw_others(buf, hunk, proposed, last)
  if not proposed then
    new_words(buf, hunk, first)
  end
  return api.nvim_buf_set_extmark(buf, ns, first, 0, opts)
end

--- Scrolls the current window so that all of a change is seen, `at` as M.at returns it: its lines, and those
--- that stand above or below them. Where there is no room, its beginning.
function M.reveal(at)
  local proposed = at.file.mode == "proposed"
  local others = proposed and at.hunk.newText or at.hunk.oldText
  local count = M.sentence(at.hunk) and 0 or #split(others or "")
  local above = not proposed and at.hunk.above and count or 0
  local first, top = at.row + 1, vim.fn.line("w0")
  local room = vim.fn.getwininfo(api.nvim_get_current_win())[1].height
  local function is_below()
    local range = { start_row = top - 1, end_row = math.max(at.row, at.last - 1) }
    return api.nvim_win_text_height(0, range).all + count - above > room
  end
  while top < first and is_below() do
    top = top + 1
  end
  if top >= first then
    vim.fn.winrestview({ topline = first, topfill = math.min(above, room - 1) })
  elseif top > vim.fn.line("w0") then
    vim.fn.winrestview({ topline = top })
  end
end

--- Scrolls windows that show the first line down to the virtual lines above it.
function M.uncover(buf, count)
  for _, window in ipairs(vim.fn.win_findbuf(buf)) do
    api.nvim_win_call(window, function()
      if vim.fn.line("w0") == 1 then
        vim.fn.winrestview({ topline = 1, topfill = count })
      end
    end)
  end
end

local drawn = {} -- buffer -> list of {id, file, hunk}
local plain = {} -- buffers in which 'diff' shows the changes

--- Draws all hunks of a buffer anew.
function M.draw(project, buf)
  api.nvim_buf_clear_namespace(buf, ns, 0, -1)
  local list = {}
  for _, file in ipairs(data.files_of(project, buf)) do
    for _, hunk in ipairs(file.hunks) do
      table.insert(list, { id = draw_hunk(buf, file, hunk, plain[buf]), file = file, hunk = hunk })
    end
  end
  drawn[buf] = #list > 0 and list or nil
  require("magy.review.keys").update(buf, #list > 0)
end

--- Has the changes of a buffer drawn, or only kept in mind while 'diff' shows them.
function M.set_plain(project, buf, value)
  plain[buf] = value or nil
  if api.nvim_buf_is_loaded(buf) then
    M.draw(project, buf)
  end
end

events.on("review", function(project, uri)
  local buf = documents.buffer_of(uri)
  if buf then
    M.draw(project, buf)
  end
end)

api.nvim_create_autocmd("BufWipeout", {
  group = api.nvim_create_augroup("magy.review.draw", {}),
  callback = function(event)
    drawn[event.buf], plain[event.buf] = nil, nil
  end,
})

--- Returns the hunk at a line (from 0) of a buffer, or nil: {file, hunk, row = its first line, last = the line
--- after it}.
function M.at(buf, line)
  for _, one in ipairs(drawn[buf] or {}) do
    local mark = api.nvim_buf_get_extmark_by_id(buf, ns, one.id, { details = true })
    if mark[1] then
      local last = math.max(mark[1] + 1, mark[3].end_row or 0)
      if line >= mark[1] and line < last then
        return { file = one.file, hunk = one.hunk, row = mark[1], last = last }
      end
    end
  end
end

--- Returns the first line (from 0) of the next change after a line, or of the previous one before it; nil:
--- there is none in that direction.
function M.beyond(buf, line, direction)
  local found
  for _, one in ipairs(drawn[buf] or {}) do
    local row = api.nvim_buf_get_extmark_by_id(buf, ns, one.id, {})[1]
    if direction == "next" and row and row > line then
      found = math.min(found or row, row)
    elseif direction == "previous" and row and row < line then
      found = math.max(found or row, row)
    end
  end
  return found
end

--- Returns how many changes wait in a buffer.
function M.count(buf)
  return #(drawn[buf] or {})
end

return M
