//! Behaviour by scenario, every shape of a view as tables, and who is woken.

mod facts;
mod laws;
mod scripts;
mod tables;
mod wakes;
