-- So many more (or fewer) jobs of a queue in a state. Totals, because there is one writer.
-- :queue :state :count
INSERT INTO windrow_tally (queue, state, count) VALUES (:queue, :state, :count)
ON CONFLICT (queue, state) DO UPDATE SET count = count + excluded.count
