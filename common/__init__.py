"""Words that every stage shares: schema, feature map, adjacency, errors, files, console."""
