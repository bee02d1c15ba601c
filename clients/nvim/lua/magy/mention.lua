--- Choosing what a prompt names by `vim.ui.select`: files, symbols, skills and agents, as `@` completes them.

local connection = require("magy.connection")
local one_line = require("magy.state.harmless").one_line
local problems = require("magy.problems")
local prompt = require("magy.prompt")
local say = require("magy.say")

local api = vim.api

local M = {}

-- What stands at the beginning of a prompt, or means nothing.
local FIRST = { skill = true, agent = true, command = true }

local OTHERS = { label = "… others: write a part of the name" }

local function described(item)
  local words = item.detail and item.detail ~= "" and ("%s  %s"):format(item.label, one_line(item.detail)) or item.label
  local most = vim.o.columns - 8 -- the number of a choice stands before it
  return vim.fn.strchars(words) > most and vim.fn.strcharpart(words, 0, most - 1) .. "…" or words
end

--- Puts a name into the prompt of a window, at the cursor or where it must stand, and lets the person write on.
local function insert(window, item)
  if not api.nvim_win_is_valid(window) then
    return
  end
  api.nvim_set_current_win(window)
  local row, col = unpack(api.nvim_win_get_cursor(window))
  local line = api.nvim_get_current_line()
  if FIRST[item.kind] and item.label ~= "@problems" then
    row, col = 1, 0
  elseif not vim.fn.mode():find("^i") and line ~= "" then
    col = col + #vim.fn.strcharpart(line:sub(col + 1), 0, 1) -- behind what the cursor is on
  end
  local text = vim.trim(item.text) .. " "
  if col > 0 and not line:sub(1, col):find("%s$") then
    text = " " .. text
  end
  api.nvim_buf_set_text(0, row - 1, col, row - 1, col, { text })
  local behind = col + #text
  if behind == #api.nvim_get_current_line() then
    vim.cmd.startinsert({ bang = true })
  else
    api.nvim_win_set_cursor(window, { row, behind })
    vim.cmd.startinsert()
  end
end

--- Asks the server what completes `before`; `done` gets the items, and whether there are more.
local function ask(project, before, done)
  local params = { cwd = project.root, before = before }
  connection.ask(project, "magy/prompt/complete", params, function(result)
    local own = problems.completion(before)
    done(own and vim.list_extend({ own }, result.items) or result.items, result.incomplete)
  end)
end

local function before_cursor(buf, row, col)
  local lines = api.nvim_buf_get_text(buf, 0, 0, row - 1, col, {})
  return vim.trim(table.concat(lines, "\n"))
end

--- Has the person choose something that begins with `part`, and puts its name into the prompt.
function M.choose(view, part)
  local own = prompt.of(0) or prompt.open(view)
  local window = api.nvim_get_current_win()
  local row, col = unpack(api.nvim_win_get_cursor(window))
  local before = before_cursor(own.buf, row, col)
  ask(own.view.project, before .. (before == "" and "@" or " @") .. part, function(items, more)
    if more then
      items = vim.list_extend(vim.list_slice(items), { OTHERS })
    elseif #items == 0 then
      return say.info("Nothing begins with `@%s`.", part)
    end
    vim.ui.select(items, { prompt = "Name in the prompt", format_item = described }, function(chosen)
      if chosen == OTHERS then
        say.ask("A part of its name: ", function(text)
          M.choose(view, text)
        end, part)
      elseif chosen then
        insert(window, chosen)
      end
    end)
  end)
end

--- Shows what a skill says, in a window of its own.
local function read(project, name)
  local cmd = vim.lsp.config.magy.cmd
  if type(cmd) ~= "table" then
    return say.warn("`cmd` is a function: run `magy skills show %s` in a shell.", name)
  end
  local words = { cmd[1], "skills", "show", name }
  vim.system(words, { text = true, cwd = project.root }, function(done)
    vim.schedule(function()
      if done.code ~= 0 then
        return say.warn("%s", vim.trim(done.stderr ~= "" and done.stderr or done.stdout))
      end
      vim.cmd("botright new")
      local buf = api.nvim_get_current_buf()
      api.nvim_buf_set_lines(buf, 0, -1, false, vim.split(vim.trim(done.stdout), "\n", { plain = true }))
      vim.bo[buf].buftype, vim.bo[buf].bufhidden, vim.bo[buf].swapfile = "nofile", "wipe", false
      vim.bo[buf].filetype, vim.bo[buf].modifiable = "markdown", false
      vim.b[buf].magy_root = project.root
      pcall(api.nvim_buf_set_name, buf, ("magy://skill/%s"):format(name))
      vim.keymap.set("n", "q", "<Cmd>close<CR>", { buffer = buf, nowait = true, desc = "Magy: close this window" })
    end)
  end)
end

local USE, READ = "Use it in a prompt", "Read it"

--- Has the person choose one of the skills of the project, to use it in a prompt or to read it.
function M.skills(view)
  ask(view.project, "@", function(items)
    local skills = vim.tbl_filter(function(item)
      return item.kind == "skill"
    end, items)
    if #skills == 0 then
      return say.info("No skills yet: `magy skills new NAME` in a shell begins one.")
    end
    vim.ui.select(skills, { prompt = "Skills", format_item = described }, function(skill)
      if not skill then
        return
      end
      vim.ui.select({ USE, READ }, { prompt = skill.label }, function(what)
        if what == READ then
          read(view.project, skill.label:sub(2))
        elseif what == USE then
          prompt.open(view)
          insert(api.nvim_get_current_win(), skill)
        end
      end)
    end)
  end)
end

return M
