-- Count jobs that were copied in. :queues, :states, :counts.
INSERT INTO windrow.tally (n, queue, state)
SELECT n, queue, state
  FROM unnest(:counts::bigint[], :queues::text[], :states::text[]) AS given (n, queue, state)
