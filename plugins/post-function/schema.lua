--- Configuration of the post-function plugin, in Kong's layout.
-- @module plugins.post-function.schema

return require("gateway.kit.functions.schema").schema(
    "post-function",
    "Runs Lua of the configuration in each phase of a request, after other plugins."
)
