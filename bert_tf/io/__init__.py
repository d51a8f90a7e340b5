"""Files: atomic writing, reading, and what refusals of the system mean."""
