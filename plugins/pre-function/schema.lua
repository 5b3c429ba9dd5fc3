--- Configuration of the pre-function plugin, in Kong's layout.
-- @module plugins.pre-function.schema

return require("gateway.kit.functions.schema").schema(
    "pre-function",
    "Runs Lua of the configuration in each phase of a request, before other plugins."
)
