//! Names of types and of tests.
//!
//! Invariant: a type counts wherever it is defined, inside a function or a macro too; an alias is no type.

use std::collections::BTreeMap;

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};

use crate::source::Workspace;

/// Characters that the name of a test may have.
pub const TEST_NAME_MAX: usize = 60;

/// Participles that do not end in `ed` or `ing`, pronouns, prepositions and adverbs: they do not say of what.
const BARE: &[&str] = &[
    "After",
    "All",
    "Any",
    "At",
    "Before",
    "Begun",
    "Below",
    "Beside",
    "Bought",
    "Broken",
    "Brought",
    "Built",
    "By",
    "Caught",
    "Chosen",
    "Done",
    "Drawn",
    "Driven",
    "Each",
    "For",
    "Forgotten",
    "Found",
    "From",
    "Given",
    "Gone",
    "Held",
    "Hidden",
    "Hold",
    "Holds",
    "How",
    "Into",
    "Kept",
    "Known",
    "Laid",
    "Left",
    "Lent",
    "Look",
    "Lost",
    "Made",
    "Meant",
    "Met",
    "None",
    "Of",
    "On",
    "Other",
    "Out",
    "Over",
    "Paid",
    "Read",
    "Run",
    "Said",
    "Seen",
    "Sent",
    "Shown",
    "Some",
    "Sought",
    "Spent",
    "Split",
    "Spoken",
    "Take",
    "Taken",
    "Taught",
    "That",
    "Them",
    "There",
    "This",
    "Thought",
    "To",
    "Told",
    "Torn",
    "Under",
    "Unseed",
    "Unseen",
    "What",
    "When",
    "Where",
    "Whether",
    "Which",
    "Who",
    "Whole",
    "Whose",
    "Why",
    "With",
    "Without",
    "Won",
    "Worn",
    "Written",
    "Wrote",
];

/// Nouns that look like participles.
const NOUNS: &[&str] = &["Feed", "Meeting", "Need", "Pairing", "Seed", "Setting", "Speed", "String", "Timing"];

/// Whether a name is a participle, a pronoun, a preposition or an adverb alone.
pub fn is_bare(name: &str) -> bool {
    let name = name.trim_end_matches(|letter: char| letter.is_ascii_digit());
    let is_single = name.chars().skip(1).all(|letter| letter.is_ascii_lowercase());
    let is_participle = (name.ends_with("ed") || name.ends_with("ing")) && !NOUNS.contains(&name);
    is_single && (is_participle || BARE.contains(&name))
}

/// How often each name is that of a type of the product.
pub fn types(workspace: &Workspace) -> BTreeMap<String, usize> {
    let mut types = TypeNames::default();
    workspace.product().flat_map(|file| &file.product).for_each(|item| types.visit_item(item));
    types.0
}

#[derive(Default)]
struct TypeNames(BTreeMap<String, usize>);

impl TypeNames {
    fn add(&mut self, name: &syn::Ident) {
        *self.0.entry(name.to_string()).or_default() += 1;
    }

    /// Adds the types that stand in the tokens of a macro.
    fn add_tokens(&mut self, tokens: TokenStream) {
        let mut defines = false;
        for token in tokens {
            match token {
                TokenTree::Ident(word) if defines => {
                    self.add(&word);
                    defines = false;
                }
                TokenTree::Ident(word) => defines = ["struct", "enum", "trait"].iter().any(|kind| word == kind),
                TokenTree::Group(group) => self.add_tokens(group.stream()),
                _ => defines = false,
            }
        }
    }
}

impl<'ast> Visit<'ast> for TypeNames {
    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.add(&item.ident);
        visit::visit_item_struct(self, item);
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.add(&item.ident);
        visit::visit_item_enum(self, item);
    }

    fn visit_macro(&mut self, item: &'ast syn::Macro) {
        self.add_tokens(item.tokens.clone());
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.add(&item.ident);
        visit::visit_item_trait(self, item);
    }
}

/// The names of all tests, those inside macros included.
pub fn tests(workspace: &Workspace) -> Vec<String> {
    let mut names = Vec::new();
    workspace.files().iter().for_each(|file| add_tests(file.tokens.clone(), &mut names));
    names
}

/// Adds the name of every function that follows `#[test]`.
fn add_tests(tokens: TokenStream, names: &mut Vec<String>) {
    let mut is_test = false;
    let mut is_name = false;
    for token in tokens {
        match token {
            TokenTree::Group(group) => {
                is_test |= group.stream().to_string() == "test";
                add_tests(group.stream(), names);
            }
            TokenTree::Ident(word) if is_name => {
                names.push(word.to_string());
                (is_test, is_name) = (false, false);
            }
            TokenTree::Ident(word) => is_name = is_test && word == "fn",
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_participle_or_a_pronoun_alone_is_bare_and_a_noun_is_not() {
        for name in ["Found", "Found2", "Looked", "Moving", "Why", "By"] {
            assert!(is_bare(name), "{name}");
        }
        for name in ["FoundAnchor", "Seed", "Anchor", "WaitingRequest", "Pairing"] {
            assert!(!is_bare(name), "{name}");
        }
    }

    #[test]
    fn tests_inside_macros_have_names_too() {
        let source = "proptest! { #[test] fn inside(x in 0..1) { helper(); } } #[test] #[should_panic] fn outside() {} fn not() {}";
        let mut names = Vec::new();
        add_tests(source.parse().unwrap(), &mut names);
        assert_eq!(names, ["inside", "outside"]);
    }
}
