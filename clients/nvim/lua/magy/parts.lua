--- Loads every part that listens to the server, before a server is started.

require("magy.documents")
require("magy.editor")
require("magy.session")
require("magy.view.buffer")
require("magy.panel")
require("magy.children")
require("magy.review.data")
require("magy.review.draw")
require("magy.review.hint")
require("magy.rewrite")
require("magy.status")

return true
