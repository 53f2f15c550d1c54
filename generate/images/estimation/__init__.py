"""What a release says of class means, class shares and variation, under priors."""
