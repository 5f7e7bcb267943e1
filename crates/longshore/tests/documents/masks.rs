//! What no two runs share: each stands for itself in a document, and for any of its kind in a comparison.

/// The line with times, dates, uids, sizes of filesystems and numbers of devices replaced by what they are.
pub fn mask(line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    let clock = words.iter().position(|word| is_clock(word));
    let masked = words.iter().enumerate().map(|(index, word)| {
        let next = words.get(index + 1).copied().unwrap_or("");
        // `date` prints three words before the time of day and two after it.
        if clock.is_some_and(|at| (at.saturating_sub(3)..=at + 2).contains(&index)) {
            return "DATE".to_string();
        }
        mask_word(word, next)
    });
    masked.collect::<Vec<_>>().join(" ")
}

fn mask_word(word: &str, next: &str) -> String {
    let bare = word.trim_end_matches([',', ';', ':', '.']);
    let is_number = bare.parse::<f64>().is_ok();
    let unit = next.trim_end_matches([',', ';', ':', '.']);
    if is_number && ["s", "ms", "seconds"].contains(&unit) {
        return "TIME".into();
    }
    let (number, letter) = bare.split_at(bare.len() - bare.chars().last().map_or(0, char::len_utf8));
    match letter {
        "s" | "m" | "h" if number.parse::<f64>().is_ok() => return "TIME".into(),
        "K" | "M" | "G" | "%" if number.parse::<f64>().is_ok() => return "SIZE".into(),
        _ => {}
    }
    if let Some(number) = bare.strip_prefix("/dev/loop")
        && number.parse::<u32>().is_ok()
    {
        return "/dev/loopN".into();
    }
    match bare.len().checked_sub(36).and_then(|at| bare.split_at_checked(at)) {
        Some((before, uid)) if is_uid(uid) => format!("{before}UID{}", &word[bare.len()..]),
        _ => word.to_string(),
    }
}

fn is_clock(word: &str) -> bool {
    let parts: Vec<&str> = word.split(':').collect();
    parts.len() == 3 && parts.iter().all(|part| part.len() == 2 && part.parse::<u32>().is_ok())
}

fn is_uid(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    parts.iter().map(|part| part.len()).eq([8, 4, 4, 4, 12])
        && parts.iter().all(|part| part.chars().all(|c| c.is_ascii_hexdigit()))
}

#[test]
fn what_differs_from_run_to_run_is_masked_and_counts_are_not() {
    let same = [
        ("written at Sun Nov 15 21:27:27 UTC 2026", "written at Mon Feb  1 01:02:03 CET 2027"),
        ("/dev/loop0       55M   15K   54M   1% /data", "/dev/loop12 54M 14K 53M 2% /data"),
        ("volume pvc-bc74db0b-9e3f-4d16-814c-08279a266fd0: x", "volume pvc-00000000-9e3f-4d16-814c-08279a266fd0: x"),
        ("depth 29; 1.7 seconds", "depth 29; 0.9 seconds"),
        ("tries again in 1.0 s: waiting", "tries again in 32.0 s: waiting"),
        ("hello   0/1   Completed   0   4s", "hello   0/1   Completed   0   12s"),
    ];
    for (one, other) in same {
        assert_eq!(mask(one), mask(other));
    }
    let different =
        [("14609 states", "15905 states"), ("64Mi", "32Mi"), ("depth 29; 1.7 seconds", "depth 30; 1.7 seconds")];
    for (one, other) in different {
        assert_ne!(mask(one), mask(other));
    }
}
