--- The product's version, and the version of Kong whose formats it speaks.
-- @module gateway.version

return {
    product = "0.1.0",
    -- Kong's clients refuse to talk to a gateway without one.
    kong = "3.9.3",
}
