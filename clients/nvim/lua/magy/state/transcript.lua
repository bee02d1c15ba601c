--- The transcript of a session: what the updates of the server come to, as blocks in an order.
---
--- Every update may come twice, deltas may be merged or missing, and pages of older entries may be put
--- in front at any time. `take` says which blocks changed since it was called last. Nothing here knows
--- of buffers or windows.

local sums = require("magy.state.sums")

local Transcript = {}
Transcript.__index = Transcript

--- Returns a transcript of the session of that id, without any block.
function Transcript.new(session)
  return setmetatable({
    session = session or "",
    blocks = {},
    seq = 0, -- the last entry that was applied
    floor = 1, -- the first one of the pages
    state = "idle",
    progress = "",
    title = nil,
    closed = false,
    options = {}, -- configId -> value
    choices = {}, -- configId -> values
    window = 0,
    context = 0,
    counted = 0, -- the last entry whose usage is part of `spent`
    spent = sums.nothing(),
    waiting = {},
    open = {}, -- open questions of the session and those below it, by id
    asked = {}, -- their ids, the oldest first
    answered = {}, -- id of a call of this session -> the question about it, once that is answered
    orphans = sums.nothing(), -- what a turn took whose prompt no page has yet
    children = {},
    restores = {}, -- seq -> who went back or forward
    early = {}, -- what became of prompts whose words are not known yet
    paging = false, -- a page is read: what it tells is not news
    known = {},
    page = nil, -- where the entries of an older page go
    pages = 0,
    changed = {},
    moved = true,
    framed = true,
  }, Transcript)
end

--- Returns the block with that id, or nil.
function Transcript:get(id)
  return self.known[id]
end

function Transcript:touch(block)
  self.changed[block] = true
end

--- What is not a block changed: state, title, sums, queue, children.
function Transcript:frame()
  self.framed = true
end

--- Returns the changes since the last call: {blocks = set, order, frame}.
function Transcript:take()
  local changes = { blocks = self.changed, order = self.moved, frame = self.framed }
  self.changed, self.moved, self.framed = {}, false, false
  return changes
end

--- Returns the place of the first block that is not in the log yet, of those since the last prompt.
function Transcript:_streams()
  local place = #self.blocks + 1
  for at = #self.blocks, 1, -1 do
    local block = self.blocks[at]
    if block.streamed then
      place = at
    elseif block.kind == "user" then
      break
    end
  end
  return place
end

--- Returns the block with that id, made where it belongs if there is none.
function Transcript:make(kind, id)
  local known = self.known[id]
  if known then
    return known
  end
  local page = self.page
  local block =
    { kind = kind, id = id, data = {}, seq = 0, last = 0, streamed = false, page = page and page.number or 0 }
  self.known[id] = block
  if page then
    table.insert(page.blocks, block)
  else
    -- A prompt of another editor may come after what is streamed about it.
    table.insert(self.blocks, kind == "user" and self:_streams() or #self.blocks + 1, block)
  end
  self.moved = true
  self:touch(block)
  return block
end

--- The same, and notes whether entry `seq` of the log is about it.
function Transcript:ensure(kind, id, seq)
  local known = self.known[id]
  local block = known or self:make(kind, id)
  if seq > 0 then
    block.streamed = false
    block.seq = block.seq > 0 and math.min(seq, block.seq) or seq
    block.last = math.max(seq, block.last)
  elseif not known then
    block.streamed = true
  end
  return block
end

--- Puts what is not nil into a block. While older entries are read, what was known before is newer
--- and stays.
function Transcript:merge(block, data)
  local filled
  if self.page and block.page ~= self.page.number then
    filled = self.page.filled[block] or {}
    self.page.filled[block] = filled
  end
  for key, value in pairs(data) do
    if not (filled and block.data[key] ~= nil and not filled[key]) then
      if filled then
        filled[key] = true
      end
      block.data[key] = value
    end
  end
  self:touch(block)
end

--- Returns the lists in which blocks stand, the latest first.
function Transcript:_lists()
  return self.page and { self.blocks, self.page.blocks } or { self.blocks }
end

local function place_of(list, block)
  for at = #list, 1, -1 do
    if list[at] == block then
      return at
    end
  end
end

function Transcript:remove(id)
  local block = self.known[id]
  if not block then
    return
  end
  self.known[id] = nil
  self.changed[block] = nil
  for _, list in ipairs(self:_lists()) do
    local at = place_of(list, block)
    if at then
      table.remove(list, at)
    end
  end
  self.moved = true
end

--- Puts a prompt, which enters the conversation now, at its end.
function Transcript:move_to_end(id)
  local block = self.known[id]
  if not block or block.page ~= (self.page and self.page.number or 0) then
    return
  end
  local list = self.page and self.page.blocks or self.blocks
  local at = place_of(list, block)
  if not at then
    return
  end
  table.remove(list, at)
  local place = self.page and #list + 1 or self:_streams()
  table.insert(list, place, block)
  self.moved = self.moved or place ~= at
end

--- Visits the blocks from the last one to the first; ends when `visit` returns true.
function Transcript:back(visit)
  for _, list in ipairs(self:_lists()) do
    for at = #list, 1, -1 do
      if visit(list[at]) then
        return
      end
    end
  end
end

--- Visits the last blocks before the place where new ones go.
function Transcript:back_here(visit)
  local list = self.page and self.page.blocks or self.blocks
  for at = #list, 1, -1 do
    if visit(list[at]) then
      return
    end
  end
end

--- Takes away what was streamed and never became part of the log.
function Transcript:drop_streamed()
  for _, block in ipairs(vim.list_slice(self.blocks)) do
    if block.streamed then
      self:remove(block.id)
    end
  end
end

--- Reads older entries by `read`: blocks that it makes stand before all others.
function Transcript:in_front(read)
  self.pages = self.pages + 1
  local page = { number = self.pages, blocks = {}, filled = {} }
  self.page, self.paging = page, true
  local fine, problem = pcall(read)
  self.page, self.paging = nil, false
  self.blocks = vim.list_extend(page.blocks, self.blocks)
  self.moved = true
  if not fine then
    error(problem, 0)
  end
end

return Transcript
