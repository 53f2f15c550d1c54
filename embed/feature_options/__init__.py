"""Which feature map: a class of options for each kind, which draws it for records of a schema."""
