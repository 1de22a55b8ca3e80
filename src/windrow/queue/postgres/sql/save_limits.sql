-- Keep the tokens and turns of keys. :keys, locked; :tokens, :times (of the refill), :turns.
UPDATE windrow.job_limit AS job_limit
   SET tokens = given.tokens, refilled_at = given.refilled_at, turn = given.turn
  FROM unnest(:keys::text[], :tokens::double precision[], :times::timestamptz[],
              :turns::double precision[]) AS given (key, tokens, refilled_at, turn)
 WHERE job_limit.key = given.key
