mod laws;
mod lives;
mod news;
mod path;
mod scripts;
mod tables;
mod wakes;
mod world;
