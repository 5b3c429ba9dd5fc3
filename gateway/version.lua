--- The product's version, and the version of the dialect that it speaks.
-- @module gateway.version

return {
    product = "0.1.0",
    -- Clients of the dialect refuse to talk to a gateway without one.
    dialect = "3.9.0",
}
