//! Damaged image files: see `fuzzing::image_file`.
#![no_main]

use fuzzing::image_file::Input;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: Input| input.run());
