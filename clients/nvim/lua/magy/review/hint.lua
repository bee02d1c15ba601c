--- How to decide about the change at the cursor: said beside it, while the cursor is there.

local config = require("magy.config")
local draw = require("magy.review.draw")
local events = require("magy.events")
local maps = require("magy.maps")

local api = vim.api

local ns = api.nvim_create_namespace("magy.hint")

local hinted -- the buffer that has the hint

local function clear()
  if hinted and api.nvim_buf_is_valid(hinted) then
    api.nvim_buf_clear_namespace(hinted, ns, 0, -1)
  end
  hinted = nil
end

local function update()
  clear()
  local buf = api.nvim_get_current_buf()
  local at = config.get().review.hint and draw.at(buf, api.nvim_win_get_cursor(0)[1] - 1)
  if at then
    local words = ("  %s  %s"):format(maps.way("accept"), maps.way("reject"))
    local opts = { virt_text = { { words, "MagyMeta" } }, virt_text_pos = "eol_right_align" }
    api.nvim_buf_set_extmark(buf, ns, at.row, 0, opts)
    hinted = buf
  end
end

local group = api.nvim_create_augroup("magy.review.hint", {})

api.nvim_create_autocmd({ "CursorMoved", "BufEnter", "WinEnter" }, {
  group = group,
  callback = function(event)
    if hinted or draw.count(event.buf) > 0 then
      update()
    end
  end,
})

api.nvim_create_autocmd({ "BufLeave", "WinLeave" }, { group = group, callback = clear })

events.on("review", update)

return {}
