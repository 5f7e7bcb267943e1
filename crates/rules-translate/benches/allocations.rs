//! How often each operation allocates, and how many bytes, on the cases of each file. One JSON object a line. A program
//! of its own, because counting takes time.
#![allow(clippy::print_stdout, reason = "a program for people")]

mod cases;

fn main() {
    for file in cases::arguments() {
        for mut operation in cases::operations(&file) {
            (operation.round)();
            let counted = allocation_counter::measure(&mut operation.round);
            let each = |sum: u64| sum as f64 / operation.count as f64;
            let (allocations, bytes) = (each(counted.count_total), each(counted.bytes_total));
            let (count, op) = (operation.count, operation.name);
            let line = serde_json::json!({
                "file": file, "op": op, "cases": count, "allocations": allocations, "bytes": bytes,
            });
            println!("{line}");
        }
    }
}
