--- Undoing turns and redoing them: first a buffer shows what would change, then a key does it.

local connection = require("magy.connection")
local content = require("magy.state.text_of")
local projects = require("magy.project")
local prompt = require("magy.prompt")
local say = require("magy.say")
local session = require("magy.session")

local api = vim.api

local M = {}

local previews = {} -- buffer -> {view, wanted, preview}

local function params_of(shown)
  local wanted = shown.wanted
  return {
    sessionId = shown.view.session,
    turnId = wanted.turnId,
    undoes = wanted.undoes,
    files = wanted.files,
    conversation = wanted.conversation,
  }
end

local ACTIONS = { create = "comes back", change = "changes", remove = "goes", rename = "is renamed" }

--- Returns the lines that show a preview.
local function lines_of(shown)
  local preview, project, wanted = shown.preview, shown.view.project, shown.wanted
  local turns = ("%d turn%s"):format(#preview.turns, #preview.turns == 1 and "" or "s")
  local lines = { ("# %s %s"):format(wanted.undoes and "Redo" or "Undo", turns) }
  local goes = ("The conversation %s back, too."):format(wanted.undoes and "comes" or "goes")
  local conversation = preview.conversation and goes or "The conversation stays"
  if not preview.conversation then
    conversation = conversation .. ((preview.why or "") ~= "" and ": " .. preview.why or ".")
  end
  table.insert(lines, "# " .. conversation:gsub("\n", " "))
  local diffs = {}
  for _, file in ipairs(preview.files) do
    local path = projects.short(project, file.path)
    if file.conflict ~= "" then
      table.insert(lines, ("# left alone: %s: %s"):format(path, file.conflict))
    elseif file.action ~= "nothing" then
      if file.action == "rename" then
        path = ("%s → %s"):format(projects.short(project, file.movedFrom), path)
      end
      table.insert(lines, ("# %s: %s  +%d -%d"):format(ACTIONS[file.action], path, file.added, file.removed))
      vim.list_extend(diffs, vim.split(file.diff, "\n", { plain = true }))
    end
  end
  if #diffs == 0 then
    table.insert(lines, "# No file changes.")
  end
  return vim.list_extend(lines, diffs)
end

local function fill(buf)
  local lines = vim.tbl_map(require("magy.state.harmless").harmless, lines_of(previews[buf]))
  vim.bo[buf].modifiable = true
  api.nvim_buf_set_lines(buf, 0, -1, false, lines)
  vim.bo[buf].modifiable = false
end

--- Takes the preview away; the focus is where it was before.
local function leave(buf)
  local window = previews[buf].window
  previews[buf] = nil
  api.nvim_buf_delete(buf, { force = true })
  if api.nvim_win_is_valid(window) then
    api.nvim_set_current_win(window)
  end
end

local function done(shown, result)
  local changed, left = 0, {}
  for _, file in ipairs(result.files) do
    if file.conflict ~= "" then
      table.insert(left, projects.short(shown.view.project, file.path))
    elseif file.action ~= "nothing" then
      changed = changed + 1
    end
  end
  local what = {}
  if changed > 0 or not result.conversation then
    table.insert(what, ("%d file%s"):format(changed, changed == 1 and "" or "s"))
  end
  if result.conversation then
    table.insert(what, "the conversation")
  end
  local except = #left > 0 and " except " .. table.concat(left, ", ") or ""
  local rest = ""
  -- What was said is in the prompt then, to be said otherwise.
  if result.conversation and not shown.wanted.undoes and (result.prompt or "") ~= "" then
    local block = shown.view.state:get(result.turnId)
    if prompt.put(shown.view, block and content.words(block.data.content) or result.prompt) then
      rest = " The prompt is back."
    end
  end
  local verb = shown.wanted.undoes and "Redone" or "Undone"
  say.info("%s%s: %s.%s", verb, except, table.concat(what, " and "), rest)
  for _, file in ipairs(result.files) do
    for _, path in ipairs({ file.path, file.movedFrom ~= "" and file.movedFrom or nil }) do
      local buf = vim.fn.bufnr(path)
      if buf > 0 and api.nvim_buf_is_loaded(buf) then
        vim.cmd.checktime(tostring(buf))
      end
    end
  end
end

local function carry_out(buf)
  local shown = previews[buf]
  local params = params_of(shown)
  params.requestKey = say.id("restore")
  connection.ask(shown.view.project, "magy/checkpoint/restore", params, function(result)
    leave(buf)
    done(shown, result)
  end)
end

local function toggle(buf, part)
  local shown = previews[buf]
  local wanted = vim.tbl_extend("force", shown.wanted, { [part] = not shown.wanted[part] })
  if not wanted.files and not wanted.conversation then
    return say.info("Nothing would be undone then.")
  end
  local asked = { view = shown.view, wanted = wanted, window = shown.window }
  connection.ask(shown.view.project, "magy/checkpoint/preview", params_of(asked), function(preview)
    if previews[buf] then
      asked.preview = preview
      previews[buf] = asked
      fill(buf)
    end
  end)
end

--- Shows a preview on a tab page of its own: there is room for the diff, and all windows stay as they are.
local function open(shown)
  vim.cmd.stopinsert()
  shown.window = api.nvim_get_current_win()
  vim.cmd("tab split")
  local buf = api.nvim_create_buf(false, true)
  api.nvim_win_set_buf(0, buf)
  local name = shown.wanted.undoes and "redo" or "undo"
  api.nvim_buf_set_name(buf, ("magy://%s/%s/%d"):format(shown.view.project.name, name, buf))
  previews[buf] = shown
  vim.wo[0][0].winbar = " y do it  f files  c conversation  q leave all as it is"
  vim.bo[buf].buftype, vim.bo[buf].bufhidden, vim.bo[buf].swapfile = "nofile", "wipe", false
  vim.bo[buf].filetype = "diff"
  vim.b[buf].magy_root = shown.view.project.root
  local function map(key, action, words)
    vim.keymap.set("n", key, function()
      action(buf)
    end, { buffer = buf, nowait = true, desc = "Magy: " .. words })
  end
  map("y", carry_out, "do it")
  map("q", leave, "leave all as it is")
  map("f", function()
    toggle(buf, "files")
  end, "with or without files")
  map("c", function()
    toggle(buf, "conversation")
  end, "with or without the conversation")
  fill(buf)
end

local function preview(view, wanted)
  wanted = vim.tbl_extend("keep", wanted, { files = true, conversation = true })
  local shown = { view = view, wanted = wanted }
  connection.ask(view.project, "magy/checkpoint/preview", params_of(shown), function(result)
    shown.preview = result
    open(shown)
  end)
end

local function with_session(view, next)
  if not view.session then
    return say.info("No session is shown here.")
  end
  session.ensure(view, next)
end

--- Shows what undoing the last turn would change.
function M.undo(view)
  with_session(view, function()
    preview(view, {})
  end)
end

--- Shows what redoing the last undone turn would change.
function M.redo(view)
  with_session(view, function()
    connection.ask(view.project, "magy/checkpoint/list", { sessionId = view.session }, function(result)
      if not result.redo then
        return say.info("Nothing can be redone.")
      end
      preview(view, { undoes = result.redo })
    end)
  end)
end

--- Lists the turns; the one that is chosen is shown as what going back to before it would change.
function M.list(view)
  with_session(view, function()
    connection.ask(view.project, "magy/checkpoint/list", { sessionId = view.session }, function(result)
      local turns = vim.iter(result.checkpoints):rev():totable()
      if #turns == 0 then
        return say.info("There is no turn to go back to.")
      end
      vim.ui.select(turns, {
        prompt = "Go back to before",
        format_item = function(one)
          local state = one.state ~= "applied" and ("  (%s)"):format(one.state) or ""
          return ("%s  %d files%s"):format(require("magy.state.harmless").one_line(one.prompt), #one.files, state)
        end,
      }, function(chosen)
        if chosen then
          preview(view, { turnId = chosen.turnId })
        end
      end)
    end)
  end)
end

return M
