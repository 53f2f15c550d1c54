"""How far two tables are apart: one metric a module, all of them in `distances`."""
