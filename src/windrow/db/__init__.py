"""A database and its named statements; it knows neither jobs nor documents."""
