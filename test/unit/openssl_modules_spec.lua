-- resty.openssl and resty.string beside OpenSSL's command and published vectors, and hostile input.
--
-- Long on purpose: one library, beside one command.

package.path = "./compat/?.lua;./compat/?/init.lua;" .. package.path

local cjson = require("cjson")
local openssl = require("resty.openssl")
local store = require("resty.openssl.x509.store")
local chain = require("resty.openssl.x509.chain")
local crypto = require("sluice.ffi.libcrypto")
local ffi = require("ffi")

local pkey, x509, bn = openssl.pkey, openssl.x509, openssl.bn
local to_hex = require("resty.string").to_hex

local function from_hex(digits)
    return (
        digits:gsub("%x%x", function(two)
            return string.char(tonumber(two, 16))
        end)
    )
end

-- Runs OpenSSL's command in a folder of its own; what it prints.
local folder = os.tmpname()
os.remove(folder)
assert(os.execute("mkdir -p " .. folder) == 0)

local function run(command)
    local pipe = io.popen("cd " .. folder .. " && openssl " .. command .. " 2>/dev/null")
    local text = pipe:read("*a")
    pipe:close()
    return text
end

local function write(name, text)
    local file = assert(io.open(folder .. "/" .. name, "w"))
    file:write(text)
    file:close()
end

local function read(name)
    local file = assert(io.open(folder .. "/" .. name))
    local text = file:read("*a")
    file:close()
    return text
end

teardown(function()
    os.execute("rm -r " .. folder)
end)

describe("resty.openssl: digests", function()
    it("are those of the command", function()
        write("text", "some text\0with a zero")
        for name in ("md5 sha1 sha224 sha256 sha384 sha512 sha3-256"):gmatch("%S+") do
            local digest = openssl.digest.new(name)
            assert.is_true(digest:update("some ", "text\0with"))
            local wanted = run("dgst -r -" .. name .. " text"):match("^%x+")
            assert.equal(wanted, to_hex(digest:final(" a zero")))
            assert.is_true(digest:reset())
            assert.equal(to_hex(openssl.digest.new(name):final("")), to_hex(digest:final()))
        end
    end)

    it("have a reason where there is none", function()
        local _, err = openssl.digest.new("sha257")
        assert.equal('digest.new: invalid digest type "sha257"', err)
        assert.equal(0, crypto.C.ERR_peek_last_error())
    end)

    it("authenticate (RFC 4231, cases 2 and 7)", function()
        local wanted = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        local text = "what do ya want for nothing?"
        assert.equal(wanted, to_hex(openssl.hmac.new("Jefe", "sha256"):final(text)))
        local mac = openssl.mac.new("Jefe", "HMAC", nil, "sha256")
        mac:update("what do ya ")
        assert.equal(wanted, to_hex(mac:final("want for nothing?")))
        assert.is_true(mac:reset())
        assert.equal(wanted, to_hex(mac:final(text)))
        local cmac =
            openssl.mac.new(from_hex("2b7e151628aed2a6abf7158809cf4f3c"), "CMAC", "aes-128-cbc")
        assert.equal("bb1d6929e95937287fa37d129b756746", to_hex(cmac:final()))
        for _, case in ipairs({
            { "k", "HMAC", nil, "x" },
            { "k", "NONE" },
            { "k", nil },
            { nil, "HMAC" },
        }) do
            local made, err = openssl.mac.new(case[1], case[2], case[3], case[4])
            assert.is_nil(made)
            assert.matches("^mac.new: ", err)
        end
        assert.equal('hmac.new: invalid digest type "x"', select(2, openssl.hmac.new("k", "x")))
    end)
end)

