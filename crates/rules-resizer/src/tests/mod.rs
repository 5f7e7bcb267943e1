mod growing;
mod lives;
mod migration;
mod modifying;
mod table;
mod world;
