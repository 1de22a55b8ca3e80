-- Nobody may use a leaf until the transaction ends; an error if somebody does. {leaf}. Nothing waits
-- for a lock that is not there yet, so nobody ever waits because of this but for the moment it takes.
LOCK TABLE windrow.{leaf} IN ACCESS EXCLUSIVE MODE NOWAIT
