//! The actix side of archipelago: catalog, inbox, call path and the actors around them.
