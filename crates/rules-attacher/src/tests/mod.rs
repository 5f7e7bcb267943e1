mod items;
mod laws;
mod lives;
mod path;
mod world;
