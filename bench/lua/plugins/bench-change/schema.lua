--- Configuration of bench-change: it has none.

return { name = "bench-change", fields = { { config = { type = "record", fields = {} } } } }
