//! Damaged volumes: see `flexfs_fuzz::edits`.
#![no_main]

use flexfs_fuzz::edits::Input;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: Input| input.run());
