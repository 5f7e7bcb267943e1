//! Behaviour against a real store and a pretend driver. Numbers are those of the reference checklists.

mod capacity;
mod create;
mod delete;
mod driver;
mod facts;
mod journal;
mod memory;
mod migration;
mod news;
mod nodes;
mod plugin;
mod record;
mod request;
mod scripts;
mod secrets;
mod side_tables;
mod sides;
mod sources;
mod states;
mod storm;
mod tables;
mod tally;
mod topology;
mod undo;
mod wakes;
mod world;
