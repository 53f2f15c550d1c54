"""The commands of stage one."""
