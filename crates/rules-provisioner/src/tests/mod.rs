//! Behaviour against a real store and a pretend driver. Numbers are those of the reference checklists.

mod create;
mod delete;
mod request;
mod undo;
mod world;
