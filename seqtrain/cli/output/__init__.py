"""What the commands show: tables, charts and bars."""
