--- Questions that three agents judge: how one begins, and the rulings of a session read again.

local connection = require("magy.connection")
local one_line = require("magy.state.harmless").one_line
local harmless = require("magy.state.harmless").harmless
local prompt = require("magy.prompt")
local say = require("magy.say")

local M = {}

--- Has three agents judge the question `text`; "" asks for it. The agent of the session puts it to them.
function M.deliberate(view, text)
  local function ask(question)
    prompt.ask(view, "@magi " .. question)
  end
  if text ~= "" then
    return ask(text)
  end
  say.ask("Deliberate about: ", ask)
end

--- Shows the drawing and the report of a ruling, worked out again.
local function show(ruling)
  local same = ruling.same and "Worked out again from the votes: the same as in the log, byte for byte."
    or "The log has ANOTHER ruling than these votes come to."
  local lines = { same, "" }
  vim.list_extend(lines, ruling.shown.box)
  vim.list_extend(lines, { "", unpack(vim.split(vim.trim(ruling.report), "\n")) })
  local buf = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, vim.tbl_map(harmless, lines))
  vim.bo[buf].modifiable, vim.bo[buf].bufhidden, vim.bo[buf].filetype = false, "wipe", "markdown"
  vim.cmd.tabnew()
  vim.api.nvim_win_set_buf(0, buf)
end

--- Chooses a ruling of the session, unless there is only one, and shows it.
function M.rulings(view)
  if not view.session then
    return say.info("No session is shown here.")
  end
  connection.ask(view.project, "magy/magi/list", { sessionId = view.session }, function(result)
    if #result.rulings == 0 then
      return say.info("Nothing was deliberated here; `:Magy magi QUESTION` does that.")
    elseif #result.rulings == 1 then
      return show(result.rulings[1])
    end
    vim.ui.select(result.rulings, {
      prompt = "Ruling",
      format_item = function(one)
        return one_line(("%s  %s %d %%  %s"):format(one.at:sub(1, 16), one.final, one.confidence, one.shown.question))
      end,
    }, function(chosen)
      if chosen then
        show(chosen)
      end
    end)
  end)
end

return M
