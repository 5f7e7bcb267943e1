//! Behaviour against a real store. Numbers are those of the reference checklists.

mod attempts;
mod binding;
mod crash;
mod news;
mod phases;
mod scripts;
mod tables;
mod wakes;
mod world;
