"""The file in which an owner states what is publicly known of a table, and its drafts."""
