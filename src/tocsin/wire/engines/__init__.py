"""What the receivers of workflow engines share: strangers' values, held with tongs."""
