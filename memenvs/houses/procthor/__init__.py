"""Houses read from files of ProcTHOR and Holodeck."""
