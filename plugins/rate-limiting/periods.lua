--- The periods of limits, the shortest first: what C has as sluice_core_period_e.
-- @module plugins.rate-limiting.periods

return { "second", "minute", "hour", "day", "month", "year" }
