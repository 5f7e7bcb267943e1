mod growing;
mod lives;
mod modifying;
mod table;
mod world;
