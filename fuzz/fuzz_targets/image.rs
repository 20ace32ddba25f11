//! Damaged volumes: see `fuzzing::edits`.
#![no_main]

use fuzzing::edits::Input;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: Input| input.run());
