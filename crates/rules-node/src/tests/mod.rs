//! The rules on a pretend node: the real object semantics of `rules-store`, a machine and a driver that remember what
//! was done to them, and a second opinion that checks the laws at every effect.

mod block;
mod checks;
mod contents;
mod facts;
mod groups;
mod growing;
mod health;
mod inline;
mod lives;
mod machine;
mod migrated;
mod modes;
mod orphans;
mod plain;
mod pods;
mod probes;
mod records;
mod rehearsed;
mod requests;
mod sandbox;
mod scripts;
mod secrets;
mod served;
mod skip;
mod stats;
mod statuses;
mod storms;
mod tables;
mod tokens;
mod told;
mod vanishing;
mod variables;
mod volumes;
mod wakes;
mod world;
