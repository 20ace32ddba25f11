//! The writing budget (FlexFS §4.2): how much wear a share of SLC writes costs, and how large a share a budget allows.

/// The writing budget used when `input_bytes` arrive and the share `wear_index` of them goes to SLC blocks and is
/// migrated later: OW = IW · (2δ + 1), FlexFS Eq. (8), where 2 is `bits_per_cell`, native over SLC.
pub fn output_bytes(input_bytes: u64, wear_index: f64, bits_per_cell: u8) -> u64 {
    let wear_index = wear_index.clamp(0.0, 1.0);
    input_bytes + (input_bytes as f64 * wear_index * f64::from(bits_per_cell)) as u64
}

/// The wear index that spends `budget_bytes` on `input_bytes`: δ = (WB − IW) / (2 · IW), FlexFS Eq. (9), between 0
/// and 1.
pub fn wear_index(budget_bytes: u64, input_bytes: u64, bits_per_cell: u8) -> f64 {
    if input_bytes == 0 {
        return 1.0;
    }
    let spare_bytes = budget_bytes.saturating_sub(input_bytes) as f64;
    (spare_bytes / (f64::from(bits_per_cell) * input_bytes as f64)).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1024;

    #[test]
    fn figure_8_uses_three_two_and_one_blocks() {
        assert_eq!(output_bytes(512 * KIB, 1.0, 2), 1536 * KIB);
        assert_eq!(output_bytes(512 * KIB, 0.5, 2), 1024 * KIB);
        assert_eq!(output_bytes(512 * KIB, 0.0, 2), 512 * KIB);
    }

    #[test]
    fn a_budget_below_the_input_leaves_nothing_for_slc() {
        assert_eq!(wear_index(400 * KIB, 512 * KIB, 2), 0.0);
        assert_eq!(wear_index(1024 * KIB, 512 * KIB, 2), 0.5);
        assert_eq!(wear_index(9000 * KIB, 512 * KIB, 2), 1.0);
    }
}
