//! Clients of a card: see `fuzzing::card_client`.
#![no_main]

use fuzzing::card_client::CardInput;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: CardInput| input.run());
