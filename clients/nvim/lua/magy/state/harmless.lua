--- Makes text from models and programs harmless to show, as the server does for terminals.

local M = {}

-- Code points that do not show, or that turn the text around them.
local hidden = {
  [0x061C] = true,
  [0x200E] = true,
  [0x200F] = true,
  [0x2028] = true,
  [0x2029] = true,
  [0xFEFF] = true,
}
for _, range in ipairs({ { 0x202A, 0x202E }, { 0x2066, 0x2069 }, { 0xFFF9, 0xFFFB } }) do
  for code = range[1], range[2] do
    hidden[code] = true
  end
end

local function code_of(char)
  local a, b, c = char:byte(1, 3)
  if c then
    return (a % 0x10) * 0x1000 + (b % 0x40) * 0x40 + c % 0x40
  end
  return b and (a % 0x20) * 0x40 + b % 0x40 or a
end

local function shown(char)
  return ("<U+%04X>"):format(code_of(char))
end

local function unless_visible(char)
  local code = code_of(char)
  if hidden[code] or (code >= 0x80 and code <= 0x9F) or (code >= 0xD800 and code <= 0xDFFF) then
    return shown(char)
  end
end

--- Takes out what begins with an escape: CSI, strings such as OSC, and short ones.
local function without_sequences(text)
  text = text:gsub("\27%[[0-?]*[ -/]*[@-~]", "")
  for _, ends in ipairs({ "\7", "\27\\", "\194\156" }) do
    text = text:gsub("\27[%]PX^_][^\7\27\156]*" .. ends, "")
  end
  return (text:gsub("\27[ -/]*[0-OQ-WYZ\\`-~]", ""))
end

--- Returns the text without terminal sequences; other controls become `<U+0007>`. Line ends are "\n".
function M.harmless(text)
  if not text:find("[%z\1-\8\11-\31\127\194\216\226\237\239]") then
    return text
  end
  if text:find("\27", 1, true) then
    text = without_sequences(text)
  end
  text = text:gsub("\r\n?", "\n"):gsub("[%z\1-\8\11-\31\127]", shown)
  return (
    text:gsub("[\194\216][\128-\191]", unless_visible):gsub("[\226\237\239][\128-\191][\128-\191]", unless_visible)
  )
end

--- Returns the text harmless, and on one line.
function M.one_line(text)
  return (vim.trim(M.harmless(text):gsub("%s+", " ")))
end

return M
