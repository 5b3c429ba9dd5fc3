--- What the admin listener has beside entities: path -> method -> what it says. Paths, arguments
-- and answers are what OpenAPI documents say of them (gateway.admin.openapi);
-- gateway.admin has the functions.
-- @module gateway.admin.pages

local function text(description, more)
    local out = { type = "string", description = description }
    for name, value in pairs(more or {}) do
        out[name] = value
    end
    return out
end

local function list_of(items)
    return { type = "array", items = items }
end

local function object(properties)
    local required = {}
    for name in pairs(properties) do
        required[#required + 1] = name
    end
    table.sort(required)
    return { type = "object", properties = properties, required = required }
end

local number, any = { type = "number" }, { type = "object" }
local is_set = text(nil, { enum = { "0", "1" } })
-- Of writes, as in gateway.admin.openapi.
local dry_run = text("1: changes nothing; the answer is a plan.", { enum = { "0", "1" } })

local PAGING = {
    size = { type = "integer", minimum = 1, maximum = 1000, default = 100 },
    offset = text("`offset` of the previous page."),
}

local function page_of(item, more)
    local page = object({ data = list_of(item), next = { type = { "string", "null" } } })
    page.properties.offset = text("For the next page; absent on the last.")
    for name, property in pairs(more or {}) do
        page.properties[name] = property
    end
    return page
end

local tags = page_of(object({
    tag = text(),
    entity_name = text("Its kind."),
    entity_id = text(nil, { format = "uuid" }),
}))

local function ref(kind)
    return { ["$ref"] = "#/components/schemas/" .. kind }
end

-- Of memberships: `kind` is that of the path, `others` that of the other side; `one`, the former's
-- name in answers, `sent`, the latter's name in a body.
local function members(kind, others, one, sent)
    local reference = {
        type = { "string", "object" },
        description = "A name, an id, or one of them as an object.",
    }
    local body = object({ [sent] = { anyOf = { reference, list_of(reference) } } })
    return {
        GET = {
            kind = kind,
            summary = "A page of its members or groups",
            arguments = PAGING,
            answer = page_of(ref(others)),
        },
        POST = {
            kind = kind,
            summary = "Adds one or more members or groups",
            arguments = { dry_run = dry_run, sync = is_set },
            body = {
                ["application/json"] = body,
                ["application/x-www-form-urlencoded"] = body,
                ["multipart/form-data"] = body,
            },
            status = 201,
            answer = object({ [one] = ref(kind), [others] = list_of(ref(others)) }),
            errors = { "405", "409" },
        },
        DELETE = {
            kind = kind,
            summary = "Removes all members or groups",
            arguments = { dry_run = dry_run, sync = is_set },
            status = 204,
            errors = { "405", "507" },
        },
    }
end

local function member(kind)
    local summary = "Removes the membership, if it exists"
    local parting =
        { kind = kind, summary = summary, arguments = { dry_run = dry_run, sync = is_set } }
    parting.status, parting.errors = 204, { "405", "507" }
    return { DELETE = parting }
end

local A_FILE = {
    ["application/json"] = any,
    ["text/yaml"] = text(),
    ["application/yaml"] = text(),
    ["text/plain"] = text(),
    ["application/x-www-form-urlencoded"] = object({ config = text() }),
    ["multipart/form-data"] = object({ config = text() }),
}

local a_schema = object({ fields = list_of(any), entity_checks = list_of(any) })
local valid = object({ message = text() })

return {
    ["/"] = {
        GET = {
            summary = "Node information and settings",
            answer = object({
                version = text("Of Kong's formats and interface."),
                sluice = any,
                hostname = text(),
                node_id = text(nil, { format = "uuid" }),
                lua_version = text(),
                configuration = any,
                plugins = any,
                pids = any,
                timers = any,
            }),
        },
    },
    ["/status"] = {
        GET = {
            summary = "Connections, memory and the live configuration",
            arguments = {
                unit = text(nil, { enum = { "b", "k", "m", "g" }, default = "m" }),
                scale = { type = "integer", minimum = 0, default = 2 },
            },
            answer = any,
        },
    },
    ["/events"] = { GET = { summary = "Event statistics of all workers", answer = any } },
    ["/timers"] = {
        GET = {
            summary = "Timer statistics of one worker or all",
            arguments = { workers = text(nil, { enum = { "all" } }) },
            answer = object({ worker = any, stats = any }),
        },
    },
    ["/metrics"] = { GET = { summary = "Metrics for Prometheus", is_text = true } },
    ["/plugins/enabled"] = {
        GET = {
            summary = "Names of the available plugins",
            answer = object({ enabled_plugins = list_of(text()) }),
        },
    },
    ["/batch"] = {
        POST = {
            summary = "Several writes of entities in one transaction",
            body = {
                ["application/json"] = {
                    type = "array",
                    maxItems = 1000,
                    items = {
                        type = "object",
                        properties = {
                            method = text(nil, { enum = { "POST", "PUT", "PATCH", "DELETE" } }),
                            path = text("Such as /services/orders."),
                            body = any,
                        },
                        required = { "method", "path" },
                        additionalProperties = false,
                    },
                },
            },
            arguments = { dry_run = dry_run, sync = is_set },
            answer = list_of(object({ status = { type = "integer" } })),
            errors = { "404", "405", "409" },
        },
    },
    ["/apply"] = {
        POST = {
            summary = "Creates or updates the entities of a declarative file; others are unchanged",
            arguments = {
                dry_run = dry_run,
                kind = text("Kind of the entities, if the body is a plain list."),
            },
            body = A_FILE,
            answer = { ["$ref"] = "#/components/schemas/plan" },
            errors = { "405", "409" },
        },
    },
    ["/config"] = {
        GET = {
            summary = "The whole configuration as a declarative file, where no database is",
            answer = object({ config = text("YAML.") }),
        },
        POST = {
            summary = "Replaces the configuration with a declarative file",
            arguments = {
                check_hash = is_set,
                dry_run = dry_run,
                flatten_errors = is_set,
                wait = is_set,
            },
            body = A_FILE,
            status = 201,
            answer = object({
                version = { type = "integer" },
                store = text(nil, { format = "uuid" }),
                hash = text(),
                workers = { type = "integer" },
                ms = number,
            }),
            more = { "304" },
        },
    },
    ["/history"] = {
        GET = {
            summary = "Who changed what, the newest first",
            arguments = PAGING,
            answer = page_of(object({
                revision = { type = "integer" },
                at = number,
                by = { type = { "string", "null" } },
                created = { type = "integer" },
                changed = { type = "integer" },
                deleted = { type = "integer" },
                kinds = { type = "array" },
            })),
        },
    },
    ["/rollback"] = {
        POST = {
            summary = "Restores an earlier revision, as a new one",
            arguments = { dry_run = dry_run },
            body = {
                ["application/json"] = object({ revision = { type = "integer", minimum = 0 } }),
            },
            answer = object({ revision = { type = "integer" }, changes = { type = "integer" } }),
            errors = { "404", "405", "409" },
        },
    },
    ["/endpoints"] = {
        GET = { summary = "All paths", answer = object({ data = list_of(text()) }) },
    },
    ["/openapi.json"] = { GET = { summary = "This document", answer = any } },
    ["/tags"] = {
        GET = { summary = "Tags with their entities", arguments = PAGING, answer = tags },
    },
    ["/tags/{tag}"] = {
        GET = { summary = "Entities with a tag", arguments = PAGING, answer = tags },
    },
    ["/schemas/{kind}"] = {
        GET = { summary = "The schema of a kind of entities", answer = a_schema },
    },
    ["/schemas/plugins/{name}"] = {
        GET = { summary = "The schema of a plugin's configurations", answer = a_schema },
    },
    ["/schemas/vaults/{name}"] = {
        GET = { summary = "The schema of a kind of vault", answer = a_schema },
    },
    ["/schemas/{kind}/validate"] = {
        POST = {
            summary = "Validates an entity without storing it",
            body = { ["application/json"] = any },
            answer = valid,
        },
    },
    ["/upstreams/{upstreams}/health"] = {
        GET = {
            summary = "The targets of an upstream with their health",
            arguments = PAGING,
            answer = page_of(
                object({
                    id = text(nil, { format = "uuid" }),
                    target = text(),
                    weight = number,
                    health = text(nil, { enum = { "HEALTHCHECKS_OFF", "DNS_ERROR" } }),
                }),
                { node_id = text(nil, { format = "uuid" }) }
            ),
        },
    },
    ["/consumer_groups/{consumer_groups}"] = {
        GET = {
            kind = "consumer_groups",
            summary = "A group, its consumers and its plugins",
            arguments = { list_consumers = text(nil, { enum = { "true", "false" } }) },
            answer = {
                type = "object",
                properties = {
                    consumer_group = ref("consumer_groups"),
                    consumers = list_of(ref("consumers")),
                    plugins = list_of(ref("plugins")),
                },
                required = { "consumer_group", "plugins" },
            },
        },
    },
    ["/consumer_groups/{consumer_groups}/consumers"] = members(
        "consumer_groups",
        "consumers",
        "consumer_group",
        "consumer"
    ),
    ["/consumer_groups/{consumer_groups}/consumers/{consumers}"] = member("consumer_groups"),
    ["/consumers/{consumers}/consumer_groups"] = members(
        "consumers",
        "consumer_groups",
        "consumer",
        "group"
    ),
    ["/consumers/{consumers}/consumer_groups/{consumer_groups}"] = member("consumers"),
}
