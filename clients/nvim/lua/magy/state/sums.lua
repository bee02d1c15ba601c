--- Sums of tokens and dollars, and their words.

local M = {}

function M.nothing()
  return { usage = {}, amount = 0, unpriced = 0 }
end

local function add_usage(spent, usage)
  for kind, tokens in pairs(usage or {}) do
    if type(tokens) == "number" then
      spent.usage[kind] = (spent.usage[kind] or 0) + tokens
    end
  end
end

--- Adds what one request took; `cost` is nil where the price is not known.
function M.add(spent, usage, cost)
  add_usage(spent, usage)
  if type(cost) == "number" then
    spent.amount = spent.amount + cost
  else
    spent.unpriced = spent.unpriced + 1
  end
end

--- Adds one sum to another.
function M.join(spent, more)
  add_usage(spent, more.usage)
  spent.amount = spent.amount + more.amount
  spent.unpriced = spent.unpriced + more.unpriced
end

--- Returns usage and cost as the wire has them, as a sum.
function M.of(usage, cost)
  cost = cost or {}
  return { usage = vim.deepcopy(usage or {}), amount = cost.amount or 0, unpriced = cost.unpriced or 0 }
end

--- 1234 -> "1.2k".
function M.short(number)
  local units, unit = { "", "k", "M", "G", "T" }, 1
  while number >= 1000 and unit < #units do
    number, unit = number / 1000, unit + 1
  end
  local rest = number % 1
  local digits = number < 10 and rest >= 0.05 and rest < 0.95 and 1 or 0
  return ("%." .. digits .. "f%s"):format(number, units[unit])
end

--- "+" says that some requests did not say what they took, "?" that none did.
function M.tokens(usage)
  local total = usage.totalTokens or 0
  local unknown = (usage.unreportedRequests or 0) > 0
  if total > 0 then
    return M.short(total) .. (unknown and "+" or "")
  end
  return unknown and "?" or ""
end

local function dollars(spent)
  if spent.amount <= 0 then
    return ""
  end
  local digits = spent.amount < 0.1 and 3 or 2
  return ("$%." .. digits .. "f%s"):format(spent.amount, spent.unpriced > 0 and "+" or "")
end

local function cached(usage)
  local hit = usage.cachedReadTokens or 0
  local read = (usage.inputTokens or 0) + hit + (usage.cachedWriteTokens or 0)
  return hit > 0 and read > 0 and ("%d%% cached"):format(math.floor(100 * hit / read)) or ""
end

--- Returns a sum as a list of words: tokens, share from caches, dollars.
function M.words(spent)
  local sum = M.tokens(spent.usage)
  local said = sum == "?" and "tokens unknown" or sum ~= "" and sum .. " tokens" or ""
  return vim.tbl_filter(function(word)
    return word ~= ""
  end, { said, cached(spent.usage), dollars(spent) })
end

return M
