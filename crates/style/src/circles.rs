//! Circles of files: files of a crate that import each other, directly or by way of others.
//!
//! An import is a `use`, or a path that begins with `crate`, `self` or `super`. A path that leads through a re-export is
//! followed to the file that has the item. Invariant: an import between a `mod.rs` and the files below its folder does not
//! count, and neither does a re-export of a `mod.rs`; every other import does.

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
    /// Where an item that a module re-exports by name really is.
    reexports: BTreeMap<(ModulePath, String), ModulePath>,
    /// The modules of which a module re-exports all items.
    globs: BTreeMap<ModulePath, Vec<ModulePath>>,
}

impl<'a> CrateFiles<'a> {
    fn new(files: Vec<&'a SourceFile>) -> Self {
        let files: BTreeMap<_, _> = files.into_iter().map(|file| (file.module.clone(), file)).collect();
        let mut crate_files = Self { files, reexports: BTreeMap::new(), globs: BTreeMap::new() };
        let (mut reexports, mut globs) = (BTreeMap::new(), BTreeMap::<_, Vec<_>>::new());
        for file in crate_files.files.values() {
            for import in uses(&file.product).into_iter().filter(|import| import.is_public) {
                let Some(target) = crate_files.absolute(file, import.path) else { continue };
                match import.name {
                    Some(name) => drop(reexports.insert((file.module.clone(), name), target)),
                    None => globs.entry(file.module.clone()).or_default().push(target),
                }
            }
        }
        (crate_files.reexports, crate_files.globs) = (reexports, globs);
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
            let Some(item) = path.get(depth) else { break };
            let Some(target) = self.reexport(&path[..depth], item) else { break };
            path = target.into_iter().chain(path[depth + 1..].iter().cloned()).collect();
        }
        found
    }

    /// Where an item really is that a module re-exports, by name or with all items of another module.
    fn reexport(&self, module: &[String], item: &str) -> Option<ModulePath> {
        if let Some(target) = self.reexports.get(&(module.to_vec(), item.to_owned())) {
            return Some(target.clone());
        }
        let defines = |target: &&ModulePath| self.files.get(*target).is_some_and(|file| defines(&file.product, item));
        let target = self.globs.get(module)?.iter().find(defines)?;
        Some(target.iter().cloned().chain([item.to_owned()]).collect())
    }

    /// The modules that a file imports, its own room left out.
    fn imports(&self, file: &SourceFile) -> BTreeSet<ModulePath> {
        let counts = |import: &Import| !(import.is_public && file.is_folder);
        let used = uses(&file.product).into_iter().filter(counts).map(|import| import.path);
        let others = file.product.iter().filter(|item| !matches!(item, Item::Use(_)));
        let named = others.flat_map(|item| named_paths(item.to_token_stream()));
        let targets = used.chain(named).filter_map(|path| self.resolve(self.absolute(file, path)?));
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

/// Whether one of the items has that name.
fn defines(items: &[Item], name: &str) -> bool {
    items.iter().any(|item| match item {
        Item::Struct(item) => item.ident == name,
        Item::Enum(item) => item.ident == name,
        Item::Trait(item) => item.ident == name,
        Item::Type(item) => item.ident == name,
        Item::Const(item) => item.ident == name,
        Item::Fn(item) => item.sig.ident == name,
        _ => false,
    })
}

/// A path of a `use` item.
struct Import {
    is_public: bool,
    path: ModulePath,
    /// The name that the item gets; `None`: all items of the module.
    name: Option<String>,
}

/// The paths of all `use` items.
fn uses(items: &[Item]) -> Vec<Import> {
    let mut imports = Vec::new();
    for item in items {
        match item {
            Item::Use(item) => {
                let is_public = !matches!(item.vis, Visibility::Inherited);
                expand(&item.tree, Vec::new(), is_public, &mut imports);
            }
            Item::Mod(item) => imports.extend(item.content.iter().flat_map(|(_, items)| uses(items))),
            _ => {}
        }
    }
    imports
}

/// Adds every path of a tree of imports.
fn expand(tree: &UseTree, mut path: ModulePath, is_public: bool, imports: &mut Vec<Import>) {
    match tree {
        UseTree::Path(tree) => {
            path.push(tree.ident.to_string());
            expand(&tree.tree, path, is_public, imports);
        }
        UseTree::Name(tree) => {
            if tree.ident != "self" {
                path.push(tree.ident.to_string());
            }
            imports.push(Import { is_public, name: path.last().cloned(), path });
        }
        UseTree::Rename(tree) => {
            if tree.ident != "self" {
                path.push(tree.ident.to_string());
            }
            imports.push(Import { is_public, name: Some(tree.rename.to_string()), path });
        }
        UseTree::Glob(_) => imports.push(Import { is_public, name: None, path }),
        UseTree::Group(group) => {
            group.items.iter().for_each(|tree| expand(tree, path.clone(), is_public, imports));
        }
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
    fn no_kind_of_re_export_hides_a_circle() {
        for (reexport, import) in
            [("pub use b::B as C;", "use crate::room::C;"), ("pub use b::*;", "use crate::room::B;")]
        {
            let files = [
                ("lib.rs", "mod a; mod room;"),
                ("a.rs", &format!("{import} pub struct A;")),
                ("room/mod.rs", &format!("mod b; {reexport}")),
                ("room/b.rs", "use crate::a::A; pub struct B;"),
            ];
            assert_eq!(circles(&files).len(), 1, "{reexport}");
        }
        let files = [
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "pub(crate) use crate::b::B; pub struct A;"),
            ("b.rs", "use crate::a::A; pub struct B;"),
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
