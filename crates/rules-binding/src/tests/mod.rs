//! Behaviour against a real store. Numbers are those of the reference checklists.

mod attempts;
mod attributes;
mod binding;
mod crash;
mod ephemeral;
mod facts;
mod matching;
mod migration;
mod news;
mod phases;
mod reclaim;
mod scripts;
mod tables;
mod tally;
mod usage;
mod wakes;
mod world;