describe("resty.openssl: ciphers", function()
    it("encrypt as the command does", function()
        local key, iv = ("k"):rep(32), ("i"):rep(16)
        for _, text in ipairs({ "", "short", ("long"):rep(5000) }) do
            write("plain", text)
            run(
                ("enc -aes-256-cbc -K %s -iv %s -in plain -out sealed"):format(
                    to_hex(key),
                    to_hex(iv)
                )
            )
            local cipher = openssl.cipher.new("aes-256-cbc")
            assert.equal(read("sealed"), cipher:encrypt(key, iv, text))
            assert.equal(text, cipher:decrypt(key, iv, read("sealed")))
        end
    end)

    it("derive keys as the command does", function()
        local cipher = openssl.cipher.new("aes-256-cbc")
        local said = run("enc -aes-256-cbc -md md5 -S 7979790000000000 -pass pass:xxx -P")
        local key, iv = cipher:derive("xxx", "yyy", 1, "md5")
        assert.equal(said:match("key=(%x+)"), to_hex(key):upper())
        assert.equal(said:match("iv =(%x+)"), to_hex(iv):upper())
        assert.equal(key, cipher:derive("xxx", "yyy\0\0\0\0\0more", 1, "md5"))
        assert.not_equal(key, cipher:derive("xxx", "yyy", 2, "md5"))
        for _, case in ipairs({ { 1 }, { "x", 1 }, { "x", "y", "z" }, { "x", "y", 0 } }) do
            local none, no_iv, err = cipher:derive(unpack(case))
            assert.is_true(none == nil and no_iv == nil)
            assert.matches("^cipher:derive: expect", err)
        end
        assert.matches("invalid digest", select(3, cipher:derive("x", "y", 1, "z")))
    end)

    it("know what was changed", function()
        local cipher = openssl.cipher.new("aes-256-gcm")
        local key, iv = ("k"):rep(32), ("i"):rep(12)
        local sealed = cipher:encrypt(key, iv, "text", false, "seen")
        local tag = cipher:get_aead_tag()
        assert.equal("text", cipher:decrypt(key, iv, sealed, false, "seen", tag))
        for _, case in ipairs({
            { "tex", "seen", tag },
            { sealed, "sees", tag },
            { sealed, "seen", ("\0"):rep(16) },
        }) do
            local text, err = cipher:decrypt(key, iv, case[1], false, case[2], case[3])
            assert.is_nil(text)
            assert.matches("^cipher:final", err)
        end
    end)

    it("wrap keys of any length within their buffers (RFC 5649)", function()
        local cipher = openssl.cipher.new("id-aes256-wrap-pad")
        local key, iv = ("k"):rep(32), ("i"):rep(4)
        local new = ffi.new
        finally(function()
            ffi.new = new
        end)
        for size = 1, 33 do
            local room = 0
            ffi.new = function(kind, ...)
                room = kind == "unsigned char[?]" and math.max(room, (...)) or room
                return new(kind, ...)
            end
            local wrapped = cipher:encrypt(key, iv, ("x"):rep(size))
            ffi.new = new
            assert.is_true(#wrapped <= room, size)
            assert.equal(("x"):rep(size), cipher:decrypt(key, iv, wrapped))
        end
    end)

    it("refuse keys and orders that are wrong", function()
        local cipher = openssl.cipher.new("aes-128-cbc")
        assert.same(
            { nil, "cipher:init: incorrect key size, expect 16" },
            { cipher:encrypt("k", ("i"):rep(16), "") }
        )
        assert.same(
            { nil, "cipher:init: incorrect iv size, expect 16" },
            { cipher:encrypt(("k"):rep(16), "i", "") }
        )
        assert.matches("not initalized", select(2, openssl.cipher.new("aes-128-cbc"):update("x")))
        assert.matches("invalid cipher type", select(2, openssl.cipher.new("aes-3")))
        cipher:encrypt(("k"):rep(16), ("i"):rep(16), "")
        assert.matches("too large", select(2, cipher:get_aead_tag(1000)))
    end)
end)

describe("resty.openssl: derived keys", function()
    local kdf = openssl.kdf

    it("are those of RFC 6070, 7914 and 5869", function()
        assert.equal(
            "4b007901b765489abead49d926f721d065a429c1",
            to_hex(kdf.derive({
                type = kdf.PBKDF2,
                outlen = 20,
                pass = "password",
                salt = "salt",
                pbkdf2_iter = 4096,
            }))
        )
        assert.equal(
            "fdbabe1c9d3472007856e7190d01e9fe7c6ad7cbc8237830e77376634b373162",
            to_hex(kdf.derive({
                type = kdf.SCRYPT,
                outlen = 32,
                pass = "password",
                salt = "NaCl",
                scrypt_N = 1024,
                scrypt_r = 8,
                scrypt_p = 16,
            }))
        )
        assert.equal(
            "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865",
            to_hex(kdf.derive({
                type = kdf.HKDF,
                outlen = 42,
                md = "sha256",
                hkdf_key = ("\11"):rep(22),
                salt = from_hex("000102030405060708090a0b0c"),
                hkdf_info = from_hex("f0f1f2f3f4f5f6f7f8f9"),
            }))
        )
    end)

    it("name the option that is wrong", function()
        for err, options in pairs({
            ['kdf.derive: "type" must be set'] = {},
            ["kdf.derive: unknown type 1"] = { type = 1 },
            ['kdf.derive: "outlen" must be set'] = { type = kdf.HKDF },
            ['kdf.derive: "outlen" is out of range'] = { type = kdf.HKDF, outlen = 2 ^ 40 },
            ['kdf.derive: "hkdf_key" must be set'] = { type = kdf.HKDF, outlen = 4 },
            ['kdf.derive: "scrypt_N" must be set'] = { type = kdf.SCRYPT, outlen = 4 },
            ['kdf.derive: except a string as "salt"'] = { type = kdf.PBKDF2, outlen = 4, salt = 1 },
            ['kdf.derive: except a number as "pbkdf2_iter"'] = {
                type = kdf.PBKDF2,
                outlen = 4,
                pbkdf2_iter = "x",
            },
            ['kdf.derive: invalid digest type "x"'] = { type = kdf.PBKDF2, outlen = 4, md = "x" },
        }) do
            assert.same({ nil, err }, { kdf.derive(options) })
        end
    end)
end)

describe("resty.openssl: keys", function()
    local made = {
        rsa = pkey.new({ type = "RSA", bits = 2048 }),
        ec = pkey.new({ type = "EC", curve = "prime256v1" }),
        large = pkey.new({ type = "EC", curve = "secp521r1" }),
        ed = pkey.new({ type = "ED25519" }),
    }

    it("sign what the command verifies, and the other way round", function()
        write("text", "signed")
        for name, key in pairs(made) do
            local digest = name ~= "ed" and "sha256" or nil
            write("key", key:to_PEM("private"))
            write("public", key:to_PEM())
            write("signature", assert(key:sign("signed", digest)))
            local how = name == "ed"
                    and "pkeyutl -verify -pubin -inkey public -rawin -in text -sigfile signature"
                or "dgst -sha256 -verify public -signature signature text"
            assert.matches(
                "Verified OK",
                run(how) .. (name == "ed" and " Verified OK" or ""),
                1,
                true
            )
            if digest then
                run("dgst -sha256 -sign key -out signature text")
                local public = pkey.new(read("public"))
                assert.is_true(public:verify(read("signature"), "signed", digest))
                assert.is_false((public:verify(read("signature"), "signet", digest)))
                assert.is_false((public:verify("junk", "signed", digest)))
            end
        end
    end)

    it("sign digests, and with PSS", function()
        local digest = openssl.digest.new("sha256")
        digest:update("signed")
        local signature = made.rsa:sign(digest)
        assert.is_true(made.rsa:verify(signature, "signed", "sha256"))
        local pss = pkey.PADDINGS.RSA_PKCS1_PSS_PADDING
        signature = made.rsa:sign("signed", "sha256", pss, { pss_saltlen = 32 })
        assert.is_true(made.rsa:verify(signature, "signed", "sha256", pss, { pss_saltlen = 32 }))
        assert.is_false((made.rsa:verify(signature, "signed", "sha256")))
        local hashed = openssl.digest.new("sha256"):final("signed")
        signature = made.rsa:sign_raw(hashed, nil, { "digest:sha256" })
        assert.is_true(made.rsa:verify(signature, "signed", "sha256"))
        assert.is_true(made.rsa:verify_raw(signature, hashed, "sha256"))
    end)

    it("have raw signatures of ECDSA", function()
        for name, size in pairs({ ec = 64, large = 132 }) do
            local key, raw = made[name], { ecdsa_use_raw = true }
            for _ = 1, 20 do
                local signature = key:sign("x", "sha256", nil, raw)
                assert.equal(size, #signature)
                assert.is_true(key:verify(signature, "x", "sha256", nil, raw))
                assert.is_false((key:verify(signature, "y", "sha256", nil, raw)))
                assert.is_false((key:verify(("\0"):rep(size), "x", "sha256", nil, raw)))
            end
            assert.matches(
                "invalid signature length",
                select(2, key:verify("a", "x", "sha256", nil, raw))
            )
        end
    end)

    it("encrypt and agree", function()
        local oaep = pkey.PADDINGS.RSA_PKCS1_OAEP_PADDING
        local sealed = made.rsa:encrypt("text", oaep, { oaep_md = "sha256" })
        assert.equal("text", made.rsa:decrypt(sealed, oaep, { oaep_md = "sha256" }))
        assert.is_nil((made.rsa:decrypt(sealed, oaep)))
        assert.matches("^pkey:encrypt", select(2, made.rsa:encrypt(("x"):rep(1000))))
        local other = pkey.new({ type = "EC", curve = "prime256v1" })
        assert.equal(made.ec:derive(pkey.new(other:to_PEM())), other:derive(made.ec))
    end)

    it("are the same after PEM, DER and JWK", function()
        for name, key in pairs(made) do
            for _, form in ipairs({ "PEM", "DER", "JWK" }) do
                for _, part in ipairs({ "private", "public" }) do
                    local again = assert(pkey.new(key:tostring(part, form), { format = form }))
                    assert.equal(part == "private", again:is_private(), name .. form .. part)
                    assert.equal(key:tostring("public", "DER"), again:tostring("public", "DER"))
                end
            end
            local public = pkey.new(key:to_PEM())
            assert.matches("missing private key", select(2, public:sign("x", "sha256")))
            assert.matches("could not dump", select(2, public:tostring("private", "JWK")))
        end
    end)

    it("have the parts of a JWK (RFC 7517, A.1; RFC 8037, A.2)", function()
        local ec = '{"kty":"EC","crv":"P-256","x":"MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4",'
            .. '"y":"4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM"}'
        local key = assert(pkey.new(ec))
        local shown = cjson.decode(key:tostring("public", "JWK"))
        assert.equal("MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4", shown.x)
        assert.equal("id-ecPublicKey", key:get_key_type().sn)
        assert.is_nil(shown.d)
        local okp =
            '{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}'
        assert.equal(
            "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
            cjson.decode(pkey.new(okp, { format = "JWK" }):tostring("public", "JWK")).x
        )
    end)

    it("say what is wrong with a text", function()
        local function reason(text, options)
            local key, err = pkey.new(text, options)
            assert.is_nil(key)
            assert.equal(0, crypto.C.ERR_peek_last_error())
            return err
        end
        assert.matches("^pkey.new:load_key: ", reason("junk"))
        assert.matches("^pkey.new:load_key: ", reason(""))
        assert.matches("^pkey.new:load_key: ", reason(made.ec:to_PEM(), { type = "pr" }))
        assert.matches('"n" and "e"', reason('{"kty":"RSA"}'))
        assert.matches('parameter "x"', reason('{"kty":"EC","crv":"P-256","x":"*","y":"AA"}'))
        assert.matches("EC key from JWK", reason('{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}'))
        assert.matches(
            "too long",
            reason(('{"kty":"EC","crv":"P-256","x":"%s","y":"AA"}'):format(("A"):rep(100)))
        )
        assert.matches(
            'parameter "n": it is too long',
            reason(('{"kty":"RSA","e":"AQAB","n":"%s"}'):format(("A"):rep(100000)))
        )
        assert.matches("unknown curve", reason('{"kty":"OKP","crv":"x","x":"AA"}'))
        assert.matches("jwk type", reason('{"kty":{}}'))
        assert.matches("decoding JSON", reason("[", { format = "JWK" }))
        assert.matches("as format", reason("x", { format = "XML" }))
        assert.matches("unexpected type", reason(true))
        assert.matches("bits out of range", reason({ bits = 2 ^ 40 }))
        assert.matches("unknown curve", reason({ type = "EC", curve = "x" }))
    end)

    it("ask no terminal for a passphrase", function()
        write("key", made.ec:to_PEM("private"))
        local sealed = run("pkcs8 -topk8 -in key -passout pass:secret")
        assert.is_nil((pkey.new(sealed)))
        assert.is_nil((pkey.new(sealed, { passphrase = "wrong" })))
        local options = {
            passphrase_cb = function()
                return "secret"
            end,
        }
        assert.is_true(pkey.new(sealed, options):is_private())
        assert.is_true(pkey.new(sealed, { passphrase = "secret" }):is_private())
    end)
end)

describe("resty.openssl: certificates", function()
    local function make(name, subject, more)
        run(
            "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj "
                .. ("'%s' -keyout %s.key -out %s.pem %s"):format(subject, name, name, more or "")
        )
        return assert(x509.new(read(name .. ".pem"))), assert(pkey.new(read(name .. ".key")))
    end
    local ca, ca_key = make("ca", "/CN=ca/O=Org", "-addext basicConstraints=critical,CA:TRUE")
    local leaf, leaf_key = make(
        "leaf",
        "/C=DE/CN=leaf",
        "-CA ca.pem -CAkey ca.key -addext basicConstraints=critical,CA:FALSE "
            .. "-addext subjectAltName=DNS:a.example,IP:127.0.0.1,email:a@b.example"
    )

    it("are read", function()
        assert.equal("C=DE/CN=leaf", leaf:get_subject_name():tostring())
        assert.equal("Org", leaf:get_issuer_name():find("O").blob)
        assert.equal("ca", leaf:get_issuer_name():find("commonName").blob)
        assert.is_nil(leaf:get_issuer_name():find("OU"))
        local serial = run("x509 -in leaf.pem -noout -serial"):match("=(%x+)")
        assert.equal(serial, leaf:get_serial_number():to_hex())
        local from, to = leaf:get_lifetime()
        assert.equal(2 * 86400, to - from)
        assert.is_true(math.abs(os.time() - from) < 600)
        assert.equal(3, leaf:get_version())
        assert.equal("ecdsa-with-SHA256", leaf:get_signature_name())
        local digest =
            run("x509 -in leaf.pem -noout -fingerprint -sha256"):match("=(.-)\n"):gsub(":", "")
        assert.equal(digest:lower(), to_hex(leaf:digest("sha256")))
        assert.same(
            { { "DNS", "a.example" }, { "IP", "\127\0\0\1" }, { "email", "a@b.example" } },
            leaf:get_subject_alt_name()
        )
        assert.is_nil(ca:get_subject_alt_name())
        assert.equal(read("leaf.pem"), leaf:to_PEM())
        assert.equal(leaf:to_PEM(), x509.new(leaf:tostring("DER"), "DER"):to_PEM())
    end)

    it("belong to keys", function()
        assert.is_true(leaf:check_private_key(leaf_key))
        assert.is_false((leaf:check_private_key(ca_key)))
        assert.same(
            { false, "x509:check_private_key: not a private key" },
            { leaf:check_private_key(leaf:get_pubkey()) }
        )
        assert.is_true(leaf:verify(ca_key))
        assert.is_false((leaf:verify(leaf_key)))
        assert.equal(leaf_key:to_PEM(), leaf:get_pubkey():to_PEM())
    end)

    it("are verified", function()
        local trusted = store.new()
        assert.matches("unable to get local issuer", select(2, trusted:verify(leaf)))
        assert.is_true(trusted:add(ca))
        assert.is_true(trusted:verify(leaf))
        assert.is_true(trusted:verify(leaf, chain.new(), false, nil, "ssl_server"))
        assert.matches(
            "invalid verify_method",
            select(2, trusted:verify(leaf, nil, false, nil, "x"))
        )
        local found = trusted:verify(leaf, nil, true)
        assert.equal(2, found:count())
        collectgarbage()
        collectgarbage()
        assert.equal("CN=ca/O=Org", found[2]:get_subject_name():tostring())
        local between = chain.new()
        assert.is_true(between:add(ca))
        assert.is_nil((store.new():verify(leaf, between)))
        local of_file = store.new()
        assert.is_true(of_file:load_file(folder .. "/ca.pem"))
        assert.is_true(of_file:verify(leaf))
        assert.is_false((of_file:load_file("/nowhere")))
    end)

    it("are nothing else", function()
        for _, text in ipairs({ "", "junk", leaf_key:to_PEM(), read("leaf.pem"):sub(1, -60) }) do
            assert.is_nil((x509.new(text)))
            assert.equal(0, crypto.C.ERR_peek_last_error())
        end
        assert.matches("unknown format", select(2, x509.new("x", "y")))
        assert.matches("expect", select(2, x509.new(1)))
        assert.matches("expect", select(2, store.new():verify({})))
        assert.matches("expect", select(2, chain.new():add({})))
    end)
end)

describe("resty.openssl: numbers", function()
    it("count", function()
        local a, b = bn.new("123456789012345678901234567890"), bn.new(7)
        assert.equal("123456789012345678901234567897", tostring(a + b))
        assert.equal("864197523086419752308641975230", tostring(a * b))
        assert.equal("17636684144620811271604938270", tostring(a / b))
        assert.equal(0, (a % b):to_number())
        assert.equal("-7", tostring(-b))
        assert.equal(-7, (-b):to_number())
        assert.equal(4, bn.mod_exp(3, 4, b):to_number())
        assert.is_true(b < a and b <= b and b == bn.from_hex("07"))
        assert.equal("\0\0\7", b:to_binary(3))
        assert.equal("\7", b:to_binary())
        assert.is_true(b:is_odd() and not b:is_zero() and bn.new():is_zero())
    end)

    it("refuse what is none", function()
        for _, text in ipairs({ "", "x", "12x", "1.5" }) do
            assert.is_nil((bn.from_dec(text)), text)
        end
        assert.is_nil((bn.from_hex("fg")))
        assert.is_nil((bn.new(1.5)))
        assert.is_nil((bn.new({})))
        assert.is_nil((bn.new(0 / 0)))
        assert.is_nil((bn.new(2):to_binary(0)))
        assert.is_nil((bn.from_dec(("9"):rep(30)):to_number()))
        assert.has_error(function()
            return bn.new(1) / bn.new(0)
        end)
        assert.has_error(function()
            return bn.new(1) + "x"
        end)
    end)
end)

describe("resty.openssl.rand", function()
    it("gives bytes, each time others", function()
        local rand = openssl.rand
        assert.equal(32, #rand.bytes(32))
        assert.equal("", rand.bytes(0))
        assert.not_equal(rand.bytes(16, true), rand.bytes(16, true))
        for _, count in ipairs({ -1, 2 ^ 40, 0 / 0 }) do
            assert.is_nil((rand.bytes(count)))
        end
        assert.matches("expect a number", select(2, rand.bytes("1")))
    end)
end)

describe("resty.string and its kin", function()
    it("convert", function()
        local text = require("resty.string")
        assert.equal("00ff61", text.to_hex("\0\255a"))
        assert.same(
            { 12, -1, -1, -1 },
            { text.atoi("12"), text.atoi(""), text.atoi("-1"), text.atoi("1x") }
        )
    end)

    it("have digests and random bytes", function()
        local sizes = { md5 = 16, sha1 = 20, sha224 = 28, sha256 = 32, sha384 = 48, sha512 = 64 }
        local modules = {
            md5 = require("resty.md5"),
            sha1 = require("resty.sha1"),
            sha224 = require("resty.sha224"),
            sha256 = require("resty.sha256"),
            sha384 = require("resty.sha384"),
            sha512 = require("resty.sha512"),
        }
        for name, size in pairs(sizes) do
            local digest = modules[name]:new()
            assert.is_true(digest:update("abc"))
            local bytes = digest:final()
            assert.equal(size, #bytes)
            assert.equal(to_hex(openssl.digest.new(name):final("abc")), to_hex(bytes))
        end
        assert.equal(8, #require("resty.random").bytes(8, true))
    end)

    it("have AES as the command has it", function()
        local aes = require("resty.aes")
        write("plain", "text")
        run(
            "enc -aes-256-cbc -md sha256 -S 3132333435363738 -pass pass:secret -in plain "
                .. "-out sealed"
        )
        local box =
            assert(aes:new("secret", "12345678", aes.cipher(256, "cbc"), aes.hash.sha256, 1))
        assert.equal(read("sealed"):sub(-16), box:encrypt("text"))
        assert.equal("text", box:decrypt(box:encrypt("text")))
        local sealed =
            assert(aes:new(("k"):rep(32), nil, aes.cipher(256, "gcm"), { iv = ("i"):rep(12) }))
        local found = sealed:encrypt("text")
        assert.equal("text", sealed:decrypt(found[1], found[2]))
        assert.is_nil((sealed:decrypt(found[1], ("\0"):rep(16))))
        assert.same({ nil, "bad iv" }, { aes:new("k", nil, nil, {}) })
        assert.same({ nil, "bad key length" }, { aes:new("k", nil, nil, { iv = ("i"):rep(16) }) })
        assert.same({ nil, "salt must be 8 characters or nil" }, { aes:new("k", "1") })
        assert.is_nil(aes.cipher(129))
    end)
end)

describe("base64url", function()
    it("is read and written (RFC 4648, 5)", function()
        for i = 0, 20 do
            local bytes = openssl.rand.bytes(i)
            local text = crypto.encode_base64url(bytes)
            assert.is_nil(text:find("[^%w_-]"))
            assert.equal(bytes, crypto.decode_base64url(text))
        end
        for _, text in ipairs({ "a", "a+b=", "a b", "=", "abcde" }) do
            assert.is_nil(crypto.decode_base64url(text), text)
        end
    end)
end)
