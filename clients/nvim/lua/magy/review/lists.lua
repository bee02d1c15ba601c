--- All changes under review in the quickfix list, and a file beside what it was before.

local connection = require("magy.connection")
local context = require("magy.context")
local data = require("magy.review.data")
local draw = require("magy.review.draw")
local harmless = require("magy.state.harmless").harmless
local projects = require("magy.project")
local say = require("magy.say")

local api = vim.api

local M = {}

local function count(text)
  local _, lines = (text or ""):gsub("\n", "")
  return lines + ((text or "") ~= "" and text:sub(-1) ~= "\n" and 1 or 0)
end

local function item(file, hunk)
  local agent = hunk.origins and hunk.origins[1] and hunk.origins[1].agent or "an agent"
  local text = draw.sentence(hunk)
  if text then
    text = ("%s: %s"):format(agent, text)
  else
    local line = (hunk.newText ~= "" and hunk.newText or hunk.oldText or ""):match("^%s*([^\n]*)")
    text = ("%s by %s +%d -%d  %s"):format(hunk.kind, agent, count(hunk.newText), count(hunk.oldText), harmless(line))
  end
  return {
    filename = vim.uri_to_fname(file.uri),
    lnum = hunk.range.start.line + 1,
    text = text,
    user_data = { hunkId = hunk.hunkId },
  }
end

--- Fills the quickfix list with all changes that wait for a decision, and opens it.
function M.quickfix()
  local project = projects.here(0)
  connection.awaited(project, function()
    data.list(project, function(entries)
      local items, waiting = {}, #entries
      if waiting == 0 then
        return say.info("No change waits for a decision.")
      end
      for place, entry in ipairs(entries) do
        items[place] = {}
        data.get(project, entry, function(file)
          for _, hunk in ipairs(file and file.hunks or {}) do
            table.insert(items[place], item(file, hunk))
          end
          waiting = waiting - 1
          if waiting == 0 then
            vim.fn.setqflist(
              {},
              " ",
              { title = "Magy: changes to review", items = vim.iter(items):flatten():totable() }
            )
            vim.cmd.stopinsert()
            -- A file that is chosen from the list goes to the window before: not to that of the prompt.
            local window = context.window()
            if window then
              api.nvim_set_current_win(window)
            else
              vim.cmd("topleft new")
            end
            vim.cmd("botright copen")
          end
        end)
      end
    end)
  end)
end

local function text_at(project, uri, done)
  connection.ask(project, "workspace/textDocumentContent", { uri = uri }, function(result)
    done(result.text)
  end)
end

--- Shows the file of this buffer beside what it was before, in a tab page of its own, as 'diff' does.
function M.diff()
  local project, buf = projects.here(0), api.nvim_get_current_buf()
  local file = data.files_of(project, buf)[1]
  if not file then
    return say.info(require("magy.review.decide").NONE_HERE)
  end
  local proposed = file.mode == "proposed"
  text_at(project, proposed and file.proposedUri or file.baseUri, function(text)
    vim.cmd("tab split")
    local half = api.nvim_get_current_win()
    vim.cmd.diffthis()
    vim.cmd(proposed and "rightbelow vnew" or "leftabove vnew")
    local other = api.nvim_get_current_buf()
    local lines = vim.split(text, "\n", { plain = true })
    if lines[#lines] == "" then
      table.remove(lines)
    end
    api.nvim_buf_set_lines(other, 0, -1, false, lines)
    local name = vim.fs.basename(api.nvim_buf_get_name(buf))
    pcall(api.nvim_buf_set_name, other, ("magy://%s/%s"):format(proposed and "proposed" or "before", name))
    vim.bo[other].buftype, vim.bo[other].bufhidden, vim.bo[other].swapfile = "nofile", "wipe", false
    draw.set_plain(project, buf, true)
    api.nvim_create_autocmd("BufWipeout", {
      buffer = other,
      callback = vim.schedule_wrap(function()
        draw.set_plain(project, buf, false)
      end),
    })
    api.nvim_create_autocmd("WinClosed", {
      pattern = tostring(half),
      once = true,
      callback = vim.schedule_wrap(function()
        if api.nvim_buf_is_valid(other) then
          api.nvim_buf_delete(other, { force = true }) -- alone it says nothing
        end
      end),
    })
    vim.bo[other].filetype, vim.bo[other].modifiable = vim.bo[buf].filetype, false
    vim.cmd.diffthis()
    vim.cmd.wincmd("p")
  end)
end

return M
