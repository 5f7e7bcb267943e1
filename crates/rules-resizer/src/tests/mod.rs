mod growing;
mod lives;
mod migration;
mod modifying;
mod scripts;
mod table;
mod tables;
mod world;
