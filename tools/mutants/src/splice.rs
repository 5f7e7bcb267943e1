//! All mutants of a file at once, each behind a question that is answered when the program runs.
//!
//! `a < b` becomes `(if crate::__mutants::on(7) { (a) <= (b) } else { a < b })`, and a function that mutant 8 replaces
//! by a value begins with `if crate::__mutants::on(8) { return value; }`. So one build serves every mutant.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use proc_macro2::LineColumn;
use syn::spanned::Spanned;
use syn::visit::Visit;

use crate::list::{Genre, Mutant, Place};

/// What a crate gets beside its code.
pub const SWITCH: &str = include_str!("switch.rs");

/// A file with its mutants in it.
pub struct Spliced {
    pub text: String,
    /// Where in the new text each mutant stands, by bytes.
    pub ranges: Vec<(Range<usize>, u32)>,
    /// Where in the new text a question is asked, with what it may change; the inner places before the outer ones.
    pub places: Vec<(Range<usize>, Vec<u32>)>,
    /// Mutants in places where nothing can be asked, such as a function that the compiler evaluates.
    pub left: BTreeSet<u32>,
    /// Mutants that no compiler takes: `||` beside a `let`.
    pub unviable: BTreeSet<u32>,
}

/// One place of the old text, and what stands there with each of its mutants.
#[derive(Default)]
struct Site {
    variants: Vec<(u32, String)>,
}

/// How the mutants of a place are put in.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Way {
    /// Before the first statement of a function.
    Return,
    /// Around an expression.
    Choose,
    /// As the guard of a match arm.
    Guard,
}

/// Splices the mutants into a file's text.
pub fn splice(text: &str, mutants: &[(u32, &Mutant)]) -> Result<Spliced, syn::Error> {
    let file = syn::parse_file(text)?;
    let offsets = Offsets::new(text);
    let mut places = Places::new(&offsets);
    places.visit_file(&file);

    let mut sites: BTreeMap<(usize, std::cmp::Reverse<usize>, Way), Site> = BTreeMap::new();
    let (mut left, mut unviable) = (BTreeSet::new(), BTreeSet::new());
    for (id, mutant) in mutants {
        let (start, end) = (offsets.of(mutant.span.start), offsets.of(mutant.span.end));
        let whole = mutant.genre == Genre::FnValue;
        let within = |ranges: &[Range<usize>]| ranges.iter().any(|range| range.contains(&start));
        if within(&places.constant) || whole && places.hidden.contains(&start) {
            left.insert(*id);
            continue;
        }
        if places.lets.contains(&start) {
            unviable.insert(*id);
            continue;
        }
        let found = match mutant.genre {
            Genre::FnValue => Some((Way::Return, start..start, mutant.replacement.clone())),
            Genre::MatchArmGuard => Some((Way::Choose, start..end, mutant.replacement.clone())),
            Genre::BinaryOperator => places.binary.get(&start).map(|[whole, left, right]| {
                let text = format!("({}) {} ({})", &text[left.clone()], mutant.replacement, &text[right.clone()]);
                (Way::Choose, whole.clone(), text)
            }),
            Genre::UnaryOperator => places
                .unary
                .get(&start)
                .map(|(whole, operand)| (Way::Choose, whole.clone(), format!("({})", &text[operand.clone()]))),
            Genre::MatchArm => places.arms.get(&start).map(|at| (Way::Guard, *at..*at, String::new())),
            Genre::StructField => places.structs.iter().rfind(|whole| whole.contains(&start)).map(|whole| {
                let without = format!("{}{}", &text[whole.start..start], &text[end..whole.end]);
                (Way::Choose, whole.clone(), without)
            }),
        };
        match found {
            Some((way, range, variant)) => {
                let key = (range.start, std::cmp::Reverse(range.end), way);
                sites.entry(key).or_default().variants.push((*id, variant));
            }
            None => drop(left.insert(*id)),
        }
    }
    let sites = sites.into_iter().map(|((start, end, way), site)| (start..end.0, way, site)).collect::<Vec<_>>();
    let mut writer = Writer { old: text, sites: &sites, text: String::new(), ranges: Vec::new(), places: Vec::new() };
    writer.write(0..text.len(), 0);
    Ok(Spliced { text: writer.text, ranges: writer.ranges, places: writer.places, left, unviable })
}

