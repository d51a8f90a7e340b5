"""What the tasks on one text or two have in common."""
