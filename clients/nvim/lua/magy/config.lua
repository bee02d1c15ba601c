--- The options, their defaults, and what a person set of them by `setup` or `vim.g.magy`.

local M = {}

M.defaults = {
  prefix = false,
  auto_context = true,
  window = { position = "auto", size = 0.5 },
  prompt_height = 8,
  turns = 10,
  patience = 20,
  review = { signs = true, hint = true, go_on = true, ask_reason = false },
  panel_height = 12,
  fold = true,
  settings = {},
}

-- What each option may be: a type of `vim.validate`, or a list of words.
local POSITIONS = { "auto", "right", "left", "bottom", "top", "tab" }

local function one_of(words)
  return function(value)
    return vim.tbl_contains(words, value), "one of: " .. table.concat(words, ", ")
  end
end

local function positive(value)
  return type(value) == "number" and value > 0, "a number above 0"
end

local RULES = {
  prefix = function(value)
    return value == false or (type(value) == "string" and value ~= ""), 'keys such as "<Leader>m", or false'
  end,
  auto_context = "boolean",
  ["window.position"] = one_of(POSITIONS),
  ["window.size"] = function(value)
    return type(value) == "number" and value > 0 and value < 1, "a share of the screen between 0 and 1"
  end,
  prompt_height = positive,
  turns = positive,
  patience = positive,
  ["review.signs"] = "boolean",
  ["review.hint"] = "boolean",
  ["review.go_on"] = "boolean",
  ["review.ask_reason"] = "boolean",
  panel_height = positive,
  fold = "boolean",
  settings = "table",
}

local given = {}

local function flat(options, prefix, into)
  for name, value in pairs(options) do
    local path = prefix .. name
    if type(value) == "table" and RULES[path] == nil then
      flat(value, path .. ".", into)
    else
      into[path] = value
    end
  end
  return into
end

--- Returns a sentence for each option that is wrong.
function M.problems(options)
  local found = {}
  for path, value in pairs(flat(options or {}, "", {})) do
    local rule = RULES[path]
    if rule == nil then
      table.insert(found, ("There is no option `%s`. `:help magy-options` lists them."):format(path))
    else
      local fine, wanted
      if type(rule) == "string" then
        fine, wanted = type(value) == rule, "a " .. rule
      else
        fine, wanted = rule(value)
      end
      if not fine then
        table.insert(found, ("The option `%s` must be %s, not %s."):format(path, wanted, vim.inspect(value)))
      end
    end
  end
  table.sort(found)
  return found
end

--- Takes options of the person's. Those that are wrong are said, and none of these counts then.
function M.set(options)
  local problems = M.problems(options)
  if #problems > 0 then
    vim.notify("Magy: " .. table.concat(problems, "\n"), vim.log.levels.ERROR)
    return
  end
  given = options or {}
end

--- Returns all options, with those of `vim.g.magy` and of `setup` on top of the defaults.
function M.get()
  local global = type(vim.g.magy) == "table" and vim.g.magy or {}
  if #M.problems(global) > 0 then
    global = {}
  end
  return vim.tbl_deep_extend("force", M.defaults, global, given)
end

--- Returns what was set that is wrong, for `:checkhealth`.
function M.wrong()
  return M.problems(type(vim.g.magy) == "table" and vim.g.magy or {})
end

return M
