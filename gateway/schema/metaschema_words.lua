--- The words that schemas of plugins have, and what stands under each, as data for
-- gateway.schema.metaschema.
-- @module gateway.schema.metaschema_words

local _M = {}

--- The types of fields.
_M.TYPES = {
    "array",
    "boolean",
    "foreign",
    "function",
    "integer",
    "json",
    "map",
    "number",
    "record",
    "set",
    "string",
}

--- Attribute of a field -> kind of its value.
_M.ATTRIBUTES = {
    abstract = "boolean",
    auto = "boolean",
    default = "any",
    deprecation = "deprecation",
    description = "description",
    encrypted = "boolean",
    err = "string",
    examples = "list",
    generate_admin_api = "boolean",
    immutable = "boolean",
    json_schema = "table",
    legacy = "boolean",
    nilable = "boolean",
    on_delete = "on_delete",
    reference = "string",
    referenceable = "boolean",
    required = "boolean",
    transient = "boolean",
    type = "type",
    unique = "boolean",
    unique_across_ws = "boolean",
    -- rules
    between = "pair",
    contains = "any",
    custom_validator = "function",
    eq = "any",
    gt = "number",
    is_regex = "boolean",
    len_eq = "integer",
    len_max = "integer",
    len_min = "integer",
    match = "string",
    match_all = "patterns",
    match_any = "any_pattern",
    match_none = "patterns",
    mutually_exclusive_subsets = "subsets",
    ne = "any",
    not_match = "string",
    not_one_of = "list",
    one_of = "list",
    starts_with = "string",
    timestamp = "boolean",
    uuid = "boolean",
    -- what is in it
    elements = "field",
    entity_checks = "checks",
    fields = "fields",
    keys = "field",
    shorthand_fields = "shorthands",
    values = "field",
    -- ours
    anchored_regex = "function",
    hint = "function",
    names_secrets = "boolean",
    normalize = "function",
    secret = "boolean",
    supported = "any",
    -- of Kong's shorthands
    func = "function",
    translate_backwards = "strings",
}

--- What a schema of a plugin has itself, and with an entity's: attribute -> kind.
_M.OF_PLUGIN = {
    check = "function",
    description = "string",
    entity_checks = "checks",
    fields = "fields",
    migrate = "function",
    name = "string",
    -- names of fields that the plugin's page leaves to docs/entities.md: a pattern
    page_skips = "string",
    shorthand_fields = "shorthands",
    transformations = "transformations",
    use_prefix = "function",
    warnings = "function",
}
--- What a schema of entities has besides.
_M.OF_ENTITY = {
    admin_api_name = "string",
    admin_api_nested_name = "string",
    cache_key = "strings",
    dao = "string",
    db_export = "boolean",
    endpoint_key = "string",
    example = "string",
    generate_admin_api = "boolean",
    primary_key = "strings",
    subschema_error = "string",
    subschema_key = "string",
    table_name = "string",
    ttl = "boolean",
    workspaceable = "boolean",
}

local function set_of(...)
    local set = {}
    for _, name in ipairs({ ... }) do
        set[name] = true
    end
    return set
end
local NUMBERS = set_of("integer", "number")
local STRING = set_of("string")
local KEYS = set_of("foreign", "integer", "number", "string")

--- Attribute -> the types that may have it, where not all may.
_M.ONLY = {
    abstract = set_of("array", "integer", "map", "number", "record", "set", "string"),
    between = NUMBERS,
    contains = set_of("array", "set"),
    is_regex = STRING,
    json_schema = set_of("json"),
    len_eq = set_of("array", "map", "set", "string"),
    match = STRING,
    one_of = set_of("integer", "number", "string"),
    timestamp = NUMBERS,
    transient = set_of("array", "boolean", "integer", "number", "set", "string"),
    unique = KEYS,
    unique_across_ws = KEYS,
    uuid = STRING,
}

--- Type -> what a field of it has to have.
_M.NEEDS = {
    array = { "elements" },
    json = { "json_schema" },
    map = { "keys", "values" },
    record = { "fields" },
    set = { "elements" },
}

--- Types whose defaults are checked.
_M.HAS_DEFAULT = set_of("array", "boolean", "integer", "map", "number", "record", "set", "string")

--- Types that no shorthand has.
_M.NO_SHORTHAND = set_of("foreign", "function", "record")

--- What each check of several fields takes: a kind, or attributes of a table.
_M.CHECKS = {
    at_least_one_of = "strings",
    conditional = {
        if_field = "string",
        if_match = "match",
        then_err = "string",
        then_field = "string",
        then_match = "match",
    },
    conditional_at_least_one_of = {
        else_match = "match",
        else_then_at_least_one_of = "strings",
        else_then_err = "string",
        if_field = "string",
        if_match = "match",
        then_at_least_one_of = "strings",
        then_err = "string",
    },
    custom_entity_check = {
        field_sources = "strings",
        fn = "function",
        run_with_invalid_fields = "boolean",
        run_with_missing_fields = "boolean",
    },
    distinct = "strings",
    mutually_exclusive = "strings",
    mutually_exclusive_sets = { set1 = "strings", set2 = "strings" },
    mutually_required = "strings",
    only_one_of = "strings",
}

return _M
