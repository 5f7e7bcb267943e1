//! The rules on a pretend node: the real object semantics of `rules-store`, and drivers that answer as they are told.

mod facts;
mod helper;
mod helper_tables;
mod limits;
mod migrated;
mod name_holders;
mod nodes;
mod object_state;
mod scripts;
mod sockets;
mod tables;
mod wakes;
mod world;
