//! How many operations a type has: its methods, and the free functions that take it first by reference.
//!
//! Invariant: a free function counts for the type of its own crate.

use std::collections::BTreeMap;

use syn::{FnArg, ImplItem, Item, ItemImpl, Type};

use crate::source::Workspace;

/// Operations of each type, by `crate::Type`.
pub fn operations(workspace: &Workspace) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    workspace.product().for_each(|file| count(&file.crate_name, &file.product, &mut counts));
    counts
}

/// Counts the operations in items of a crate.
fn count(crate_name: &str, items: &[Item], counts: &mut BTreeMap<String, usize>) {
    for item in items {
        let (name, operations) = match item {
            Item::Impl(item) if item.trait_.is_none() => (name_of(&item.self_ty), methods(item)),
            Item::Fn(item) => (item.sig.inputs.first().and_then(referenced), 1),
            Item::Mod(item) => {
                item.content.iter().for_each(|(_, items)| count(crate_name, items, counts));
                continue;
            }
            _ => continue,
        };
        if let Some(name) = name {
            *counts.entry(format!("{crate_name}::{name}")).or_default() += operations;
        }
    }
}

fn methods(item: &ItemImpl) -> usize {
    item.items.iter().filter(|item| matches!(item, ImplItem::Fn(_))).count()
}

/// The type that an argument is a reference to.
fn referenced(argument: &FnArg) -> Option<String> {
    match argument {
        FnArg::Typed(argument) => match &*argument.ty {
            Type::Reference(reference) => name_of(&reference.elem),
            _ => None,
        },
        FnArg::Receiver(_) => None,
    }
}

/// The name of a type; `Path` and the primitive types are nobody's own.
fn name_of(kind: &Type) -> Option<String> {
    let Type::Path(path) = kind else { return None };
    let name = path.path.segments.last()?.ident.to_string();
    let is_own = name != "Path" && name.starts_with(|letter: char| letter.is_ascii_uppercase());
    is_own.then_some(name)
}
