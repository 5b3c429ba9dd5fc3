--- OpenSSL's libcrypto through FFI: what compat/resty/openssl is made of. OpenSSL 3.0 and later.
--
-- Each function has a name of ours here, bound to OpenSSL's symbol, and all pointers are `void *`:
-- other modules in the same Lua may declare the same functions with types of their own.
-- @module sluice.ffi.libcrypto

local ffi = require("ffi")

local error = error
local format = string.format
local ipairs = ipairs
local math = math
local pcall = pcall
local setmetatable = setmetatable
local tonumber = tonumber

-- What it is called where nginx, or the program, does not have it already.
local LIBRARY = "libcrypto.so.3"
local PREFIX = "sluice_crypto_"
local MAX_ERROR_BYTES = 256

-- Return type, name, parameters.
local DECLARATIONS = [[
    unsigned long OpenSSL_version_num();
    const char * OpenSSL_version(int);
    unsigned long ERR_peek_last_error();
    void ERR_error_string_n(unsigned long, char *, size_t);
    void ERR_clear_error();

    void * BIO_new_mem_buf(const void *, int);
    void * BIO_s_mem();
    void * BIO_new(void *);
    long BIO_ctrl(void *, int, long, void *);
    int BIO_free(void *);

    void * EVP_MD_fetch(void *, const char *, const char *);
    void EVP_MD_free(void *);
    int EVP_MD_get_size(void *);
    void * EVP_MD_CTX_new();
    void EVP_MD_CTX_free(void *);
    int EVP_DigestInit_ex(void *, void *, void *);
    int EVP_DigestUpdate(void *, const void *, size_t);
    int EVP_DigestFinal_ex(void *, unsigned char *, unsigned *);

    void * EVP_MAC_fetch(void *, const char *, const char *);
    void EVP_MAC_free(void *);
    void * EVP_MAC_CTX_new(void *);
    void EVP_MAC_CTX_free(void *);
    int EVP_MAC_init(void *, const void *, size_t, void *);
    int EVP_MAC_update(void *, const void *, size_t);
    int EVP_MAC_final(void *, unsigned char *, size_t *, size_t);
    size_t EVP_MAC_CTX_get_mac_size(void *);

    int EVP_EncodeBlock(unsigned char *, const char *, int);
    int EVP_DecodeBlock(unsigned char *, const char *, int);

    int RAND_bytes(unsigned char *, int);
    int RAND_priv_bytes(unsigned char *, int);

    void * EVP_CIPHER_fetch(void *, const char *, const char *);
    void EVP_CIPHER_free(void *);
    void * EVP_CIPHER_CTX_new();
    void EVP_CIPHER_CTX_free(void *);
    int EVP_CipherInit_ex(void *, void *, void *, const char *, const char *, int);
    int EVP_CipherUpdate(void *, unsigned char *, int *, const char *, int);
    int EVP_CipherFinal_ex(void *, unsigned char *, int *);
    int EVP_CIPHER_CTX_set_padding(void *, int);
    int EVP_CIPHER_CTX_ctrl(void *, int, int, void *);
    int EVP_CIPHER_get_block_size(void *);
    int EVP_CIPHER_get_key_length(void *);
    int EVP_CIPHER_get_iv_length(void *);
    int EVP_BytesToKey(void *, void *, const char *, const char *, int, int, unsigned char *,
        unsigned char *);

    void * EVP_KDF_fetch(void *, const char *, const char *);
    void EVP_KDF_free(void *);
    void * EVP_KDF_CTX_new(void *);
    void EVP_KDF_CTX_free(void *);
    int EVP_KDF_derive(void *, unsigned char *, size_t, void *);
    size_t EVP_KDF_CTX_get_kdf_size(void *);

    void * BN_new();
    void BN_free(void *);
    void * BN_dup(void *);
    void * BN_bin2bn(const void *, int, void *);
    int BN_bn2bin(void *, unsigned char *);
    int BN_bn2binpad(void *, unsigned char *, int);
    int BN_num_bits(void *);
    int BN_hex2bn(void **, const char *);
    int BN_dec2bn(void **, const char *);
    char * BN_bn2hex(void *);
    char * BN_bn2dec(void *);
    int BN_set_word(void *, unsigned long);
    unsigned long BN_get_word(void *);
    int BN_cmp(void *, void *);
    int BN_is_negative(void *);
    void BN_set_negative(void *, int);
    int BN_add(void *, void *, void *);
    int BN_sub(void *, void *, void *);
    int BN_mul(void *, void *, void *, void *);
    int BN_div(void *, void *, void *, void *, void *);
    int BN_nnmod(void *, void *, void *, void *);
    int BN_mod_exp(void *, void *, void *, void *, void *);
    int BN_exp(void *, void *, void *, void *);
    int BN_gcd(void *, void *, void *, void *);
    void * BN_CTX_new();
    void BN_CTX_free(void *);
    void CRYPTO_free(void *, const char *, int);

    int OBJ_txt2nid(const char *);
    const char * OBJ_nid2sn(int);
    const char * OBJ_nid2ln(int);
    void * OBJ_nid2obj(int);
    int OBJ_obj2txt(char *, int, void *, int);

    void EVP_PKEY_free(void *);
    int EVP_PKEY_get_base_id(void *);
    int EVP_PKEY_get_size(void *);
    int EVP_PKEY_get_bits(void *);
    int EVP_PKEY_get_default_digest_nid(void *, int *);
    void * PEM_read_bio_PrivateKey(void *, void *, void *, const char *);
    void * PEM_read_bio_PUBKEY(void *, void *, void *, const char *);
    void * d2i_PrivateKey_bio(void *, void *);
    void * d2i_PUBKEY_bio(void *, void *);
    int PEM_write_bio_PrivateKey(void *, void *, void *, void *, int, void *, void *);
    int PEM_write_bio_PUBKEY(void *, void *);
    int i2d_PrivateKey_bio(void *, void *);
    int i2d_PUBKEY_bio(void *, void *);
    int EVP_PKEY_get_bn_param(void *, const char *, void **);
    int EVP_PKEY_get_octet_string_param(void *, const char *, unsigned char *, size_t, size_t *);
    int EVP_PKEY_get_utf8_string_param(void *, const char *, char *, size_t, size_t *);
    void * EVP_PKEY_new_raw_private_key(int, void *, const char *, size_t);
    void * EVP_PKEY_new_raw_public_key(int, void *, const char *, size_t);
    int EVP_PKEY_get_raw_private_key(void *, unsigned char *, size_t *);
    int EVP_PKEY_get_raw_public_key(void *, unsigned char *, size_t *);
    void * EVP_PKEY_CTX_new(void *, void *);
    void * EVP_PKEY_CTX_new_from_name(void *, const char *, const char *);
    void EVP_PKEY_CTX_free(void *);
    int EVP_PKEY_keygen_init(void *);
    int EVP_PKEY_generate(void *, void **);
    int EVP_PKEY_CTX_set_rsa_keygen_bits(void *, int);
    int EVP_PKEY_CTX_set_group_name(void *, const char *);
    int EVP_PKEY_CTX_set_rsa_padding(void *, int);
    int EVP_PKEY_CTX_set_rsa_pss_saltlen(void *, int);
    int EVP_PKEY_CTX_set_rsa_mgf1_md_name(void *, const char *, const char *);
    int EVP_PKEY_CTX_set_rsa_oaep_md_name(void *, const char *, const char *);
    int EVP_PKEY_CTX_ctrl_str(void *, const char *, const char *);
    int EVP_PKEY_fromdata_init(void *);
    int EVP_PKEY_fromdata(void *, void **, int, void *);
    int EVP_PKEY_encrypt_init(void *);
    int EVP_PKEY_encrypt(void *, unsigned char *, size_t *, const char *, size_t);
    int EVP_PKEY_decrypt_init(void *);
    int EVP_PKEY_decrypt(void *, unsigned char *, size_t *, const char *, size_t);
    int EVP_PKEY_sign_init(void *);
    int EVP_PKEY_sign(void *, unsigned char *, size_t *, const char *, size_t);
    int EVP_PKEY_verify_init(void *);
    int EVP_PKEY_verify(void *, const char *, size_t, const char *, size_t);
    int EVP_PKEY_verify_recover_init(void *);
    int EVP_PKEY_verify_recover(void *, unsigned char *, size_t *, const char *, size_t);
    int EVP_PKEY_derive_init(void *);
    int EVP_PKEY_derive_set_peer(void *, void *);
    int EVP_PKEY_derive(void *, unsigned char *, size_t *);
    int EVP_DigestSignInit(void *, void **, void *, void *, void *);
    int EVP_DigestSign(void *, unsigned char *, size_t *, const char *, size_t);
    int EVP_DigestVerifyInit(void *, void **, void *, void *, void *);
    int EVP_DigestVerify(void *, const char *, size_t, const char *, size_t);
    int EVP_SignFinal(void *, unsigned char *, unsigned *, void *);
    int EVP_VerifyFinal(void *, const char *, unsigned, void *);

    void * OSSL_PARAM_BLD_new();
    void OSSL_PARAM_BLD_free(void *);
    int OSSL_PARAM_BLD_push_BN(void *, const char *, void *);
    int OSSL_PARAM_BLD_push_utf8_string(void *, const char *, const char *, size_t);
    int OSSL_PARAM_BLD_push_octet_string(void *, const char *, const void *, size_t);
    int OSSL_PARAM_BLD_push_uint64(void *, const char *, uint64_t);
    int OSSL_PARAM_BLD_push_int(void *, const char *, int);
    int OSSL_PARAM_BLD_push_uint(void *, const char *, unsigned);
    void * OSSL_PARAM_BLD_to_param(void *);
    void OSSL_PARAM_free(void *);

    void * PEM_read_bio_X509(void *, void *, void *, const char *);
    void * d2i_X509_bio(void *, void *);
    int PEM_write_bio_X509(void *, void *);
    int i2d_X509_bio(void *, void *);
    void * X509_dup(void *);
    void X509_free(void *);
    void * X509_get_subject_name(void *);
    void * X509_get_issuer_name(void *);
    void * X509_get_serialNumber(void *);
    void * ASN1_INTEGER_to_BN(void *, void *);
    void * X509_get0_notBefore(void *);
    void * X509_get0_notAfter(void *);
    void * ASN1_TIME_set(void *, long);
    void ASN1_STRING_free(void *);
    int ASN1_TIME_diff(int *, int *, void *, void *);
    int X509_digest(void *, void *, unsigned char *, unsigned *);
    int X509_pubkey_digest(void *, void *, unsigned char *, unsigned *);
    void * X509_get_pubkey(void *);
    int X509_check_private_key(void *, void *);
    int X509_verify(void *, void *);
    long X509_get_version(void *);
    int X509_get_signature_nid(void *);
    void * X509_get_ext_d2i(void *, int, int *, int *);
    void GENERAL_NAMES_free(void *);
    void * GENERAL_NAME_get0_value(void *, int *);
    void * X509_NAME_dup(void *);
    void X509_NAME_free(void *);
    int X509_NAME_entry_count(void *);
    void * X509_NAME_get_entry(void *, int);
    void * X509_NAME_ENTRY_get_object(void *);
    void * X509_NAME_ENTRY_get_data(void *);
    int OBJ_obj2nid(void *);
    const unsigned char * ASN1_STRING_get0_data(void *);
    int ASN1_STRING_length(void *);
    void * OPENSSL_sk_new_null();
    void OPENSSL_sk_free(void *);
    int OPENSSL_sk_num(void *);
    void * OPENSSL_sk_value(void *, int);
    int OPENSSL_sk_push(void *, void *);
    void * X509_STORE_new();
    void X509_STORE_free(void *);
    int X509_STORE_set_default_paths(void *);
    int X509_STORE_add_cert(void *, void *);
    int X509_STORE_load_locations(void *, const char *, const char *);
    int X509_STORE_set_depth(void *, int);
    int X509_STORE_set_flags(void *, unsigned long);
    void * X509_STORE_CTX_new();
    void X509_STORE_CTX_free(void *);
    int X509_STORE_CTX_init(void *, void *, void *, void *);
    int X509_STORE_CTX_set_default(void *, const char *);
    void X509_STORE_CTX_set_flags(void *, unsigned long);
    int X509_verify_cert(void *);
    int X509_STORE_CTX_get_error(void *);
    void * X509_STORE_CTX_get0_chain(void *);
    const char * X509_verify_cert_error_string(long);

    void * ECDSA_SIG_new();
    void ECDSA_SIG_free(void *);
    void * d2i_ECDSA_SIG(void *, const unsigned char **, long);
    int i2d_ECDSA_SIG(void *, unsigned char **);
    void * ECDSA_SIG_get0_r(void *);
    void * ECDSA_SIG_get0_s(void *);
    int ECDSA_SIG_set0(void *, void *, void *);
]]

