"""Other job queues, each in the configuration that its own documentation calls fast."""
