"""ExtObjNav: find objects over many episodes in one home (ReLIC)."""
