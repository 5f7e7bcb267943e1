//! The reference driver as a user runs it: the real binary over its real socket, on real loop devices and mounts, in
//! every lifecycle and deployment shape (needs root; says so without).

#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod behind;
mod bench;
mod copies;
mod shapes;
mod volumes;
