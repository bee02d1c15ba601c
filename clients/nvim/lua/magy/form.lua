--- Forms of MCP servers: the person is asked for one field after the other. The panel shows the whole form,
--- and the server of Magy checks what was filled in.

local M = {}

local function shown(choice)
  return choice.name ~= "" and ("%s (%s)"):format(choice.value, choice.name) or choice.value
end

--- Returns what can be chosen for a field, {text, value} each; nil where it is typed.
local function choices(field)
  local list = {}
  if field.type == "boolean" then
    list = { { text = "yes", value = "yes" }, { text = "no", value = "no" } }
  end
  for _, choice in ipairs(field.choices) do
    table.insert(list, { text = shown(choice), value = choice.value })
  end
  return #list > 0 and list or nil
end

--- Returns what stands in the input at first.
local function default(field)
  local value = field.default
  if type(value) == "table" then
    return table.concat(value, ",")
  elseif type(value) == "number" and value == math.floor(value) then
    return ("%d"):format(value)
  end
  return (value == nil or value == vim.NIL) and "" or tostring(value)
end

local function prompt(field)
  local left = field.required and "" or ", may be left out"
  return ("%s (%s%s): "):format(field.label, field.hint, left)
end

--- Asks for one field, and gives its value; "" is none. Nothing is given when the person has gone away.
local function ask(field, give)
  local list = not field.many and choices(field)
  if not list then
    return vim.ui.input({ prompt = prompt(field), default = default(field) }, function(value)
      if value then
        give(value)
      end
    end)
  end
  if not field.required then
    table.insert(list, { text = "(leave it out)", value = "" })
  end
  local options = {
    prompt = prompt(field),
    format_item = function(one)
      return one.text
    end,
  }
  vim.ui.select(list, options, function(one)
    if one then
      give(one.value)
    end
  end)
end

--- Asks for the fields of a form, and calls `done` with their values by name. Who leaves one leaves the
--- question open.
function M.fill(form, done, at, content)
  at, content = at or 1, content or {}
  local field = form.fields[at]
  if not field then
    return done(content)
  end
  ask(field, function(value)
    if value ~= "" then
      content[field.name] = value
    elseif field.required then
      require("magy.say").info("%s must be filled in.", field.label)
      return M.fill(form, done, at, content)
    end
    M.fill(form, done, at + 1, content)
  end)
end

return M
