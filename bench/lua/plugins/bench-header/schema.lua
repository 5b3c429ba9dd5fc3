--- Configuration of bench-header: it has none.

return { name = "bench-header", fields = { { config = { type = "record", fields = {} } } } }
