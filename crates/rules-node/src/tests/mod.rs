//! The rules on a pretend node: the real object semantics of `rules-store`, a machine and a driver that remember what
//! was done to them, and a second opinion that checks the laws at every effect.

mod machine;
mod pods;
mod records;
mod requests;
mod sandbox;
mod scripts;
mod storms;
mod tables;
mod told;
mod volumes;
mod wakes;
mod world;
