//! Figures that may fall and must not grow.
//!
//! Invariant: a figure of the source that is greater than the figure in the file is a breach, whatever the others are.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::operations::operations;
use crate::source::Workspace;
use crate::words::WordCount;
use crate::{names, operations};

/// Where the figures stand, below the checkout.
pub const FILE: &str = "suites/style.toml";
/// Operations of a type that is not named in the file.
const OPERATIONS_MAX: usize = 60;

const HEAD: &str = "\
# The figures that suites/style lets nobody raise. `suites/style --write` writes today's.
# shared_type_names: types that share their name with another type.
# bare_type_names: types named by a participle, a pronoun, a preposition or an adverb alone, each with its number.
# vague_words_per_1000: of the words in comments.
# long_test_names: names of tests over 60 characters.
# operations: methods, and free functions that take a type first, of every type with more than 60.

";

/// How the source is written, in figures.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figures {
    shared_type_names: usize,
    vague_words_per_1000: f64,
    long_test_names: usize,
    bare_type_names: BTreeMap<String, usize>,
    operations: BTreeMap<String, usize>,
}

impl Figures {
    /// Measures the source.
    pub fn of(workspace: &Workspace) -> Self {
        let types = names::types(workspace);
        Self {
            shared_type_names: types.values().filter(|&&count| count > 1).sum(),
            vague_words_per_1000: WordCount::of(workspace).vague_per_1000(),
            long_test_names: names::tests(workspace).iter().filter(|name| name.len() > names::TEST_NAME_MAX).count(),
            bare_type_names: types.into_iter().filter(|(name, _)| names::is_bare(name)).collect(),
            operations: operations(workspace).into_iter().filter(|&(_, count)| count > OPERATIONS_MAX).collect(),
        }
    }

    /// Reads the figures that must not grow.
    ///
    /// # Errors
    /// The file cannot be read, or is not of this form.
    pub fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
        toml::from_str(&text).with_context(|| path.display().to_string())
    }

    /// Writes these figures.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, path: &Path) -> Result<()> {
        fs::write(path, format!("{HEAD}{}", toml::to_string(self)?)).with_context(|| path.display().to_string())
    }

    /// A line for every figure that is greater than its bound.
    pub fn breaches(&self, bounds: &Self) -> Vec<String> {
        let mut breaches = Vec::new();
        let mut check = |name: &str, figure: f64, bound: f64, hint: &str| {
            if figure > bound {
                breaches.push(format!("{name}: {figure}, at most {bound}: {hint}"));
            }
        };
        check(
            "types that share their name with another type",
            self.shared_type_names as f64,
            bounds.shared_type_names as f64,
            "give the new type a name of its own",
        );
        check(
            "vague words in 1,000 words of comments",
            self.vague_words_per_1000,
            bounds.vague_words_per_1000,
            "name the thing instead of \"what\", \"one\", \"those\" or \"such\"",
        );
        check(
            "names of tests over 60 characters",
            self.long_test_names as f64,
            bounds.long_test_names as f64,
            "shorten the name",
        );
        for (name, &count) in &self.bare_type_names {
            let bound = bounds.bare_type_names.get(name).copied().unwrap_or(0);
            check(
                &format!("types named {name}"),
                count as f64,
                bound as f64,
                "a noun says of what, as FoundAnchor does",
            );
        }
        for (name, &count) in &self.operations {
            let bound = bounds.operations.get(name).copied().unwrap_or(OPERATIONS_MAX);
            check(&format!("operations of {name}"), count as f64, bound as f64, "split the type");
        }
        breaches
    }

    /// Prints every name that counts.
    pub fn list(&self, workspace: &Workspace) {
        let shared = names::types(workspace).into_iter().filter(|&(_, count)| count > 1);
        shared.for_each(|(name, count)| println!("shared type name: {name} ({count})"));
        self.bare_type_names.iter().for_each(|(name, count)| println!("bare type name: {name} ({count})"));
        let long: BTreeSet<String> = names::tests(workspace).into_iter().collect();
        let long = long.iter().filter(|name| name.len() > names::TEST_NAME_MAX);
        long.for_each(|name| println!("long test name: {name}"));
        operations::operations(workspace)
            .iter()
            .filter(|&(_, &count)| count > OPERATIONS_MAX / 2)
            .for_each(|(name, count)| println!("operations: {name} ({count})"));
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "{} types share a name, {} are named barely, {} vague words in 1,000, {} long names of tests, \
             {} types with over {OPERATIONS_MAX} operations: none more than before",
            self.shared_type_names,
            self.bare_type_names.values().sum::<usize>(),
            self.vague_words_per_1000,
            self.long_test_names,
            self.operations.len()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checkout(source: &str) -> (tempfile::TempDir, Workspace) {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("crates/some/src")).unwrap();
        fs::write(dir.path().join("crates/some/src/lib.rs"), source).unwrap();
        let workspace = Workspace::read(dir.path()).unwrap();
        (dir, workspace)
    }

    fn breaches(before: &str, after: &str) -> Vec<String> {
        let bounds = Figures::of(&checkout(before).1);
        Figures::of(&checkout(after).1).breaches(&bounds)
    }

    #[test]
    fn a_type_named_by_a_participle_is_refused_wherever_it_is_added() {
        let before = "struct Anchor;";
        assert_eq!(breaches(before, before), Vec::<String>::new());
        for added in [
            "struct Found;",
            "fn f() { enum Found {} }",
            "mod inner { pub trait Found {} }",
            "named! { struct Found; }",
        ] {
            let found = breaches(before, &format!("{before} {added}"));
            assert_eq!(found.len(), 1, "{added}: {found:?}");
            assert!(found[0].starts_with("types named Found: 1, at most 0"), "{found:?}");
        }
        assert_eq!(breaches(before, "struct Anchor; #[cfg(test)] mod tests { struct Found; }"), Vec::<String>::new());
        assert_eq!(breaches(before, "struct Anchor; #[cfg(not(test))] mod product { struct Found; }").len(), 1);
        // A name that is known does not excuse another one.
        assert_eq!(breaches("struct Found;", "struct Moved;").len(), 1);
    }

    #[test]
    fn a_second_type_of_a_name_a_vague_comment_and_a_long_test_name_are_refused() {
        assert_eq!(breaches("struct Anchor;", "struct Anchor; mod other { struct Anchor; }").len(), 1);
        assert_eq!(breaches("// The block is free.", "// The block is the one that nobody has.").len(), 1);
        let long = format!("#[cfg(test)] mod tests {{ #[test] fn {}() {{}} }}", "a".repeat(61));
        assert_eq!(breaches("", &long).len(), 1);
    }

    #[test]
    fn free_functions_count_as_operations_of_the_type_they_take_first() {
        let functions =
            |count| (0..count).map(|n| format!("fn f{n}(store: &mut Store, n: u32) {{}} ")).collect::<String>();
        assert_eq!(breaches("", &functions(60)), Vec::<String>::new());
        let refused = ["operations of some::Store: 61, at most 60: split the type"];
        assert_eq!(breaches("", &functions(61)), refused);
        assert_eq!(breaches("", &format!("mod inner {{ {} }}", functions(61))), refused);
    }

    #[test]
    fn figures_are_the_same_after_writing_and_reading() {
        let (dir, workspace) = checkout("struct Found; struct Anchor; mod other { struct Anchor; }");
        let (figures, path) = (Figures::of(&workspace), dir.path().join("style.toml"));
        figures.write(&path).unwrap();
        assert_eq!(Figures::read(&path).unwrap(), figures);
    }
}
