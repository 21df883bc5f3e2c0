//! The clock, and how many files may be open.

use archipelago::config::{Settings, TransportKind};
use rustix::process::{Resource, getrlimit};

use super::Finding;
use super::store::Dated;
use crate::host;

/// Whether the clocks of this machine can be right, as far as others have said what time it is.
pub(super) fn clock(dates: &[Dated]) -> Finding {
    let advice = "let it be set by NTP (`timedatectl set-ntp true`)";
    let now = host::unix_seconds();
    if now < LEAST_TIME {
        return Finding::fail(
            CLOCK,
            "this machine is years behind: certificates will not be valid yet",
            advice,
        );
    }
    if host::boot_seconds() <= 0 {
        let words = "the system has no CLOCK_BOOTTIME, which leases are measured by";
        return Finding::fail(
            CLOCK,
            words,
            "use Linux 2.6.39 or newer, and allow clock_gettime in sandboxes",
        );
    }
    let off = |dated: &&Dated| dated.off_by.unsigned_abs();
    let Some(worst) = dates.iter().max_by_key(off) else {
        return Finding::ok(CLOCK, "it makes sense; nobody was asked what time it is");
    };
    let Dated { who, off_by } = worst;
    let words = format!("this machine differs from {who} by {off_by} seconds");
    match off_by.unsigned_abs() {
        FAR_OFF.. => Finding::fail(CLOCK, words, advice),
        OFF.. => Finding::warn(CLOCK, words, advice),
        _ => Finding::ok(CLOCK, format!("it agrees with {who}")),
    }
}

/// Whether there may be as many connections as a cluster needs.
pub(super) fn files(settings: Option<&Settings>) -> Finding {
    let limit = getrlimit(Resource::Nofile);
    let Some(current) = limit.current else { return Finding::ok(FILES, "there is no limit") };
    let advice = "raise it: `ulimit -n 65536`, or LimitNOFILE=65536 in the unit of systemd";
    let words = format!("{current} files may be open");
    let alone = settings.is_some_and(|settings| settings.transport.kind == TransportKind::None);
    match current {
        0..FEWEST => Finding::fail(FILES, words, advice),
        _ if alone => Finding::ok(FILES, words),
        FEWEST..FEW => {
            let words = format!("{words}: each peer takes a connection for each pair of arbiters");
            Finding::warn(FILES, words, advice)
        }
        _ => Finding::ok(FILES, words),
    }
}

const CLOCK: &str = "clock";
const FILES: &str = "open files";

/// The year 2025: this program is newer.
const LEAST_TIME: i64 = 1_735_689_600;

/// How many seconds two clocks may differ, and from when on logs and certificates suffer.
const OFF: u64 = 5;
const FAR_OFF: u64 = 60;

/// Below the one a node cannot work, below the other not among many.
const FEWEST: u64 = 256;
const FEW: u64 = 4_096;

#[cfg(test)]
mod tests {
    use super::super::Standing;
    use super::*;

    #[test]
    fn clocks_that_differ_are_said_with_whom_they_differ_from() {
        let dated = |off_by| Dated { who: "etcd at a:1".to_owned(), off_by };
        let standing = |off: &[i64]| clock(&off.iter().map(|off| dated(*off)).collect::<Vec<_>>()).standing;
        assert_eq!(standing(&[]), Standing::Ok);
        assert_eq!(standing(&[0, -2]), Standing::Ok);
        assert_eq!(standing(&[0, -9]), Standing::Warn);
        assert_eq!(standing(&[3_600, 0]), Standing::Fail);
        assert!(clock(&[dated(-3_600)]).found.contains("etcd at a:1 by -3600 seconds"));
    }
}