struct Writer<'a> {
    old: &'a str,
    /// In the order of their beginnings; of those that begin together the outer ones first.
    sites: &'a [(Range<usize>, Way, Site)],
    text: String,
    ranges: Vec<(Range<usize>, u32)>,
    places: Vec<(Range<usize>, Vec<u32>)>,
}

impl Writer<'_> {
    /// Writes a range of the old text with the sites from `next` on that lie in it; returns the first site behind it.
    fn write(&mut self, range: Range<usize>, mut next: usize) -> usize {
        let mut at = range.start;
        while let Some((place, way, site)) = self.sites.get(next)
            && place.end <= range.end
            && place.start < range.end
        {
            self.text.push_str(&self.old[at..place.start]);
            next = self.site(place, *way, site, next + 1);
            at = place.end;
        }
        self.text.push_str(&self.old[at..range.end]);
        next
    }

    fn site(&mut self, place: &Range<usize>, way: Way, site: &Site, next: usize) -> usize {
        match way {
            Way::Return => {
                for (id, variant) in &site.variants {
                    self.variant(*id, &format!("if crate::__mutants::on({id}) {{ return {variant}; }} "));
                }
                next
            }
            Way::Guard => {
                for (id, _) in &site.variants {
                    self.variant(*id, &format!(" if !crate::__mutants::on({id})"));
                }
                next
            }
            Way::Choose => {
                let start = self.text.len();
                self.text.push('(');
                for (id, variant) in &site.variants {
                    self.variant(*id, &format!("if crate::__mutants::on({id}) {{ {variant} }} else "));
                }
                self.text.push_str("{ ");
                let next = self.write(place.clone(), next);
                self.text.push_str(" })");
                self.places.push((start..self.text.len(), site.variants.iter().map(|(id, _)| *id).collect()));
                next
            }
        }
    }

    fn variant(&mut self, id: u32, text: &str) {
        let start = self.text.len();
        self.text.push_str(text);
        self.ranges.push((start..self.text.len(), id));
    }
}

/// Where the operators, arms and literals of a file are, by where cargo-mutants says they begin.
struct Places<'a> {
    offsets: &'a Offsets,
    /// Operator → whole expression, left side, right side.
    binary: BTreeMap<usize, [Range<usize>; 3]>,
    /// Operator → whole expression, operand.
    unary: BTreeMap<usize, (Range<usize>, Range<usize>)>,
    /// Arm of a match that has one for all the rest → end of its pattern.
    arms: BTreeMap<usize, usize>,
    /// Literals of structs, the outer ones before those within them.
    structs: Vec<Range<usize>>,
    /// What the compiler evaluates.
    constant: Vec<Range<usize>>,
    /// Operators and guards with a `let` in what they join.
    lets: BTreeSet<usize>,
    /// Bodies of functions that hide their type, `-> impl Iterator`: all that they return has one type.
    hidden: BTreeSet<usize>,
}

fn has_let(expression: &syn::Expr) -> bool {
    match expression {
        syn::Expr::Let(_) => true,
        syn::Expr::Binary(binary) => has_let(&binary.left) || has_let(&binary.right),
        _ => false,
    }
}

impl<'a> Places<'a> {
    fn new(offsets: &'a Offsets) -> Self {
        Places {
            offsets,
            binary: BTreeMap::new(),
            unary: BTreeMap::new(),
            arms: BTreeMap::new(),
            structs: Vec::new(),
            constant: Vec::new(),
            lets: BTreeSet::new(),
            hidden: BTreeSet::new(),
        }
    }

    fn function(&mut self, signature: &syn::Signature, body: &syn::Block, whole: Range<usize>) {
        if signature.constness.is_some() {
            self.constant.push(whole);
        }
        let mut search = Hidden(false);
        search.visit_return_type(&signature.output);
        if let (true, Some(first)) = (search.0, body.stmts.first()) {
            self.hidden.insert(self.range(first).start);
        }
    }

