mod laws;
mod lives;
mod path;
mod wakes;
mod world;
