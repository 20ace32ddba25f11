//! Circles of files: files of a crate that import each other, directly or by way of others.
//!
//! An import is a `use`, or a path that begins with `crate`, `self` or `super`. A path that leads through a re-export is
//! followed to the file that has the item. Invariant: a file and the files below its own folder are one room, so that
//! imports between them do not count.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::{Item, UseTree, Visibility};

use crate::source::{SourceFile, Workspace};

/// Re-exports that a path is followed through, at most.
const REEXPORTS_MAX: usize = 4;

type ModulePath = Vec<String>;

/// Files that import each other.
pub struct FileCircle {
    crate_name: String,
    /// Each file, and the files of the circle that it imports.
    imports: BTreeMap<String, Vec<String>>,
}

impl fmt::Display for FileCircle {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {} files import each other:", self.crate_name, self.imports.len())?;
        self.imports.iter().try_for_each(|(file, imports)| write!(out, "\n  {file} imports {}", imports.join(", ")))
    }
}

/// Every circle of files.
pub fn find(workspace: &Workspace) -> Vec<FileCircle> {
    let circles = |name: &&str| {
        let files = workspace.product().filter(|file| file.crate_name == **name).collect();
        CrateFiles::new(files).circles()
    };
    workspace.crates().iter().flat_map(circles).collect()
}

/// The files of a crate by their modules.
struct CrateFiles<'a> {
    files: BTreeMap<ModulePath, &'a SourceFile>,
    /// Where an item that a module re-exports really is.
    reexports: BTreeMap<(ModulePath, String), ModulePath>,
}

impl<'a> CrateFiles<'a> {
    fn new(files: Vec<&'a SourceFile>) -> Self {
        let files: BTreeMap<_, _> = files.into_iter().map(|file| (file.module.clone(), file)).collect();
        let mut crate_files = Self { files, reexports: BTreeMap::new() };
        let mut reexports = BTreeMap::new();
        for file in crate_files.files.values() {
            for (is_public, path) in uses(&file.product) {
                let item = path.last().cloned().unwrap_or_default();
                let target = crate_files.absolute(file, path);
                if let Some(target) = target.filter(|_| is_public) {
                    reexports.insert((file.module.clone(), item), target);
                }
            }
        }
        crate_files.reexports = reexports;
        crate_files
    }

    /// A path from the root of the crate; `None` where it leads into another crate.
    fn absolute(&self, file: &SourceFile, path: ModulePath) -> Option<ModulePath> {
        let mut module = file.module.clone();
        let mut rest = path.as_slice();
        match rest.first().map(String::as_str) {
            Some("crate") => return Some(rest[1..].to_vec()),
            Some("self") => rest = &rest[1..],
            Some("super") => {
                while rest.first().is_some_and(|first| first == "super") {
                    module.pop();
                    rest = &rest[1..];
                }
            }
            Some(first) => {
                let child: ModulePath = module.iter().cloned().chain([first.to_owned()]).collect();
                self.files.get(&child)?;
            }
            None => return None,
        }
        Some(module.into_iter().chain(rest.iter().cloned()).collect())
    }

    /// The file that has the item at a path.
    fn resolve(&self, mut path: ModulePath) -> Option<&'a SourceFile> {
        let mut found = self.files.get(&Vec::new()).copied();
        for _ in 0..REEXPORTS_MAX {
            let depth = (0..=path.len()).rev().find(|&depth| self.files.contains_key(&path[..depth]))?;
            found = self.files.get(&path[..depth]).copied();
            let reexport = path.get(depth).and_then(|item| self.reexports.get(&(path[..depth].to_vec(), item.clone())));
            match reexport {
                Some(target) => path = target.iter().chain(&path[depth + 1..]).cloned().collect(),
                None => break,
            }
        }
        found
    }

    /// The modules that a file imports, its own room left out.
    fn imports(&self, file: &SourceFile) -> BTreeSet<ModulePath> {
        let private = uses(&file.product).into_iter().filter(|(is_public, _)| !is_public).map(|(_, path)| path);
        let others = file.product.iter().filter(|item| !matches!(item, Item::Use(_)));
        let named = others.flat_map(|item| named_paths(item.to_token_stream()));
        let targets = private.chain(named).filter_map(|path| self.resolve(self.absolute(file, path)?));
        let is_other_room =
            |target: &&SourceFile| target.module != file.module && !is_below(file, target) && !is_below(target, file);
        targets.filter(is_other_room).map(|target| target.module.clone()).collect()
    }

    fn circles(&self) -> Vec<FileCircle> {
        let imports: BTreeMap<_, _> = self.files.iter().map(|(module, file)| (module, self.imports(file))).collect();
        let reached: BTreeMap<_, _> = imports.keys().map(|&module| (module, reachable(module, &imports))).collect();
        let mut circles = Vec::new();
        let mut done = BTreeSet::new();
        for (&module, targets) in &reached {
            if done.contains(module) || !targets.contains(module) {
                continue;
            }
            let circle: BTreeSet<_> = targets.iter().filter(|target| reached[target].contains(module)).collect();
            let name = |module: &ModulePath| self.files[module].path.display().to_string();
            let within =
                |module: &ModulePath| imports[module].iter().filter(|to| circle.contains(to)).map(name).collect();
            circles.push(FileCircle {
                crate_name: self.files[module].crate_name.clone(),
                imports: circle.iter().map(|module| (name(module), within(module))).collect(),
            });
            done.extend(circle.into_iter().cloned());
        }
        circles
    }
}

