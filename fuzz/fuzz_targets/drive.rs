//! Damaged drives that map only blocks: see `fuzzing::drive_edits`.
#![no_main]

use fuzzing::drive_edits::DriveInput;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: DriveInput| input.run());
