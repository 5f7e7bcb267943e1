//! How often each operation is done in a second of processor time, on the cases of each file. One JSON object a line;
//! `make bench-translate` runs it beside Kubernetes' own library.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a program for people")]

mod cases;

use std::time::Duration;

fn main() {
    let [seconds, files @ ..] = &cases::arguments()[..] else { panic!("usage: translate SECONDS FILE…") };
    let long = Duration::from_secs_f64(seconds.parse().unwrap());
    for file in files {
        for mut operation in cases::operations(file) {
            (operation.round)();
            let (began, mut rounds) = (used(), 0_u32);
            while used() - began < long {
                (0..10).for_each(|_| (operation.round)());
                rounds += 10;
            }
            let per_second = f64::from(rounds) * operation.count as f64 / (used() - began).as_secs_f64();
            println!("{}", serde_json::json!({"file": file, "op": operation.name, "perSecond": per_second}));
        }
    }
}

/// The processor time of this thread, which is the only one.
fn used() -> Duration {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap();
    Duration::from_nanos(text.split(' ').next().unwrap().parse().unwrap())
}
