--- The text of content blocks, as messages and prompts have them.

local M = {}

--- Returns the text of one content block, or of a list of them; "" for what has none.
function M.text_of(content)
  if type(content) ~= "table" then
    return ""
  end
  if vim.islist(content) then
    return table.concat(vim.tbl_map(M.text_of, content))
  end
  if type(content.text) == "string" then
    return content.text
  end
  local inner = content.content
  return type(inner) == "table" and type(inner.text) == "string" and inner.text or ""
end

--- Returns whether a block of a prompt is a picture.
function M.is_picture(block)
  return (block.mimeType or ""):find("^image/") ~= nil
end

--- Returns a content block of a prompt as a person reads it.
function M.shown(block)
  if block.type == "text" then
    return (block.text or ""):gsub("%s+$", "")
  elseif block.type == "image" or (block.type == "resource_link" and M.is_picture(block)) then
    return ("[image: %s]"):format(block.name or "picture")
  elseif block.type == "resource_link" then
    return ("[%s]"):format(block.name or block.uri or "")
  elseif block.type == "resource" then
    local uri = block.resource and block.resource.uri or ""
    return ("[%s]"):format(uri:match("[^/]*$"))
  end
  return M.text_of(block)
end

--- Returns all blocks of a prompt as a person reads them, one a line.
function M.all(content)
  return table.concat(
    vim.tbl_map(function(block)
      return (M.shown(block))
    end, content or {}),
    "\n"
  )
end

--- Returns the words of a prompt, without what went along with it.
function M.words(content)
  return M.all(vim.tbl_filter(function(block)
    return block.type == "text"
  end, content or {}))
end

return M
