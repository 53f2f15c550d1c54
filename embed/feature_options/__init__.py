"""The choice of a feature map: each kind has a class of options, which draws the map."""
