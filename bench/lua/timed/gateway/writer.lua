return require("timed_writer")
