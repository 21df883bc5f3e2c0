//! When certificates begin and end, for whoever wants to renew them in time.
//!
//! Only the way to the two times is read of a certificate; whether it can be used,
//! [`Credentials`](crate::Credentials) says. Invariant: no bytes make it panic, and what it does not understand has no times.

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use time::{Date, Month, OffsetDateTime, Time, UtcOffset};

/// From when until when a certificate is valid, in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CertificateTimes {
    /// The first second.
    pub not_before: i64,
    /// The last second.
    pub not_after: i64,
}

impl CertificateTimes {
    /// The times of all certificates in a PEM text, in their order; none for one that cannot be read.
    pub fn in_pem(text: &[u8]) -> Vec<Option<Self>> {
        let certificates = CertificateDer::pem_slice_iter(text);
        certificates.map(|certificate| Self::of_der(&certificate.ok()?)).collect()
    }

    /// The times of one certificate; none if it is none.
    pub fn of_der(certificate: &[u8]) -> Option<Self> {
        let (whole, _) = Element::read(certificate)?.of(SEQUENCE)?;
        let (to_be_signed, _) = Element::read(whole)?.of(SEQUENCE)?;
        let first = Element::read(to_be_signed)?;
        // The version comes first, unless it is the oldest.
        let rest = if first.tag == VERSION { first.rest } else { to_be_signed };
        let (_, rest) = Element::read(rest)?.of(INTEGER)?;
        let (_, rest) = Element::read(rest)?.of(SEQUENCE)?;
        let (_, rest) = Element::read(rest)?.of(SEQUENCE)?;
        let (validity, _) = Element::read(rest)?.of(SEQUENCE)?;
        let begin = Element::read(validity)?;
        let end = Element::read(begin.rest)?;
        Some(Self { not_before: begin.seconds()?, not_after: end.seconds()? })
    }
}

/// One value in DER, and what follows it.
struct Element<'a> {
    tag: u8,
    value: &'a [u8],
    rest: &'a [u8],
}

impl<'a> Element<'a> {
    fn read(bytes: &'a [u8]) -> Option<Self> {
        let (tag, bytes) = bytes.split_first()?;
        let (first, bytes) = bytes.split_first()?;
        let (length, bytes) = match first {
            0..=0x7f => (usize::from(*first), bytes),
            0x81..=0x84 => {
                let (length, bytes) = bytes.split_at_checked(usize::from(first & 0x7f))?;
                (length.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)), bytes)
            }
            _ => return None,
        };
        let (value, rest) = bytes.split_at_checked(length)?;
        Some(Self { tag: *tag, value, rest })
    }

    fn of(self, tag: u8) -> Option<(&'a [u8], &'a [u8])> {
        (self.tag == tag).then_some((self.value, self.rest))
    }

    /// The time that it is, which always is UTC.
    fn seconds(&self) -> Option<i64> {
        let text = std::str::from_utf8(self.value).ok()?.strip_suffix('Z')?;
        if !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let (year, rest) = match self.tag {
            UTC_TIME => {
                let (year, rest) = text.split_at_checked(2)?;
                let year: i32 = year.parse().ok()?;
                (if year < 50 { 2000 + year } else { 1900 + year }, rest)
            }
            GENERALIZED_TIME => {
                let (year, rest) = text.split_at_checked(4)?;
                (year.parse().ok()?, rest)
            }
            _ => return None,
        };
        let part = |at: usize| rest.get(at..at + 2)?.parse::<u8>().ok();
        if rest.len() != 10 {
            return None;
        }
        let date = Date::from_calendar_date(year, Month::try_from(part(0)?).ok()?, part(2)?).ok()?;
        let time = Time::from_hms(part(4)?, part(6)?, part(8)?).ok()?;
        Some(OffsetDateTime::new_in_offset(date, time, UtcOffset::UTC).unix_timestamp())
    }
}

const INTEGER: u8 = 0x02;
const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair};

    use super::*;

    fn certificate(begin: i64, end: i64) -> Vec<u8> {
        let mut params = CertificateParams::new(vec!["archipelago".to_owned()]).unwrap();
        params.not_before = OffsetDateTime::from_unix_timestamp(begin).unwrap();
        params.not_after = OffsetDateTime::from_unix_timestamp(end).unwrap();
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().to_vec()
    }

    #[test]
    fn the_times_of_a_certificate_are_those_that_it_was_issued_with() {
        // Before and after 2050, where the form on the wire changes.
        for (not_before, not_after) in [(1_700_000_000, 1_900_000_000), (946_684_800, 2_840_140_800)] {
            let der = certificate(not_before, not_after);
            assert_eq!(CertificateTimes::of_der(&der), Some(CertificateTimes { not_before, not_after }));
        }
    }

    #[test]
    fn what_is_no_certificate_has_no_times_and_nothing_panics() {
        let der = certificate(1_700_000_000, 1_900_000_000);
        for end in 0..der.len().min(400) {
            let _ = CertificateTimes::of_der(&der[..end]);
        }
        for at in 0..der.len().min(400) {
            for byte in [0x00, 0x7f, 0x80, 0x84, 0xff] {
                let mut spoilt = der.clone();
                spoilt[at] = byte;
                let _ = CertificateTimes::of_der(&spoilt);
            }
        }
        assert_eq!(CertificateTimes::of_der(b""), None);
        assert_eq!(CertificateTimes::of_der(&[0x30, 0x84, 0xff, 0xff, 0xff, 0xff]), None);
        assert_eq!(CertificateTimes::in_pem(b"no pem"), []);
    }
}
