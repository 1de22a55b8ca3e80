-- What jobs of a group note for whoever looks at it later, such as the pages that a crawl passed over.
-- Written in the transaction that completes the job, each once, and gone with the group. There is no
-- foreign key: its lock on the group's row would come before those that the completion takes.
CREATE TABLE windrow.group_note (
    group_id uuid NOT NULL,
    subject text NOT NULL,
    text text NOT NULL,
    PRIMARY KEY (group_id, subject, text)
);
