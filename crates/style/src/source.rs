//! The source of the workspace: every Rust file, parsed, with its crate and its place among the modules.
//!
//! Invariant: `product` holds no item that is compiled for tests alone, and no line of `comments` stands in such an item.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::spanned::Spanned;
use syn::{Attribute, Item};
use walkdir::WalkDir;

/// A Rust file.
pub struct SourceFile {
    /// The path below the checkout.
    pub path: PathBuf,
    /// The folder of the crate below `crates`.
    pub crate_name: String,
    /// The module path inside the crate: `["cmd", "mount"]` for `src/cmd/mount.rs`.
    pub module: Vec<String>,
    /// Whether other files of the crate are modules of this file: it is `mod.rs`, `lib.rs` or `main.rs`.
    pub is_folder: bool,
    /// Whether the file belongs to the product, and not to tests, benches or examples.
    pub is_product: bool,
    /// The items that are compiled into the product.
    pub product: Vec<Item>,
    /// The comments beside and inside these items, a line each, without slashes.
    pub comments: Vec<String>,
    /// The whole file, tests included.
    pub tokens: TokenStream,
}

/// The Rust files of a checkout.
pub struct Workspace {
    files: Vec<SourceFile>,
}

impl Workspace {
    /// Reads every Rust file below `crates` and `fuzz`.
    ///
    /// # Errors
    /// A file that cannot be read or is no Rust.
    pub fn read(root: &Path) -> Result<Self> {
        let mut files = Vec::new();
        for folder in ["crates", "fuzz"].map(|folder| root.join(folder)).into_iter().filter(|folder| folder.is_dir()) {
            let found = WalkDir::new(folder).sort_by_file_name().into_iter();
            for entry in found.filter_entry(|entry| entry.file_name() != "target") {
                let path = entry?.into_path();
                if path.extension().is_some_and(|extension| extension == "rs") {
                    files.push(SourceFile::read(root, &path).with_context(|| path.display().to_string())?);
                }
            }
        }
        anyhow::ensure!(!files.is_empty(), "{}: no Rust file below crates", root.display());
        Ok(Self { files })
    }

    /// Every file.
    pub fn files(&self) -> &[SourceFile] {
        &self.files
    }

    /// The files of the product.
    pub fn product(&self) -> impl Iterator<Item = &SourceFile> {
        self.files.iter().filter(|file| file.is_product)
    }

    /// The names of the crates.
    pub fn crates(&self) -> BTreeSet<&str> {
        self.files.iter().map(|file| file.crate_name.as_str()).collect()
    }
}

impl SourceFile {
    fn read(root: &Path, path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path)?;
        let parsed = syn::parse_file(&text)?;
        let path = path.strip_prefix(root).unwrap_or(path).to_path_buf();
        let parts: Vec<String> = path.iter().map(|part| part.to_string_lossy().into_owned()).collect();
        let (crate_name, inside) = match parts.split_first() {
            Some((first, rest)) if first == "crates" => (rest[0].clone(), &rest[1..]),
            Some((first, rest)) => (first.clone(), rest),
            None => (String::new(), &parts[..]),
        };
        let is_source = inside.first().is_some_and(|folder| folder == "src");
        let is_test = inside.iter().any(|part| part == "tests" || part == "tests.rs");
        let mut module: Vec<String> = inside.iter().skip(1).map(|part| part.trim_end_matches(".rs").into()).collect();
        let is_folder = module.last().is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str()));
        if is_folder {
            module.pop();
        }
        let tokens = parsed.to_token_stream();
        let (tests, product): (Vec<Item>, Vec<Item>) = parsed.items.into_iter().partition(is_for_tests);
        let comments = comments(&text, &tests);
        Ok(Self { path, crate_name, module, is_folder, is_product: is_source && !is_test, product, comments, tokens })
    }
}

/// Whether an item is compiled for tests alone.
fn is_for_tests(item: &Item) -> bool {
    let has_cfg_test = |attributes: &[Attribute]| {
        attributes.iter().any(|attribute| {
            let condition = attribute.meta.require_list().map(|list| list.tokens.to_string());
            attribute.path().is_ident("cfg") && condition.is_ok_and(|condition| condition == "test")
        })
    };
    match item {
        Item::Mod(item) => has_cfg_test(&item.attrs),
        Item::Fn(item) => has_cfg_test(&item.attrs),
        Item::Impl(item) => has_cfg_test(&item.attrs),
        Item::Use(item) => has_cfg_test(&item.attrs),
        Item::Const(item) => has_cfg_test(&item.attrs),
        _ => false,
    }
}

/// The lines of comments outside `tests`, without slashes; code in comments is left out.
fn comments(text: &str, tests: &[Item]) -> Vec<String> {
    let spans: Vec<_> = tests.iter().map(|item| item.span().start().line..=item.span().end().line).collect();
    let mut lines = Vec::new();
    let mut is_code = false;
    for (number, line) in (1..).zip(text.lines()) {
        let Some(comment) = line.trim_start().strip_prefix("//") else {
            is_code = false;
            continue;
        };
        let comment = comment.trim_start_matches(['/', '!']).trim();
        if comment.starts_with("```") {
            is_code = !is_code;
        } else if !is_code && !spans.iter().any(|span| span.contains(&number)) {
            lines.push(comment.to_owned());
        }
    }
    lines
}
