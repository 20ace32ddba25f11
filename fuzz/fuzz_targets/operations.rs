//! Calls on a volume beside the model: see `fuzzing::operations`.
#![no_main]

use fuzzing::operations::Input;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: Input| input.run());
