"""What the commands show and write: tables, bars and rows."""
