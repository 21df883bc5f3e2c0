//! Writes the seeds of every target into `data/`. Certificates are new each time, so those are written only once.

use std::path::Path;
use std::{fs, io};

use archipelago_corpus::TARGETS;

fn main() -> io::Result<()> {
    for target in TARGETS {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data").join(target.name);
        fs::create_dir_all(&folder)?;
        if target.name == "certificate" && fs::exists(folder.join("seed-00"))? {
            continue;
        }
        for (n, seed) in (target.seeds)().iter().enumerate() {
            fs::write(folder.join(format!("seed-{n:02}")), seed)?;
        }
    }
    Ok(())
}