ffi.cdef((DECLARATIONS:gsub("([%w_ ]+[ *]+)([%w_]+)(%b());", function(returned, name, parameters)
    local list = parameters == "()" and "(void)" or parameters
    return format('%s %s%s%s __asm__("%s");', returned, PREFIX, name, list, name)
end)))

local _M = {}

local function load()
    local found = pcall(function()
        return ffi.C[PREFIX .. "OSSL_PARAM_BLD_new"]
    end)
    local library = found and ffi.C or nil
    if not library then
        local ok, loaded = pcall(ffi.load, LIBRARY)
        if not ok then
            error("OpenSSL 3 is not here (" .. LIBRARY .. "): " .. loaded, 0)
        end
        library = loaded
    end
    return setmetatable({}, {
        __index = function(functions, name)
            local fn = library[PREFIX .. name]
            functions[name] = fn
            return fn
        end,
    })
end

--- OpenSSL's functions by their names.
_M.C = load()

local C = _M.C

local error_text = ffi.new("char[?]", MAX_ERROR_BYTES)

--- What OpenSSL says of the last failure; it forgets it, so that nginx does not find it later.
-- @tparam string what was tried
-- @treturn string
-- @phases any
function _M.failure(what)
    local code = C.ERR_peek_last_error()
    if code == 0 then
        return what
    end
    C.ERR_error_string_n(code, error_text, MAX_ERROR_BYTES)
    C.ERR_clear_error()
    return what .. ": " .. ffi.string(error_text)
