--- Configuration of bench-store: it has none.

return { name = "bench-store", fields = { { config = { type = "record", fields = {} } } } }
