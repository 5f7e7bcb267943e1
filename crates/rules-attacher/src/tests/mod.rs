mod items;
mod laws;
mod lives;
mod migration;
mod path;
mod scripts;
mod tables;
mod world;
