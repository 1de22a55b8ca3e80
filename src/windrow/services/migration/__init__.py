"""Work that other queues hold becomes Windrow's: where it comes from (`origins`), what each of
their tables means (`legacy`, `tables`, `nuq`, `pgmq`, `archon`), and doing it (`migrating`)."""
