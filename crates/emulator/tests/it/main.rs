//! The emulator's tests as one program, a module for each matter: linked once, they are built in a moment.

mod common;
mod equivalence;
mod faults;
mod image;
mod in_flight;
mod plain_driver;
mod profiles;
mod queues;
mod rules;
mod without_data;