    fn range(&self, of: &impl Spanned) -> Range<usize> {
        let span = of.span();
        self.offsets.at(span.start())..self.offsets.at(span.end())
    }
}

impl<'ast> Visit<'ast> for Places<'_> {
    fn visit_expr_binary(&mut self, it: &'ast syn::ExprBinary) {
        let operator = self.range(&it.op).start;
        let sides = [self.range(it), self.range(&*it.left), self.range(&*it.right)];
        if has_let(&it.left) || has_let(&it.right) {
            self.lets.insert(operator);
        }
        self.binary.insert(operator, sides);
        syn::visit::visit_expr_binary(self, it);
    }

    fn visit_expr_unary(&mut self, it: &'ast syn::ExprUnary) {
        let operator = self.range(&it.op).start;
        let places = (self.range(it), self.range(&*it.expr));
        self.unary.insert(operator, places);
        syn::visit::visit_expr_unary(self, it);
    }

    fn visit_expr_match(&mut self, it: &'ast syn::ExprMatch) {
        // With a guard in each arm no compiler knows that one of them is taken.
        if it.arms.iter().any(|arm| matches!(arm.pat, syn::Pat::Wild(_)) && arm.guard.is_none()) {
            let arms = it.arms.iter().map(|arm| (self.range(arm).start, self.range(&arm.pat).end));
            self.arms.extend(arms.collect::<Vec<_>>());
        }
        syn::visit::visit_expr_match(self, it);
    }

    fn visit_arm(&mut self, it: &'ast syn::Arm) {
        if let Some((_, guard)) = &it.guard
            && has_let(guard)
        {
            self.lets.insert(self.range(&**guard).start);
        }
        syn::visit::visit_arm(self, it);
    }

    fn visit_expr_struct(&mut self, it: &'ast syn::ExprStruct) {
        self.structs.push(self.range(it));
        syn::visit::visit_expr_struct(self, it);
    }

    fn visit_item_const(&mut self, it: &'ast syn::ItemConst) {
        self.constant.push(self.range(it));
    }

    fn visit_item_static(&mut self, it: &'ast syn::ItemStatic) {
        self.constant.push(self.range(it));
    }

    fn visit_impl_item_const(&mut self, it: &'ast syn::ImplItemConst) {
        self.constant.push(self.range(it));
    }

    fn visit_item_fn(&mut self, it: &'ast syn::ItemFn) {
        self.function(&it.sig, &it.block, self.range(it));
        syn::visit::visit_item_fn(self, it);
    }

    fn visit_impl_item_fn(&mut self, it: &'ast syn::ImplItemFn) {
        self.function(&it.sig, &it.block, self.range(it));
        syn::visit::visit_impl_item_fn(self, it);
    }
}

/// Whether a type has an `impl` in it.
struct Hidden(bool);

impl Visit<'_> for Hidden {
    fn visit_type_impl_trait(&mut self, _: &syn::TypeImplTrait) {
        self.0 = true;
    }
}

/// From lines and columns to bytes.
struct Offsets {
    /// For each line the byte of each of its characters, and of its end.
    lines: Vec<Vec<usize>>,
}

impl Offsets {
    fn new(text: &str) -> Offsets {
        let mut lines = vec![Vec::new()];
        for (at, letter) in text.char_indices() {
            if let Some(line) = lines.last_mut() {
                line.push(at);
            }
            if letter == '\n' {
                lines.push(Vec::new());
            }
        }
        if let Some(line) = lines.last_mut() {
            line.push(text.len());
        }
        Offsets { lines }
    }

    fn at(&self, place: LineColumn) -> usize {
        self.of(Place { line: place.line, column: place.column + 1 })
    }

    fn of(&self, place: Place) -> usize {
        let line = self.lines.get(place.line.saturating_sub(1)).map_or(&[][..], Vec::as_slice);
        line.get(place.column.saturating_sub(1)).or(line.last()).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests;
