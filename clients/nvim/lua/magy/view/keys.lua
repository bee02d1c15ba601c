--- The keys of Magy's own buffers. Each leads to a `<Plug>` map or a command that works anywhere.

local M = {}

local function map(buf, modes, keys, action, desc)
  vim.keymap.set(modes, keys, action, { buffer = buf, silent = true, desc = "Magy: " .. desc })
end

--- Keys of a transcript: {keys, what they do, words}.
M.of_transcript = {
  { "<Tab>", "<Plug>(magy-fold)", "fold or unfold what is here" },
  { "za", "<Plug>(magy-fold)", "fold or unfold what is here" },
  { "zo", "<Plug>(magy-fold-open)", "unfold what is here" },
  { "zc", "<Plug>(magy-fold-close)", "fold what is here" },
  { "zR", "<Plug>(magy-fold-open-all)", "unfold all calls and thinking" },
  { "zM", "<Plug>(magy-fold-close-all)", "fold them" },
  { "<CR>", "<Plug>(magy-visit)", "visit the file, the agent, or the question here" },
  { "i", "<Plug>(magy-ask)", "write a prompt" },
  { "]]", "<Plug>(magy-prompt-next)", "go to the next prompt" },
  { "[[", "<Plug>(magy-prompt-previous)", "go to the previous prompt" },
  { "-", "<Plug>(magy-parent)", "go to the transcript of the parent" },
  { "+", "<Plug>(magy-older)", "show older turns" },
  { "<C-c>", "<Plug>(magy-stop)", "stop what runs" },
  { "q", "<Plug>(magy-close)", "close the transcript and its prompt" },
  { "g?", "<Plug>(magy-help)", "show all commands" },
}

function M.transcript(buf)
  for _, one in ipairs(M.of_transcript) do
    map(buf, "n", one[1], one[2], one[3])
  end
end

--- Keys of the prompt: {modes, keys, what they do, words}.
M.of_prompt = {
  { "n", "<CR>", "<Plug>(magy-send)", "send" },
  { { "n", "i" }, "<C-s>", "<Plug>(magy-send)", "send" },
  { { "n", "i" }, "<M-CR>", "<Plug>(magy-send-queue)", "send, to wait for the end of the turn" },
  { { "n", "i" }, "<M-x>", "<Plug>(magy-send-interrupt)", "send, and end the turn" },
  { { "n", "i" }, "<M-a>", "<Plug>(magy-mention)", "choose what to name: files, symbols, skills, agents" },
  { "i", "<Up>", "<Plug>(magy-history-previous)", "an earlier prompt, from the first line" },
  { "i", "<Down>", "<Plug>(magy-history-next)", "a later prompt, from the last line" },
  { "n", "<C-c>", "<Plug>(magy-stop)", "stop what runs" },
  { "n", "q", "<Plug>(magy-close)", "close the transcript and its prompt" },
  { "n", "g?", "<Plug>(magy-help)", "show all commands" },
}

function M.prompt(buf)
  for _, one in ipairs(M.of_prompt) do
    map(buf, one[1], one[2], one[3], one[4])
  end
  for number = 1, 9 do
    map(buf, { "n", "i" }, ("<M-%d>"):format(number), function()
      require("magy.prompt").toggle(number)
    end, "take the thing of that number out of what goes along, or put it in")
  end
end

return M
