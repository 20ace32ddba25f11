//! Damaged drives that map only blocks: see `fuzzing::drive_edits`.
#![no_main]

use fuzzing::drive_edits::Input;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: Input| input.run());
