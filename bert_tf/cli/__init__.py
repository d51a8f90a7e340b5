"""The command line: its parser, its commands, and the part that other programs share."""
