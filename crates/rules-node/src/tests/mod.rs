//! The rules on a pretend node: the real object semantics of `rules-store`, a machine and a driver that remember what
//! was done to them, and a second opinion that checks the laws at every effect.

mod block;
mod checks;
mod contents;
mod groups;
mod growing;
mod health;
mod inline;
mod lives;
mod machine;
mod migrated;
mod modes;
mod orphans;
mod pods;
mod records;
mod rehearsed;
mod requests;
mod sandbox;
mod scripts;
mod secrets;
mod skip;
mod stats;
mod storms;
mod tables;
mod tokens;
mod told;
mod vanishing;
mod volumes;
mod wakes;
mod world;
