"""What a person can ask for, free of HTTP and command-line words. Surfaces call only this."""
