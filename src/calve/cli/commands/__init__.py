"""The commands of ``calve``, a module for each topic; ``calve.cli.entry`` lists them, and nobody else imports them."""
