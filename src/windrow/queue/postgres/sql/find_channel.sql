-- The name of the channel on which those who sleep are told of :what: work, end or event.
SELECT windrow.channel(:what::text) AS name
