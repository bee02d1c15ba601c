--- Markdown of one block, highlighted by Neovim's own parsers, apart from all other blocks: an open fence
--- in one answer says nothing about the next.

local M = {}

local LARGEST = 100000 -- bytes; longer answers stay plain

local BELOW = 1 -- the text begins in the second line of its block

-- Marks that only say how a text looks, and what is shown in their place: without colours one sees, too, where
-- code begins and ends. Where a link goes to is always seen.
local HIDDEN = { code_span_delimiter = "", emphasis_delimiter = "", fenced_code_block_delimiter = "┄" }

--- Adds the marks of one tree of a parsed text.
local function add(tree, language, source, into)
  local query = vim.treesitter.query.get(language, "highlights")
  if not query then
    return
  end
  for id, node, metadata in query:iter_captures(tree:root(), source) do
    local name = query.captures[id]
    local shown = HIDDEN[node:type()]
    if shown then
      local row, col, end_row, end_col = node:range()
      table.insert(into, { row + BELOW, col, { end_row = end_row + BELOW, end_col = end_col, conceal = shown } })
    end
    if name:sub(1, 1) ~= "_" and name ~= "spell" and name ~= "nospell" and name ~= "conceal" then
      local row, col, end_row, end_col = node:range()
      local priority = 100 + (tonumber(metadata.priority) and tonumber(metadata.priority) - 100 or 0)
      table.insert(into, {
        row + BELOW,
        col,
        {
          end_row = end_row + BELOW,
          end_col = end_col,
          hl_group = ("@%s.%s"):format(name, language),
          priority = math.max(1, priority),
        },
      })
    end
  end
end

--- Returns the decoration of markdown, as `look.block` has it. What still streams is highlighted when it
--- is whole.
function M.looks(source, whole)
  local made = {}
  if not whole or #source > LARGEST or source == "" then
    return made
  end
  local fine = pcall(function()
    local parser = vim.treesitter.get_string_parser(source .. "\n", "markdown") -- without it no fence ends
    parser:parse(true)
    parser:for_each_tree(function(tree, language)
      add(tree, language:lang(), source, made)
    end)
  end)
  return fine and made or {}
end

return M
