mod laws;
mod lives;
mod path;
mod scripts;
mod tables;
mod wakes;
mod world;
