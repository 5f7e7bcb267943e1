//! Growing and modifying volumes.
#![no_std]
