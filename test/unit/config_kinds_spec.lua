-- Certificates, SNIs, CAs, groups of consumers and vaults in files: what is good, what is refused,
-- and that no message has anything of a private key.

local cjson = require("cjson")
local config = require("gateway.config")
local pem = require("test.unit.support.pem")
local support = require("test.unit.support.config")
local x509 = require("openssl.x509")

local ID = "6f2c1a30-0000-4000-8000-000000000010"
local CA_ID = "6f2c1a30-0000-4000-8000-000000000011"
local EXPECTED = "invalid certificate: expected PEM, -----BEGIN CERTIFICATE-----"

local PLUS_GONE = "blanks inside the PEM text, where '+' was: send it with curl's --data-urlencode"

-- What a form makes of '+', of which there is one at least, as chance has it.
local function without_plus(text)
    return (text:gsub("+", " "):gsub("(\nM%w)%w", "%1 ", 1))
end

local cert, key, public = pem.pair("ec")
local rsa_cert, rsa_key = pem.pair("rsa")
local ca = pem.pair("ec", { is_ca = true })

local function parse(document)
    document._format_version = "3.0"
    local snapshot, errors = config.parse(cjson.encode(document), "json", support.registry)
    return snapshot, support.lines(errors or {})
end

local function errors_of(kind, entity)
    local _, lines = parse({ [kind] = { entity } })
    return lines
end

describe("certificates in files", function()
    it("stand with their SNIs, and get ids of what is public", function()
        local snapshot = parse({
            certificates = {
                { cert = cert, key = key, snis = { { name = "a.example" }, { name = "*.b" } } },
                { cert = rsa_cert, key = rsa_key, cert_alt = cert, key_alt = key },
            },
            snis = { { name = "c.*", certificate = ID } },
        })
        assert.is_nil(snapshot)
        local both = { { cert = cert, key = key, id = ID, snis = { { name = "*.b" } } } }
        snapshot = assert(parse({
            certificates = both,
            snis = { { name = "c.*", certificate = { id = ID } } },
        }))
        assert.equal(cert, snapshot.certificates[1].cert)
        assert.is_nil(snapshot.certificates[1].snis)
        assert.same({ "*.b", "c.*" }, { snapshot.snis[1].name, snapshot.snis[2].name })
        assert.same({ id = ID }, snapshot.snis[1].certificate)
        local other_key = assert(parse({ certificates = { { cert = cert, key = key .. "\n" } } }))
        local again = assert(parse({ certificates = { { cert = cert, key = key } } }))
        assert.equal(again.certificates[1].id, other_key.certificates[1].id)
    end)

    it("have SNIs that may say again whose they are", function()
        local function refused(certificate)
            local snis = { { name = "a.example", certificate = certificate } }
            local entity = { id = ID, cert = cert, key = key, snis = snis }
            return errors_of("certificates", entity)
        end
        for _, same in ipairs({ ID, { id = ID } }) do
            assert.equal("", refused(same))
        end
        local nested = "certificates[0].snis[0].certificate: value must be null: the entity is "
            .. "nested in its certificate"
        local others = { CA_ID, "", { id = CA_ID }, { id = ID, name = "a" }, {}, 1, true }
        for _, other in ipairs(others) do
            assert.equal(nested, refused(other))
        end
        -- Of one without an id there is nothing to say again.
        local bare =
            { cert = cert, key = key, snis = { { name = "a", certificate = { id = ID } } } }
        assert.matches("nested in its certificate", errors_of("certificates", bare))
        local named = { { paths = { "/" }, service = { name = "s" } } }
        assert.equal("", errors_of("services", { name = "s", host = "h", routes = named }))
    end)

    it("may be chains, and expired, of which is warned", function()
        local old_cert, old_key = pem.pair("ec", { expired = true })
        local old_ca = pem.pair("ec", { is_ca = true, expired = true })
        local both = { cert = rsa_cert, key = rsa_key, cert_alt = old_cert, key_alt = old_key }
        local snapshot = assert(parse({
            certificates = { { cert = old_cert, key = old_key }, both },
            ca_certificates = { { cert = old_ca } },
        }))
        local function day(text)
            local _, expired_at = x509.new(text):getLifetime()
            return os.date("!%Y-%m-%d", expired_at)
        end
        assert.same({
            "certificates[0].cert: it expired on " .. day(old_cert),
            "certificates[1].cert_alt: it expired on " .. day(old_cert),
            "ca_certificates[0].cert: it expired on " .. day(old_ca),
        }, snapshot.warnings)
        local chain = assert(parse({ certificates = { { cert = cert .. old_cert, key = key } } }))
        local text = "certificates[0].cert: certificate number 2 of the chain expired on "
        assert.same({ text .. day(old_cert) }, chain.warnings)
        assert.equal("", errors_of("certificates", { cert = cert .. ca .. rsa_cert, key = key }))
        local params =
            "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n"
        assert.equal("", errors_of("certificates", { cert = cert, key = params .. key }))
    end)

    local broken = cert:gsub("MII", "AII", 1)
    local broken_key = key:gsub("MIG", "AIG", 1)
    for what, case in pairs({
        ["no PEM"] = { { cert = "x", key = key }, "cert: " .. EXPECTED },
        ["broken"] = {
            { cert = cert .. broken, key = key },
            "cert: invalid certificate: certificate 2 is damaged: it cannot be decoded",
        },
        ["too many"] = {
            { cert = cert:rep(33), key = key },
            "cert: invalid certificate: more than 32 in one chain",
        },
        ["a public key"] = {
            { cert = cert, key = public },
            "key: invalid key: expected a private key in PEM",
        },
        ["a broken key"] = {
            { cert = cert, key = broken_key },
            "key: invalid key: it is damaged: it cannot be decoded",
        },
        ["an encrypted key"] = {
            { cert = cert, key = (key:gsub("PRIVATE", "ENCRYPTED PRIVATE")) },
            "key: invalid key: it is encrypted; encrypted keys are not supported",
        },
        ["another's key"] = { { cert = cert, key = rsa_key }, "certificate does not match key" },
        ["half of an alternative"] = {
            { cert = cert, key = key, cert_alt = rsa_cert },
            "all or none of these fields must be set: 'cert_alt', 'key_alt'",
        },
        ["another's alternative key"] = {
            { cert = cert, key = key, cert_alt = rsa_cert, key_alt = key },
            "alternative certificate does not match key",
        },
        ["an alternative of the same type"] = {
            { cert = cert, key = key, cert_alt = cert, key_alt = key },
            "certificate and alternative certificate need to have different type "
                .. "(e.g. RSA and ECDSA), the provided certificates were both of the same type",
        },
    }) do
        it("refuse " .. what .. ", without a word of the key", function()
            local lines = errors_of("certificates", case[1])
            assert.truthy(lines:find(case[2], 1, true), lines)
            for line in (key .. rsa_key):gmatch("[^\n]+") do
                if not line:find("^%-") then
                    assert.falsy(lines:find(line:sub(1, 16), 1, true))
                end
            end
        end)
    end

    it("may be referred to, and no other", function()
        local service = { host = "a", protocol = "https", client_certificate = { id = ID } }
        local text = "services[0].client_certificate: invalid reference 'client_certificate: "
            .. ID
            .. "' (no such entry in 'certificates')"
        assert.equal(text, errors_of("services", service))
        local certificates = { { id = ID, cert = cert, key = key } }
        local snapshot = assert(parse({ certificates = certificates, services = { service } }))
        assert.same({
            "services[0].tls_verify: the certificate of the upstream is not verified",
        }, snapshot.warnings)
    end)
end)

