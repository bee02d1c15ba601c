--- Which prompts wait, were admitted or dropped.

local text_of = require("magy.state.text_of").text_of

local M = {}

local function mark(t, ids, how, seq)
  for _, id in ipairs(ids) do
    local block = t:get(id)
    if block then
      if seq > 0 and block.last > 0 then
        block.last = math.max(seq, block.last)
      end
      t:merge(block, { queue = how })
    end
  end
end

local function words_of(t, id)
  local data = t:get(id) and t:get(id).data or {}
  local agent = data.mail and data.mail.agent
  return (agent and agent .. ": " or "") .. text_of(data.content)
end

local function has(list, id)
  return vim.iter(list):any(function(one)
    return one.messageId == id
  end)
end

--- Changes the list of what waits, as the person sees it.
local function now(t, news)
  local id, waiting = news.added, t.waiting
  local block = id and t:get(id)
  if id and not has(waiting, id) and not (block and block.data.queue == "admitted") then
    table.insert(waiting, { messageId = id, delivery = news.delivery or "steer", text = words_of(t, id) })
  end
  local gone = {}
  for _, one in ipairs(vim.list_extend(vim.list_slice(news.admitted or {}), news.dropped or {})) do
    gone[one] = true
  end
  waiting = vim.tbl_filter(function(one)
    return not gone[one.messageId]
  end, waiting)
  local order, rank = news.order or {}, {}
  for place, one in ipairs(order) do
    rank[one] = place
  end
  for place, one in ipairs(waiting) do
    rank[one.messageId] = rank[one.messageId] or #order + place
  end
  table.sort(waiting, function(a, b)
    return rank[a.messageId] < rank[b.messageId]
  end)
  t.waiting = waiting
  t:frame()
end

--- Applies a `_magy_queue` update.
function M.update(t, news, seq)
  if not t.paging then
    now(t, news)
  end
  local id = news.added
  local block = id and t:get(id)
  if id and not (block and block.data.queue) then
    mark(t, { id }, t.early[id] or "waiting", seq)
    t.early[id] = nil
  end
  mark(t, news.admitted or {}, "admitted", seq)
  for _, one in ipairs(news.admitted or {}) do
    if t:get(one) then
      t:move_to_end(one)
    else
      t.early[one] = "admitted"
    end
  end
  mark(t, news.dropped or {}, "dropped", seq)
  for _, one in ipairs(news.dropped or {}) do
    if not t:get(one) then
      t.early[one] = "dropped"
    end
  end
end

return M
