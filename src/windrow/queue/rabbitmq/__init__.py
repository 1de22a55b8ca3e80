"""RabbitMQ as the carrier of wake-ups."""
