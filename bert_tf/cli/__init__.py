"""The command line: the parser, what the commands do, and what scripts of ours share."""
