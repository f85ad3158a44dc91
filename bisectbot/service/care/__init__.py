"""What keeps an installation sound: hosts' states, canaries, the doctor, backups."""
