--- Going back and forward again, told as a notice; what is out of the conversation is marked.

local content = require("magy.state.text_of")

local M = {}

local function files(count)
  return ("%d file%s"):format(count, count == 1 and "" or "s")
end

local function beginning(prompt)
  local line = vim.trim(content.text_of(prompt.data.content)):match("^[^\n]*")
  return vim.fn.strchars(line) > 60 and vim.fn.strcharpart(line, 0, 59) .. "…" or line
end

local function words(t, news, redone)
  local count, left = #(news.changes or {}), #(news.conflicts or {})
  local prompt = t:get(news.turnId)
  local what = {}
  if count > 0 or not news.conversation then
    table.insert(what, files(count))
  end
  if news.conversation then
    table.insert(what, "the conversation")
  end
  local before = prompt and not redone and (", back to before “%s”"):format(beginning(prompt)) or ""
  return table.concat(what, " and ") .. before .. (left > 0 and ("; %s left alone"):format(files(left)) or "")
end

local function mark(t, news, undoes, seq)
  t:back(function(block)
    if block.seq > 0 and block.seq < seq then
      if undoes ~= "" and block.data.undone == undoes then
        block.data.undone = nil
        t:touch(block)
      elseif undoes == "" and not block.data.undone then
        t:merge(block, { undone = news.restoreId })
      end
    end
    return undoes == "" and block.id == news.turnId
  end)
end

--- Applies a `_magy_restored` update.
function M.restored(t, news, seq)
  local undoes = news.undoes or ""
  t.restores[seq] = news
  local block = t:ensure("notice", "restored " .. news.restoreId, seq)
  local undone = undoes ~= "" and t:get("restored " .. undoes) or nil
  local redone = undoes ~= "" and not (undone and undone.data.redone)
  t:merge(block, {
    severity = "info",
    redone = redone or nil,
    title = redone and "Redone" or "Undone",
    description = words(t, news, redone),
  })
  if news.conversation then
    mark(t, news, undoes, seq)
  end
end

return M