/// All modules that can be reached by imports from one.
fn reachable(from: &ModulePath, imports: &BTreeMap<&ModulePath, BTreeSet<ModulePath>>) -> BTreeSet<ModulePath> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&ModulePath> = imports[from].iter().collect();
    while let Some(module) = open.pop() {
        if reached.insert(module.clone()) {
            open.extend(&imports[module]);
        }
    }
    reached
}

/// Whether a file stands below the folder of another.
fn is_below(file: &SourceFile, folder: &SourceFile) -> bool {
    folder.is_folder && file.module.starts_with(&folder.module)
}

/// The paths of all `use` items, and whether they are re-exports.
fn uses(items: &[Item]) -> Vec<(bool, ModulePath)> {
    let mut paths = Vec::new();
    for item in items {
        match item {
            Item::Use(item) => {
                let is_public = !matches!(item.vis, Visibility::Inherited);
                let mut found = Vec::new();
                expand(&item.tree, Vec::new(), &mut found);
                paths.extend(found.into_iter().map(|path| (is_public, path)));
            }
            Item::Mod(item) => paths.extend(item.content.iter().flat_map(|(_, items)| uses(items))),
            _ => {}
        }
    }
    paths
}

/// Adds every path of a tree of imports.
fn expand(tree: &UseTree, mut prefix: ModulePath, paths: &mut Vec<ModulePath>) {
    match tree {
        UseTree::Path(path) => {
            prefix.push(path.ident.to_string());
            expand(&path.tree, prefix, paths);
        }
        UseTree::Name(name) if name.ident == "self" => paths.push(prefix),
        UseTree::Name(name) => paths.push(prefix.into_iter().chain([name.ident.to_string()]).collect()),
        UseTree::Rename(rename) => paths.push(prefix.into_iter().chain([rename.ident.to_string()]).collect()),
        UseTree::Glob(_) => paths.push(prefix),
        UseTree::Group(group) => group.items.iter().for_each(|tree| expand(tree, prefix.clone(), paths)),
    }
}

/// The paths in code that begin with `crate`, `self` or `super`.
fn named_paths(tokens: TokenStream) -> Vec<ModulePath> {
    let mut paths = Vec::new();
    let mut path: ModulePath = Vec::new();
    let mut colons = 0;
    for token in tokens {
        match token {
            TokenTree::Ident(word) if colons == 2 && !path.is_empty() => {
                path.push(word.to_string());
                colons = 0;
            }
            TokenTree::Ident(word) => {
                paths.extend((path.len() > 1).then(|| std::mem::take(&mut path)));
                path.clear();
                colons = 0;
                if ["crate", "self", "super"].iter().any(|first| word == first) {
                    path.push(word.to_string());
                }
            }
            TokenTree::Punct(mark) if mark.as_char() == ':' && colons < 2 => colons += 1,
            token => {
                paths.extend((path.len() > 1).then(|| std::mem::take(&mut path)));
                path.clear();
                colons = 0;
                if let TokenTree::Group(group) = token {
                    paths.extend(named_paths(group.stream()));
                }
            }
        }
    }
    paths.extend((path.len() > 1).then_some(path));
    paths
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// The circles of a crate with these files.
    fn circles(files: &[(&str, &str)]) -> Vec<String> {
        let dir = tempfile::tempdir().unwrap();
        for (path, source) in files {
            let path = dir.path().join("crates/some/src").join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, source).unwrap();
        }
        find(&Workspace::read(dir.path()).unwrap()).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn files_that_import_each_other_are_a_circle() {
        let files = [
            ("lib.rs", "mod a; mod b; mod c;"),
            ("a.rs", "use crate::b::B; pub struct A;"),
            ("b.rs", "fn f() { vec![crate::c::C]; } pub struct B;"),
            ("c.rs", "use super::a::{self, A}; pub struct C;"),
        ];
        let found = circles(&files);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("some: 3 files import each other"), "{}", found[0]);
    }

    #[test]
    fn a_re_export_does_not_hide_a_circle() {
        let files = [
            ("lib.rs", "mod a; mod room;"),
            ("a.rs", "use crate::room::B; pub struct A;"),
            ("room/mod.rs", "mod b; pub use b::B;"),
            ("room/b.rs", "use crate::a::A; pub struct B;"),
        ];
        assert_eq!(circles(&files).len(), 1);
    }

    #[test]
    fn a_folder_and_its_own_files_are_one_room_and_tests_do_not_count() {
        let files = [
            ("lib.rs", "mod room; mod low; pub struct Top;"),
            ("room/mod.rs", "mod b; use b::B; use crate::low::L; pub struct A;"),
            ("room/b.rs", "use super::A; use crate::Top; pub struct B;"),
            ("low.rs", "pub struct L; #[cfg(test)] mod tests { use crate::room::A; }"),
        ];
        assert_eq!(circles(&files), Vec::<String>::new());
    }
}
