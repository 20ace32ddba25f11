//! Damaged translation layers: see `fuzzing::layer_edits`.
#![no_main]

use fuzzing::layer_edits::LayerInput;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: LayerInput| input.run());
