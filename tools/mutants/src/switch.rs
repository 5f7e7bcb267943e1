
#[doc(hidden)]
#[allow(dead_code, missing_docs, warnings)]
pub mod __mutants {
    extern crate std;
    use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

    const UNREAD: u32 = u32::MAX;
    const TRACE: u32 = u32::MAX - 1;
    const NONE: u32 = u32::MAX - 2;
    static ACTIVE: AtomicU32 = AtomicU32::new(UNREAD);
    static SEEN: [AtomicBool; 16_384] = [const { AtomicBool::new(false) }; 16_384];

    /// Whether this mutant is the one that is tried. While tests are traced, it notes that this place was reached.
    pub fn on(id: u32) -> bool {
        match ACTIVE.load(Ordering::Relaxed) {
            UNREAD => begin(id),
            TRACE => trace(id),
            active => active == id,
        }
    }

    #[cold]
    fn begin(id: u32) -> bool {
        let active = match std::env::var("MUTANT") {
            Ok(text) if text == "trace" => TRACE,
            Ok(text) => text.parse().unwrap_or(NONE),
            Err(_) => NONE,
        };
        ACTIVE.store(active, Ordering::Relaxed);
        on(id)
    }

    #[cold]
    fn trace(id: u32) -> bool {
        use std::io::Write;
        let seen = &SEEN[id as usize];
        if !seen.load(Ordering::Relaxed) && !seen.swap(true, Ordering::Relaxed) {
            let path = std::env::var_os("MUTANT_TRACE").expect("a file for the trace");
            let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
            file.and_then(|mut file| file.write_all(&id.to_le_bytes())).expect("the trace can be written");
        }
        false
    }
}
