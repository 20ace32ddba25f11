//! Calls on a volume beside the model: see `flexfs_fuzz::operations`.
#![no_main]

use flexfs_fuzz::operations::Input;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: Input| input.run());
