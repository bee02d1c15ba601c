-- The server as vim.lsp knows it: `vim.lsp.config("magy", ...)` overrides any of this.
return require("magy.connection").lsp_config()
