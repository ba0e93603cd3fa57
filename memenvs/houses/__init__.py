"""Houses: data, worlds, generator, ProcTHOR loader, renderer, navigation, simulator."""
