--- For older trees, whose plugins are one module.

return require("trees").plugin("bench-header")
