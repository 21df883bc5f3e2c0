//! The tail of the normal distribution as a logarithm, for suspicion levels.
//!
//! −log₁₀ of the probability that a normally distributed value exceeds its mean by `y` standard deviations. Taken
//! through the ratio of the tail to the density (`1 − CDF = density · ratio`), which neither loses all digits in
//! `1 − erf` nor vanishes for large `y`. Only sums, products and quotients are used: every machine gets the same bits.

/// −log₁₀(1 − CDF(y)) of the standard normal distribution.
pub(super) fn minus_log10_of_tail(y: f64) -> f64 {
    if y < NOTHING_BELOW {
        return 0.0;
    }
    if y < 0.0 {
        // Below the mean the tail is nearly everything: one minus the other tail loses nothing.
        let other = tail_ratio(-y) / (SQRT_TAU * exp(y * y / 2.0));
        return -ln(1.0 - other) / LN_10;
    }
    (y * y / 2.0 + ln(SQRT_TAU) - ln(tail_ratio(y))) / LN_10
}

/// The tail beyond `y` ≥ 0 divided by the density at `y`.
fn tail_ratio(y: f64) -> f64 {
    if y < SERIES_BELOW { 0.5 * SQRT_TAU * exp(y * y / 2.0) - body_ratio(y) } else { fraction(y) }
}

/// The body between 0 and `y` divided by the density: Σ y^(2k+1) / (1·3·5···(2k+1)).
fn body_ratio(y: f64) -> f64 {
    let (mut term, mut sum, mut odd) = (y, y, 1.0);
    while term > sum * f64::EPSILON {
        odd += 2.0;
        term *= y * y / odd;
        sum += term;
    }
    sum
}

/// The continued fraction 1/(y + 1/(y + 2/(y + 3/…))), from the inside out.
fn fraction(y: f64) -> f64 {
    let inner = (1..=FRACTION_DEPTH).rev().fold(0.0, |rest, k| f64::from(k) / (y + rest));
    1.0 / (y + inner)
}

/// eˣ, by halving x until the series is short and squaring back.
fn exp(x: f64) -> f64 {
    let (mut small, mut halvings) = (x, 0);
    while small > 0.5 && halvings < MAX_HALVINGS {
        small /= 2.0;
        halvings += 1;
    }
    let (mut term, mut sum, mut k) = (1.0, 1.0, 0.0);
    while term > sum * f64::EPSILON {
        k += 1.0;
        term *= small / k;
        sum += term;
    }
    (0..halvings).fold(sum, |power, _| power * power)
}

/// The natural logarithm of a positive, normal number: 2·artanh((m−1)/(m+1)) of the mantissa, plus the exponent's share.
fn ln(x: f64) -> f64 {
    let bits = x.to_bits();
    let exponent = ((bits >> MANTISSA_BITS) & 0x7ff) as i32 - 1023;
    let mantissa = f64::from_bits(bits & ((1 << MANTISSA_BITS) - 1) | 1023 << MANTISSA_BITS);
    let z = (mantissa - 1.0) / (mantissa + 1.0);
    let (mut power, mut sum, mut odd) = (z, z, 1.0);
    while power > f64::EPSILON * f64::EPSILON {
        odd += 2.0;
        power *= z * z;
        sum += power / odd;
    }
    2.0 * sum + f64::from(exponent) * core::f64::consts::LN_2
}

/// The square root, by Newton's steps from above until they no longer fall.
pub(super) fn sqrt(x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    let mut root = x.max(1.0);
    loop {
        let next = (root + x / root) / 2.0;
        if next >= root {
            return root;
        }
        root = next;
    }
}

const LN_10: f64 = core::f64::consts::LN_10;
/// √(2π).
const SQRT_TAU: f64 = 2.506_628_274_631_000_5;
/// Up to here the series is exact enough, from here on the fraction converges fast.
const SERIES_BELOW: f64 = 3.0;
/// The other tail is smaller than any number here.
const NOTHING_BELOW: f64 = -37.0;
const FRACTION_DEPTH: u32 = 60;
const MAX_HALVINGS: u32 = 12;
const MANTISSA_BITS: u32 = 52;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Values from tables: −log₁₀(erfc(y/√2)/2). Proves: R187
    #[test]
    fn the_tail_is_that_of_the_normal_distribution() {
        let table = [
            (-3.0, 0.000_586_65),
            (-1.0, 0.075_028_76),
            (0.0, core::f64::consts::LOG10_2),
            (1.0, 0.799_546_1),
            (2.0, 1.643_015_5),
            (2.999, 2.868_3),
            (3.001, 2.871_1),
            (4.0, 4.499_335_4),
            (5.0, 6.542_645_5),
            (6.0, 9.005_878_4),
            (10.0, 23.118_045),
            (30.0, 197.309_21),
        ];
        for (y, expected) in table {
            let found = minus_log10_of_tail(y);
            assert!(
                (found - expected).abs() < 2e-4 * f64::max(1.0, expected),
                "{y}: {found}, not {expected}"
            );
        }
    }

    #[test]
    fn far_values_stay_finite_and_in_order() {
        let values =
            [-1e9, -38.0, -36.0, 0.0, 1e-9, 3.0 - 1e-12, 3.0, 40.0, 1e3, 1e9].map(minus_log10_of_tail);
        assert!(values.iter().all(|value| value.is_finite()));
        assert!(values.windows(2).all(|pair| pair[0] <= pair[1]));
    }

    proptest! {
        #[test]
        fn the_parts_agree_with_the_library(x in 1e-6..1e9f64, small in 0.0..4.5f64, y in -30.0..30.0f64) {
            prop_assert!((sqrt(x) - x.sqrt()).abs() <= x.sqrt() * 1e-14);
            prop_assert!((ln(x) - x.ln()).abs() <= 1e-13 * f64::max(1.0, x.ln().abs()));
            prop_assert!((exp(small) - small.exp()).abs() <= small.exp() * 1e-13);
            prop_assert!(minus_log10_of_tail(y) <= minus_log10_of_tail(y + 0.01));
        }
    }
}
