"""How a store came to be as it is: one file per schema version, applied by ``doublesampling db upgrade``."""
