--- Configuration of bench-publish: it has none.

return { name = "bench-publish", fields = { { config = { type = "record", fields = {} } } } }
