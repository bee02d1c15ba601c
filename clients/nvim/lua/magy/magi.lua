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

local function holds(ruling)
  if ruling.accepted then
    return ("It holds in the place of %s."):format(ruling.overturns)
  end
  return ("It would overturn %s, which holds until you accept it: a does."):format(ruling.overturns)
end

--- Opens lines in a tab of their own; returns the buffer.
local function page(lines, filetype)
  local buf = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, vim.tbl_map(harmless, lines))
  vim.bo[buf].modifiable, vim.bo[buf].bufhidden, vim.bo[buf].filetype = false, "wipe", filetype
  vim.cmd.tabnew()
  vim.api.nvim_win_set_buf(0, buf)
  return buf
end

--- Shows the drawing and the report of a ruling of the project, worked out again.
local function show(project, ruling)
  local same = ruling.same and "Worked out again from the votes: the same as in the log, byte for byte."
    or "The log has ANOTHER ruling than these votes come to."
  local lines = { same, "" }
  vim.list_extend(lines, ruling.overturns and { holds(ruling), "" } or {})
  vim.list_extend(lines, ruling.shown.box)
  vim.list_extend(lines, { "", unpack(vim.split(vim.trim(ruling.report), "\n")) })
  local buf = page(lines, "markdown")
  if not ruling.overturns or ruling.accepted then
    return
  end
  vim.keymap.set("n", "a", function()
    local params = { sessionId = ruling.id:match("^(.*)/[^/]*$"), rulingId = ruling.id }
    connection.ask(project, "magy/magi/accept", params, function(result)
      ruling.accepted = result.accepted
      say.info("Accepted. %s", holds(ruling))
    end)
  end, { buffer = buf, desc = "accept this ruling" })
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
      return show(view.project, result.rulings[1])
    end
    vim.ui.select(result.rulings, {
      prompt = "Ruling",
      format_item = function(one)
        return one_line(("%s  %s %d %%  %s"):format(one.at:sub(1, 16), one.final, one.confidence, one.shown.question))
      end,
    }, function(chosen)
      if chosen then
        show(view.project, chosen)
      end
    end)
  end)
end

local function felt(entry)
  local line = "%s  %+.1f  counts %d %%  %s: %s"
  local counts = math.floor(100 * entry.strength + 0.5)
  return one_line(line:format(entry.date:sub(1, 10), entry.valence, counts, entry.emotion, entry.lesson))
end

--- Shows what CASPER remembers in the view's project, newest first; entries can be taken out, and all be said to
--- have been read. `change`: parameters of the request; `into`: the buffer that shows it already.
function M.emotional_log(view, change, into)
  local params = vim.tbl_extend("error", { cwd = view.project.root }, type(change) == "table" and change or {})
  connection.ask(view.project, "magy/magi/log", params, function(log)
    local lines = { one_line(log.path), "x takes an entry out, r says that you have read all of it", "" }
    if log.reviewDue then
      lines[3] = "Many strong feelings within a week: none is used until you have read them."
    elseif #log.entries == 0 then
      lines[3] = "CASPER remembers nothing here."
    end
    vim.list_extend(lines, vim.tbl_map(felt, log.entries))
    if into and vim.api.nvim_buf_is_valid(into) then
      vim.bo[into].modifiable = true
      vim.api.nvim_buf_set_lines(into, 0, -1, false, vim.tbl_map(harmless, lines))
      vim.bo[into].modifiable = false
    else
      into = page(lines, "")
    end
    local buf = into
    vim.keymap.set("n", "x", function()
      local entry = log.entries[vim.api.nvim_win_get_cursor(0)[1] - 3]
      if entry and vim.fn.confirm("Take this entry out for good?", "&Yes\n&No", 2) == 1 then
        M.emotional_log(view, { delete = { entry.id } }, buf)
      end
    end, { buffer = buf, desc = "take this entry out" })
    vim.keymap.set("n", "r", function()
      M.emotional_log(view, { reviewed = true }, buf)
    end, { buffer = buf, desc = "say that you have read it" })
  end)
end

return M
