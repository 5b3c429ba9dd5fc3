--- Runs functions of its configuration, before all other plugins.
-- @module plugins.pre-function.handler

return require("gateway.kit.functions").handler(1000000)