describe("the usual mistakes with PEM", function()
    for what, case in pairs({
        ["a key as certificate"] = {
            { cert = key, key = key },
            "cert: invalid certificate: this is a private key, not a certificate "
                .. "(are both swapped?)",
        },
        ["a certificate as key"] = {
            { cert = cert, key = cert },
            "key: invalid key: this is a certificate, not a private key (are both swapped?)",
        },
        ["a certificate's path"] = {
            { cert = "tls/a.crt", key = key },
            "cert: invalid certificate: the text of the certificate is needed, not a path",
        },
        ["a key's path"] = {
            { cert = cert, key = "a.key" },
            "key: invalid key: the text of the private key is needed, not a path",
        },
        ["a certificate in a form that is not escaped"] = {
            { cert = without_plus(cert), key = key },
            "cert: invalid certificate: certificate 1 is damaged: " .. PLUS_GONE,
        },
        ["a key in a form that is not escaped"] = {
            { cert = cert, key = without_plus(key) },
            "key: invalid key: it is damaged: " .. PLUS_GONE,
        },
        ["a certificate without line breaks"] = {
            { cert = (cert:gsub("\n", " ")), key = key },
            "cert: invalid certificate: certificate 1 is damaged: blanks inside the PEM text, "
                .. "where line breaks were: in YAML, put it below a |",
        },
    }) do
        it("are named: " .. what, function()
            local said = errors_of("certificates", case[1])
            assert.equal("certificates[0]." .. case[2], said)
        end)
    end
end)

describe("credentials of jwt in files", function()
    it("are warned of with a private key, which Kong takes for the public one", function()
        local function warnings_of(pem_text)
            local secret = { key = "k", algorithm = "ES256", rsa_public_key = pem_text }
            local consumer = { username = "u", jwt_secrets = { secret } }
            return assert(parse({ consumers = { consumer } })).warnings
        end
        assert.same({}, warnings_of(public))
        assert.same({
            'consumers[0] "u".jwt_secrets[0].rsa_public_key: is a private key, which only the '
                .. "issuer of tokens needs: give the public key",
        }, warnings_of(key))
    end)
end)

