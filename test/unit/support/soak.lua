--- Sizes of soaks: the check's, and those of the long run (`make long`, LONG=1 in the environment).

local LONG = os.getenv("LONG")

return function(check, long)
    return LONG and LONG ~= "" and LONG ~= "0" and long or check
end
