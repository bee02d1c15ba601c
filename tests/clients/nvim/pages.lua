-- nvim --clean --headless -l pages.lua CLIENT RECORDING...
-- Prints as JSON, for each recorded session, {size: blocks}: what it comes to when its log is read in
-- pages of so many entries, the newest first.

package.path = vim.fs.dirname(arg[0]) .. "/?.lua;" .. package.path
local recording = require("recording")
local fold = require("magy.state.fold")
local Transcript = require("magy.state.transcript")

local function log_of(lines)
  local result = lines[1].result
  local events = vim.list_slice(result.events)
  for at = 2, #lines do
    local news = lines[at].method == "magy/session/update" and lines[at].params.update
    local stamp = news and vim.tbl_get(news, "_meta", "magy") or {}
    if stamp.seq then
      table.insert(events, { seq = stamp.seq, at = stamp.at or 0, update = news })
    end
  end
  local summary = vim.tbl_extend("force", result.summary, { interactions = {} })
  return events, summary
end

local function in_pages(lines, size)
  local live, events, summary = recording.recorded(lines), log_of(lines)
  local newest = vim.list_slice(events, math.max(1, #events - size + 1))
  local t = Transcript.new("s-1")
  local page = { summary = summary, headSeq = events[#events].seq, floorSeq = newest[1].seq, events = newest }
  fold.attached(t, page, false)
  for _, child in pairs(live.children) do
    fold.child_changed(t, child)
  end
  for last = #events - size, 1, -size do
    fold.older(t, { events = vim.list_slice(events, math.max(1, last - size + 1), last) })
  end
  return recording.shown(t)
end

local found = {}
for _, path in ipairs(vim.list_slice(arg, 2)) do
  local lines, sizes = recording.read(path), {}
  for _, size in ipairs({ 1, 3, 7, 1000 }) do
    sizes[tostring(size)] = in_pages(lines, size)
  end
  table.insert(found, sizes)
end
io.write(vim.json.encode(found))
