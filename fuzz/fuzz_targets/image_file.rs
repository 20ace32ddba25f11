//! Damaged image files: see `flexfs_fuzz::image_file`.
#![no_main]

use flexfs_fuzz::image_file::Input;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: Input| input.run());
