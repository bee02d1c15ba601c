-- nvim --clean --headless -l harmless.lua CLIENT TEXTS
-- Prints as JSON what is shown of texts, which are a list in JSON.

vim.opt.runtimepath:prepend(arg[1])
io.write(vim.json.encode(vim.tbl_map(require("magy.state.harmless").harmless, vim.json.decode(arg[2]))))
