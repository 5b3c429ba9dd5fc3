-- An older tree has its writer here.
return require("timed_writer")
