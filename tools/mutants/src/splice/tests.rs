//! The text that comes out, and a program made of it, which is run with each of its mutants.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::*;
use crate::list::Span;

/// A mutant of the first `what` in the text.
fn mutant(text: &str, genre: Genre, what: &str, replacement: &str) -> Mutant {
    let start = text.find(what).unwrap_or_else(|| panic!("{what} is not in the text"));
    let place = |at: usize| {
        let before = &text[..at];
        let line = before.rsplit('\n').next().unwrap_or_default();
        Place { line: before.matches('\n').count() + 1, column: line.chars().count() + 1 }
    };
    Mutant {
        name: what.into(),
        package: "rules-x".into(),
        file: "lib.rs".into(),
        span: Span { start: place(start), end: place(start + what.len()) },
        replacement: replacement.into(),
        genre,
    }
}

fn spliced(text: &str, mutants: &[(Genre, &str, &str)]) -> Spliced {
    let mutants: Vec<Mutant> =
        mutants.iter().map(|(genre, what, replacement)| mutant(text, *genre, what, replacement)).collect();
    let mutants: Vec<(u32, &Mutant)> = (1..).zip(&mutants).collect();
    splice(text, &mutants).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn an_operator_is_chosen_when_the_program_runs() {
    let spliced = spliced("fn f() -> bool { a < b }", &[(Genre::BinaryOperator, "<", "<=")]);
    assert_eq!(spliced.text, "fn f() -> bool { (if crate::__mutants::on(1) { (a) <= (b) } else { a < b }) }");
    let (range, id) = &spliced.ranges[0];
    assert_eq!((&spliced.text[range.clone()], *id), ("if crate::__mutants::on(1) { (a) <= (b) } else ", 1));
}

#[test]
fn columns_count_characters() {
    let spliced = spliced("fn f() { (\"€\", a == b) }", &[(Genre::BinaryOperator, "==", "!=")]);
    assert_eq!(spliced.text, "fn f() { (\"€\", (if crate::__mutants::on(1) { (a) != (b) } else { a == b })) }");
}

#[test]
fn what_the_compiler_runs_is_left() {
    let text = "const A: u8 = 1 + 2;\nconst fn f() -> u8 { 3 }\nfn g() -> impl Iterator<Item = u8> { h() }";
    let value = Genre::FnValue;
    let spliced = spliced(text, &[(Genre::BinaryOperator, "+", "-"), (value, "3", "0"), (value, "h()", "x()")]);
    assert_eq!(spliced.left, [1, 2, 3].into());
    assert_eq!(spliced.text, text);
}

#[test]
fn an_arm_without_one_for_all_the_rest_is_left() {
    let text = "fn f() { match a { Some(b) => c, _ if d => e, None => g } }";
    assert_eq!(spliced(text, &[(Genre::MatchArm, "None => g", "")]).left, [1].into());
}

#[test]
fn no_compiler_takes_an_or_beside_a_let() {
    let text = "fn f() { if let Some(a) = b && c { d() } }";
    assert_eq!(spliced(text, &[(Genre::BinaryOperator, "&&", "||")]).unviable, [1].into());
}

const PROGRAM: &str = "
mod lib {
    #[derive(Clone, Debug, Default)]
    pub struct Told { pub a: u8, pub b: Inner }
    #[derive(Clone, Debug, Default)]
    pub struct Inner { pub c: u8, pub d: u8 }

    pub fn all(x: u8, y: u8) -> String {
        let told = Told { a: x, b: Inner { c: y, ..Default::default() }, ..Told::default() };
        format!(\"{} {} {} {} {}\", told.a, told.b.c, word(x), sum(x, y, 1), both(x, y))
    }
    fn word(x: u8) -> &'static str {
        match x {
            1 => \"one\",
            n if n > 6 => \"many\",
            _ => \"some\",
        }
    }
    fn sum(x: u8, y: u8, z: u8) -> u8 {
        x + y * z
    }
    fn both(x: u8, y: u8) -> bool {
        let mut n = 0;
        n += x;
        x == 1 && y == 2 || !(n < 9)
    }
}
fn main() { println!(\"{} / {}\", lib::all(1, 2), lib::all(7, 3)) }
";

/// What each mutant makes of `1 2 one 3 true / 7 3 many 10 false`.
const CASES: [(Genre, &str, &str, &str); 16] = [
    (Genre::StructField, "a: x, ", "", "0 2 one 3 true / 0 3 many 10 false"),
    (Genre::StructField, "b: Inner { c: y, ..Default::default() },", "", "1 0 one 3 true / 7 0 many 10 false"),
    (Genre::StructField, "c: y,", "", "1 0 one 3 true / 7 0 many 10 false"),
    (Genre::FnValue, "match", "\"\"", "1 2  3 true / 7 3  10 false"),
    (Genre::FnValue, "match", "\"xyzzy\"", "1 2 xyzzy 3 true / 7 3 xyzzy 10 false"),
    (Genre::MatchArm, "1 => \"one\",", "", "1 2 some 3 true / 7 3 many 10 false"),
    (Genre::MatchArmGuard, "n > 6", "false", "1 2 one 3 true / 7 3 some 10 false"),
    (Genre::BinaryOperator, "> 6", "<", "1 2 one 3 true / 7 3 some 10 false"),
    (Genre::FnValue, "x + y", "0", "1 2 one 0 true / 7 3 many 0 false"),
    (Genre::BinaryOperator, "+ y", "-", "1 2 one 255 true / 7 3 many 4 false"),
    (Genre::BinaryOperator, "* z", "+", "1 2 one 4 true / 7 3 many 11 false"),
    (Genre::BinaryOperator, "+= x", "*=", "1 2 one 3 true / 7 3 many 10 false"),
    (Genre::BinaryOperator, "+= x", "-=", "1 2 one 3 true / 7 3 many 10 true"),
    (Genre::BinaryOperator, "== 1", "!=", "1 2 one 3 false / 7 3 many 10 false"),
    (Genre::BinaryOperator, "&& y", "||", "1 2 one 3 true / 7 3 many 10 false"),
    (Genre::UnaryOperator, "!(n", "", "1 2 one 3 true / 7 3 many 10 true"),
];

#[test]
fn each_mutant_does_what_its_replacement_says() {
    let mutants: Vec<_> = CASES.iter().map(|(genre, what, new, _)| (*genre, *what, *new)).collect();
    let spliced = spliced(PROGRAM, &mutants);
    assert!(spliced.left.is_empty() && spliced.unviable.is_empty());
    let program = compile(&format!("{}{SWITCH}", spliced.text));
    let run = |mutant: &str| {
        let trace = program.with_extension("trace");
        let output = Command::new(&program).env("MUTANT", mutant).env("MUTANT_TRACE", &trace).output().unwrap();
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    };
    assert_eq!(run("none"), "1 2 one 3 true / 7 3 many 10 false");
    for (id, (genre, what, new, told)) in (1..).zip(CASES) {
        assert_eq!(run(&format!("{id}")), told, "{genre:?} {what} -> {new}");
    }
    assert_eq!(run("trace"), "1 2 one 3 true / 7 3 many 10 false");
    let trace = fs::read(program.with_extension("trace")).unwrap();
    let reached: BTreeSet<u8> = trace.chunks(4).map(|four| four[0]).collect();
    assert_eq!(reached.len(), CASES.len());
    for file in [&program, &program.with_extension("rs"), &program.with_extension("trace")] {
        fs::remove_file(file).unwrap();
    }
    fs::remove_dir(program.parent().unwrap()).unwrap();
}

/// A program without checks for overflow, so that a wrong sum is a sum.
fn compile(text: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("longshore-mutants-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("main.rs"), text).unwrap();
    let words = ["--edition=2024", "--cap-lints=allow", "-Coverflow-checks=off", "main.rs"];
    let output = Command::new("rustc").args(words).current_dir(&folder).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Path::new(&folder).join("main")
}