end

-- Digests by name, for as long as the worker lives: there are few.
local digests = {}

--- A digest.
-- @tparam string name
-- @treturn cdata|nil
-- @phases any
function _M.digest(name)
    if type(name) ~= "string" then
        return nil
    end
    local known = digests[name]
    if not known then
        known = C.EVP_MD_fetch(nil, name, nil)
        if known == nil then
            C.ERR_clear_error()
            return nil
        end
        digests[name] = known
    end
    return known
end

local TO_URL, FROM_URL = { ["+"] = "-", ["/"] = "_", ["="] = "" }, { ["-"] = "+", ["_"] = "/" }

--- Bytes in base64url (RFC 4648, 5), without padding.
-- @tparam string bytes
-- @treturn string
-- @phases any
function _M.encode_base64url(bytes)
    local out = ffi.new("unsigned char[?]", math.ceil(#bytes / 3) * 4 + 1)
    local length = C.EVP_EncodeBlock(out, bytes, #bytes)
    return (ffi.string(out, length):gsub("[+/=]", TO_URL))
end

--- The bytes of base64url, with or without padding.
-- @tparam string text
-- @treturn string|nil nil: it is none
-- @phases any
function _M.decode_base64url(text)
    local digits = text:match("^([%w_-]*)=?=?$")
    local over = digits and #digits % 4
    if not digits or over == 1 then
        return nil
    elseif text == "" then
        return ""
    elseif digits == "" then
        return nil
    end
    local missing = (4 - over) % 4
    local padded = digits:gsub("[-_]", FROM_URL) .. ("A"):rep(missing)
    local out = ffi.new("unsigned char[?]", #padded / 4 * 3)
    local length = C.EVP_DecodeBlock(out, padded, #padded)
    return length > 0 and ffi.string(out, length - missing) or nil
end

--- What OpenSSL calls an object.
-- @tparam cdata found
-- @treturn table nid (0 of what it has no name for), id, sn, ln
-- @phases any
function _M.object(found)
    local nid = C.OBJ_obj2nid(found)
    C.OBJ_obj2txt(error_text, MAX_ERROR_BYTES, found, 1)
    local short, long = C.OBJ_nid2sn(nid), C.OBJ_nid2ln(nid)
    local is_known = nid ~= 0
    return {
        nid = nid,
        id = ffi.string(error_text),
        sn = is_known and short ~= nil and ffi.string(short) or nil,
        ln = is_known and long ~= nil and ffi.string(long) or nil,
    }
end

--- The bytes of a string of ASN.1, zeros among them.
-- @tparam cdata found
-- @treturn string
-- @phases any
function _M.asn1_text(found)
    return ffi.string(C.ASN1_STRING_get0_data(found), C.ASN1_STRING_length(found))
end

--- Hands what a function writes to memory back as a string.
-- @tparam function write `write(bio)` returns 1 where that worked
-- @treturn string|nil
-- @phases any
function _M.written(write)
    local bio = ffi.gc(C.BIO_new(C.BIO_s_mem()), C.BIO_free)
    if write(bio) ~= 1 then
        return nil
    end
    local at = ffi.new("char *[1]")
    -- BIO_CTRL_INFO
    local length = tonumber(C.BIO_ctrl(bio, 3, 0, at))
    return ffi.string(at[0], length)
end

--- A text as something that OpenSSL reads.
-- @tparam string text as long as that is used
-- @treturn cdata
-- @phases any
function _M.reader(text)
    return ffi.gc(C.BIO_new_mem_buf(text, #text), C.BIO_free)
end

--- Parameters of OpenSSL's providers.
-- @tparam table pushes functions that get the builder, and return 1
-- @treturn cdata|nil
-- @phases any
function _M.params(pushes)
    local builder = ffi.gc(C.OSSL_PARAM_BLD_new(), C.OSSL_PARAM_BLD_free)
    for _, push in ipairs(pushes) do
        if push(builder) ~= 1 then
            return nil
        end
    end
    local found = C.OSSL_PARAM_BLD_to_param(builder)
    return found ~= nil and ffi.gc(found, C.OSSL_PARAM_free) or nil
end

return _M
