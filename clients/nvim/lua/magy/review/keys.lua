--- Keys that a buffer has only while changes in it wait for a decision, and only where none is mapped.

local M = {}

M.keys = { { "]h", "next", "the next change" }, { "[h", "previous", "the previous change" } }

--- Maps the keys in a buffer, or takes them out again.
function M.update(buf, wanted)
  local has = vim.b[buf].magy_keys or {}
  for _, one in ipairs(M.keys) do
    local key, name, words = one[1], one[2], one[3]
    local mine = vim.tbl_contains(has, key)
    if wanted and not mine then
      local taken = vim.api.nvim_buf_call(buf, function()
        return vim.fn.maparg(key, "n") ~= ""
      end)
      if not taken then
        vim.keymap.set("n", key, ("<Plug>(magy-%s)"):format(name), { buffer = buf, desc = "Magy: go to " .. words })
        has = vim.list_extend(vim.list_slice(has), { key })
      end
    elseif mine and not wanted then
      pcall(vim.keymap.del, "n", key, { buffer = buf })
      has = vim.tbl_filter(function(other)
        return other ~= key
      end, has)
    end
  end
  vim.b[buf].magy_keys = has
end

return M
