"""What follows the log and never stands in its way: audit, readable mirrors, titles."""
