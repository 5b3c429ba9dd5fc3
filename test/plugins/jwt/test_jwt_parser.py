"""`kong.plugins.jwt.jwt_parser` in a plugin of somebody's, by the name that Kong's module has."""

from sluice import Gateway, proxying
from upstream import Upstream

TAKES_APART = """
local parser = require("kong.plugins.jwt.jwt_parser")

return {
    VERSION = "1.0.0",
    PRIORITY = 10,
    schema = {
        name = "takes-apart",
        fields = { { config = { type = "record", fields = {} } } },
    },
    access = function()
        local token, err = parser:new(kong.request.get_header("token") or "")
        if not token then
            return kong.response.exit(400, err)
        end
        kong.response.exit(200, token.claims.sub .. " " .. tostring(token:verify_signature("s")))
    end,
}
"""

# {"alg":"HS256"}, {"sub":"bob"}
HEAD = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJib2IifQ"


def test_it_is_found_by_kongs_name(upstream: Upstream) -> None:
    config = proxying(upstream) | {"plugins": [{"name": "takes-apart"}]}
    with Gateway(config, plugins={"takes-apart": TAKES_APART}) as gateway:
        for token, said in (
            (f"{HEAD}.c2ln", "bob false"),
            ("a.b.c", "invalid JSON"),
            (f"{HEAD}.!", "invalid signature"),
        ):
            assert said in gateway.ask("/", headers={"Token": token}).body.decode(), token
