--- What Lua was written against: hashes of what the folders of module/ declare for it
-- (module/declarations.awk); a plugin's own Lua has its own. A build fails where a header has come
-- to say something else, and says what to put here, once the Lua that uses it is right.
-- @module sluice.ffi.hashes

return {
    ["core/balancer"] = 4154441363,
    ["core/chain"] = 1617804356,
    ["core/image"] = 91912216,
    ["core/limits"] = 2013015567,
    ["core/path"] = 3836978463,
    ["core/plugin"] = 1961505789,
    ["core/ring"] = 3742192293,
    ["core/series"] = 4242089694,
    ["core/spool"] = 2948150533,
    ["core/text"] = 2614945670,
    ["gateway/changed"] = 2640248548,
    ["gateway/image"] = 1740500759,
    ["gateway/log"] = 2114667993,
    ["gateway/metrics"] = 1875249569,
    ["gateway/plugin"] = 232324990,
    ["gateway/process"] = 1513035158,
    ["gateway/proxy"] = 4143295983,
    ["gateway/request"] = 3634359419,
    ["gateway/response"] = 3660637842,
    ["gateway/tls"] = 2254613423,
    ["lib/events"] = 2126421218,
    ["lib/header"] = 2366177716,
    ["lib/loop"] = 3851271290,
    ["lib/redact"] = 3800646637,
    ["lib/timer"] = 2762595521,
    ["lib/var"] = 1765292155,
}
