--- Runs functions of its configuration, behind all other plugins.
-- @module plugins.post-function.handler

return require("gateway.kit.functions").handler(-1000)