describe("CA certificates in files", function()
    it("get their digest, whatever is given for it", function()
        local expired = pem.pair("ec", { is_ca = true, expired = true })
        local snapshot = assert(
            parse({ ca_certificates = { { cert = ca, cert_digest = "x" }, { cert = expired } } })
        )
        local digest = snapshot.ca_certificates[1].cert_digest
        assert.truthy(digest:find("^%x+$"))
        assert.equal(64, #digest)
        local twice = select(2, parse({ ca_certificates = { { cert = ca }, { cert = ca } } }))
        assert.equal(
            "ca_certificates[1].cert_digest: uniqueness violation: 'ca_certificates' entity with "
                .. "cert_digest set to '"
                .. digest
                .. "' already declared (ca_certificates[0])",
            twice
        )
    end)

    it("are one, and a CA's", function()
        assert.equal(
            "ca_certificates[0]: please submit only one certificate at a time",
            errors_of("ca_certificates", { cert = ca .. ca })
        )
        assert.equal(
            "ca_certificates[0]: certificate does not appear to be a CA because it is missing "
                .. 'the "CA" basic constraint',
            errors_of("ca_certificates", { cert = cert })
        )
    end)

    it("of services and plugins have to be there", function()
        local service = { host = "a", protocol = "https", ca_certificates = { CA_ID } }
        assert.equal(
            "services[0].ca_certificates[0]: invalid reference '"
                .. CA_ID
                .. "' (no such entry in 'ca_certificates')",
            errors_of("services", service)
        )
        local list = { { id = CA_ID, cert = ca } }
        assert(parse({ ca_certificates = list, services = { service } }))
        local plugin = { name = "mtls-auth", config = { ca_certificates = { CA_ID } } }
        assert.equal(
            "plugins[0].config.ca_certificates[0]: invalid reference '"
                .. CA_ID
                .. "' (no such entry in 'ca_certificates')",
            errors_of("plugins", plugin)
        )
        assert(parse({ ca_certificates = list, plugins = { plugin } }))
    end)
end)

describe("groups of consumers in files", function()
    it("have members, said flat, in the group or in the consumer", function()
        local snapshot = assert(parse({
            consumer_groups = {
                { name = "gold", consumers = { { username = "bob" } } },
                { name = "silver", consumer_group_consumers = { { consumer = "al" } } },
            },
            consumers = {
                { username = "bob", groups = { { name = "silver" } } },
                { username = "al" },
            },
            consumer_group_consumers = { { consumer = "al", consumer_group = "gold" } },
        }))
        local names, members = {}, {}
        for _, kind in ipairs({ "consumer_groups", "consumers" }) do
            for _, entity in ipairs(snapshot[kind]) do
                names[entity.id] = entity.name or entity.username
            end
        end
        for _, entity in ipairs(snapshot.consumer_group_consumers) do
            members[#members + 1] = names[entity.consumer_group.id]
                .. " "
                .. names[entity.consumer.id]
        end
        table.sort(members)
        assert.same({ "gold al", "gold bob", "silver al", "silver bob" }, members)
    end)

    it("say where an error stands", function()
        assert.equal(
            table.concat({
                "consumer_groups[0].plugins[0].consumer_group: value must be null",
                "consumer_groups[0].plugins[1]: only one or none of these fields must be set: "
                    .. "'consumer', 'consumer_group'",
                "consumer_groups[1].consumers: expected an array",
                "consumers[0].groups[1].consumer_group: expected a reference: a name, an id, "
                    .. "{ id = ... } or { name = ... }",
                "consumers[0].groups[0].consumer_group: invalid reference 'consumer_group: none' "
                    .. "(no such entry in 'consumer_groups')",
                "consumers[0].groups[3]: uniqueness violation: 'consumer_group_consumers' entity "
                    .. "with the same consumer_group, consumer already declared "
                    .. "(consumers[0].groups[2])",
            }, "\n"),
            support.errors(
                "consumer_groups: [{name: a, plugins: [{name: access-log}, "
                    .. "{name: http-log, consumer: u, config: {http_endpoint: 'http://a'}}]}, "
                    .. "{name: b, consumers: x}]\n"
                    .. "consumers: [{username: u, groups: [{name: none}, 5, b, b]}]"
            )
        )
    end)
end)

describe("vaults in files", function()
    it("are of the environment, under a prefix", function()
        local vault = { name = "env", prefix = "my-env", config = { prefix = "APP_" } }
        assert.equal("", errors_of("vaults", vault))
        assert.equal(
            "vaults[0].prefix: must not be one of: env\n"
                .. "vaults[0].name: vault 'aws' is not installed",
            errors_of("vaults", { name = "aws", prefix = "env" })
        )
        assert.equal(
            "vaults[0].prefix: invalid value: 9\n" .. "vaults[0].config.prefix: invalid value: 9A",
            errors_of("vaults", { name = "env", prefix = "9", config = { prefix = "9A" } })
        )
    end)
end)
