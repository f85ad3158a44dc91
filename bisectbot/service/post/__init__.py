"""Everything that the service does about mail besides writing the first report and handing it over."""
