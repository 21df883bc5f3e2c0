//! `#[derive(VirtualActor)]`.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::ext::IdentExt;
use syn::meta::ParseNestedMeta;
use syn::spanned::Spanned;
use syn::{DeriveInput, Error, Ident, LitStr, Result, Token};

use crate::handles::Handles;
use crate::named_actor::named_actor_impl;
use crate::options::{Root, Seen, placed, read_attributes, text};

/// What `#[virtual_actor(..)]` says.
struct VirtualActorOptions {
    root: Root,
    kind: String,
    handles: Handles,
    /// The user implements `Lifecycle`.
    lifecycle: bool,
    /// The user implements `Persistent`.
    persistent: bool,
    /// The user implements `Migrate`.
    migrate: bool,
    interleave: Interleave,
}

/// As `Interleave` of the protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Interleave {
    #[default]
    Never,
    ReadOnly,
    Always,
}

/// Expands the derive.
pub(crate) fn expand(input: &DeriveInput) -> Result<TokenStream> {
    let options = VirtualActorOptions::read(input)?;
    let declarations = options.handles.declarations(input, &options.root);
    let lifecycle = if options.lifecycle { TokenStream::new() } else { options.empty_lifecycle(input) };
    let actor = options.virtual_actor_impl(input);
    let named = named_actor_impl(input, &options.handles, &options.root);
    Ok(quote!(#actor #named #lifecycle #declarations))
}

impl VirtualActorOptions {
    fn read(input: &DeriveInput) -> Result<Self> {
        let mut seen = Seen::new("#[virtual_actor(..)]", KNOWN);
        let mut root = Root::default();
        let (mut kind, mut handles, mut interleave) = (None, None, Interleave::Never);
        let (mut lifecycle, mut persistent, mut migrate) = (false, false, false);
        read_attributes(&input.attrs, "virtual_actor", |meta| {
            match seen.next(meta)?.as_str() {
                "handles" => handles = Some(Handles::read(meta)?),
                "kind" => kind = Some(kind_of_literal(&text(meta)?)?),
                "lifecycle" => lifecycle = true,
                "persistent" => persistent = true,
                "migrate" => migrate = true,
                "interleave" => interleave = Interleave::read(meta)?,
                "crate" => root = Root::read(meta)?,
                _ => return Err(seen.unknown(meta)),
            }
            Ok(())
        })?;
        let kind = match kind {
            Some(kind) => kind,
            None => kind_of_type(&input.ident)?,
        };
        let handles = handles.ok_or_else(|| Handles::missing(input, "virtual_actor"))?;
        Ok(Self { root, kind, handles, lifecycle, persistent, migrate, interleave })
    }

    fn virtual_actor_impl(&self, input: &DeriveInput) -> TokenStream {
        let (runtime, protocol) = (self.root.runtime(), self.root.protocol());
        let (impl_generics, type_generics, where_clause) = input.generics.split_for_impl();
        let (actor, kind) = (&input.ident, &self.kind);
        let interleave = self.interleave.variant();
        let persistence = self.persistent.then(|| {
            quote! {
                const PERSISTENCE: ::core::option::Option<#runtime::Persistence<Self>> =
                    ::core::option::Option::Some(#runtime::Persistence::of_actor());
            }
        });
        let migration = self.migrate.then(|| {
            quote! {
                const MIGRATION: ::core::option::Option<#runtime::Migration<Self>> =
                    ::core::option::Option::Some(#runtime::Migration::of_actor());
            }
        });
        let table = Ident::new("table", Span::mixed_site());
        let adds = self.handles.messages().iter().map(|message| {
            let place = message.span();
            let (runtime, table) = (placed(&runtime, place), placed(&table, place));
            quote_spanned!(place=> #runtime::MessageTable::add::<#message>(#table);)
        });
        quote! {
            #[automatically_derived]
            impl #impl_generics #runtime::VirtualActor for #actor #type_generics #where_clause {
                const KIND: &'static str = #kind;
                const INTERLEAVE: #protocol::activation::Interleave =
                    #protocol::activation::Interleave::#interleave;
                #persistence
                #migration

                #[allow(unused_variables)]
                fn messages(#table: &mut #runtime::MessageTable<Self>) {
                    #(#adds)*
                }
            }
        }
    }

    fn empty_lifecycle(&self, input: &DeriveInput) -> TokenStream {
        let runtime = self.root.runtime();
        let (impl_generics, type_generics, where_clause) = input.generics.split_for_impl();
        let actor = &input.ident;
        quote! {
            #[automatically_derived]
            impl #impl_generics #runtime::Lifecycle for #actor #type_generics #where_clause {
                const HOOKS: bool = false;
            }
        }
    }
}

impl Interleave {
    fn read(meta: &ParseNestedMeta<'_>) -> Result<Self> {
        if !meta.input.peek(Token![=]) {
            return Ok(Self::Always);
        }
        let rule = text(meta)?;
        match rule.value().as_str() {
            "read_only" => Ok(Self::ReadOnly),
            _ => Err(Error::new_spanned(
                rule,
                "write `interleave` to let every message overlap, `interleave = \"read_only\"` for those marked \
                 `always_interleave`, or leave it out for one message at a time",
            )),
        }
    }

    fn variant(self) -> Ident {
        let name = match self {
            Self::Never => "Never",
            Self::ReadOnly => "ReadOnly",
            Self::Always => "Always",
        };
        Ident::new(name, Span::call_site())
    }
}

fn kind_of_literal(kind: &LitStr) -> Result<String> {
    let text = kind.value();
    match kind_problem(&text) {
        Some(problem) => Err(Error::new_spanned(kind, problem)),
        None => Ok(text),
    }
}

fn kind_of_type(ident: &Ident) -> Result<String> {
    let text = ident.unraw().to_string();
    match kind_problem(&text) {
        Some(problem) => {
            let message = format!("{problem}; give it another one with `#[virtual_actor(kind = \"..\")]`");
            Err(Error::new_spanned(ident, message))
        }
        None => Ok(text),
    }
}

/// Why `text` cannot be a kind, if so: the rules of `ActorKind`, checked where the user sees the place.
fn kind_problem(text: &str) -> Option<String> {
    if text.is_empty() {
        return Some("a kind must not be empty".to_owned());
    }
    if let Some(other) = text.chars().find(|&c| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-')))
    {
        return Some(format!(
            "a kind holds only letters, digits, `.`, `_` and `-` of ASCII, `{text}` has {other:?}"
        ));
    }
    let len = text.len();
    (len > MAX_KIND).then(|| format!("a kind has at most {MAX_KIND} characters, this one has {len}"))
}

/// `IdField::Kind.max_len()` of the protocol.
const MAX_KIND: usize = 64;

const KNOWN: &[&str] = &[
    "handles(..)",
    "kind = \"..\"",
    "lifecycle",
    "persistent",
    "migrate",
    "interleave",
    "interleave = \"read_only\"",
    "crate = \"..\"",
];

#[cfg(test)]
mod tests {
    use syn::parse_quote;

    use super::*;
    use crate::options::spelled;

    fn read(input: &DeriveInput) -> VirtualActorOptions {
        VirtualActorOptions::read(input).unwrap()
    }

    fn refused(input: &DeriveInput) -> String {
        expand(input).unwrap_err().to_string()
    }

    #[test]
    fn the_default_kind_is_the_type_name() {
        assert_eq!(
            read(&parse_quote!(
                #[virtual_actor(handles(A))]
                struct Account;
            ))
            .kind,
            "Account"
        );
        assert_eq!(
            read(&parse_quote!(
                #[virtual_actor(handles(A))]
                struct r#match;
            ))
            .kind,
            "match"
        );
        let given: DeriveInput = parse_quote!(
            #[virtual_actor(kind = "bank.a-1_b", handles(A))]
            struct Account;
        );
        assert_eq!(read(&given).kind, "bank.a-1_b");
    }

    #[test]
    fn a_kind_outside_the_alphabet_is_refused() {
        let kind = |kind: &str| {
            parse_quote!(
                #[virtual_actor(handles(A), kind = #kind)]
                struct Account;
            )
        };
        assert_eq!(read(&kind(&"k".repeat(64))).kind.len(), 64);
        assert_eq!(refused(&kind("")), "a kind must not be empty");
        assert!(refused(&kind(&"k".repeat(65))).contains("at most 64 characters, this one has 65"));
        for bad in ["a/b", "a b", "konto\u{e4}"] {
            assert!(refused(&kind(bad)).starts_with("a kind holds only"), "{bad}");
        }
        let error = refused(&parse_quote!(
            #[virtual_actor(handles(A))]
            struct Größe;
        ));
        assert!(error.ends_with("give it another one with `#[virtual_actor(kind = \"..\")]`"), "{error}");
    }

    #[test]
    fn messages_do_not_overlap_unless_told_so() {
        let rule = |input: DeriveInput| read(&input).interleave;
        assert_eq!(
            rule(parse_quote!(
                #[virtual_actor(handles(A))]
                struct X;
            )),
            Interleave::Never
        );
        assert_eq!(
            rule(parse_quote!(
                #[virtual_actor(handles(A), interleave)]
                struct X;
            )),
            Interleave::Always
        );
        let read_only = parse_quote!(
            #[virtual_actor(handles(A), interleave = "read_only")]
            struct X;
        );
        assert_eq!(rule(read_only), Interleave::ReadOnly);
        let error = refused(&parse_quote!(
            #[virtual_actor(handles(A), interleave = "some")]
            struct X;
        ));
        assert!(error.starts_with("write `interleave` to let every message overlap"), "{error}");
    }

    #[test]
    fn hooks_are_off_unless_the_user_writes_the_lifecycle() {
        let text = |input: DeriveInput| spelled(&expand(&input).unwrap());
        let without = text(parse_quote!(
            #[virtual_actor(handles(A))]
            struct X;
        ));
        assert!(without.contains("Lifecycle for X { const HOOKS : bool = false ; }"), "{without}");
        let with = text(parse_quote!(
            #[virtual_actor(handles(A), lifecycle)]
            struct X;
        ));
        assert!(!with.contains("Lifecycle"), "{with}");
    }

    #[test]
    fn a_state_is_kept_only_if_the_user_says_so() {
        let text = |input: DeriveInput| spelled(&expand(&input).unwrap());
        let without = text(parse_quote!(
            #[virtual_actor(handles(A))]
            struct X;
        ));
        assert!(!without.contains("PERSISTENCE"), "{without}");
        let with = text(parse_quote!(
            #[virtual_actor(handles(A), persistent)]
            struct X;
        ));
        assert!(with.contains("Persistence::of_actor ()"), "{with}");
    }

    #[test]
    fn a_state_goes_along_only_if_the_user_says_so() {
        let text = |input: DeriveInput| spelled(&expand(&input).unwrap());
        let without = text(parse_quote!(
            #[virtual_actor(handles(A), persistent)]
            struct X;
        ));
        assert!(!without.contains("MIGRATION"), "{without}");
        let with = text(parse_quote!(
            #[virtual_actor(handles(A), migrate)]
            struct X;
        ));
        assert!(with.contains("Migration::of_actor ()"), "{with}");
    }

    #[test]
    fn every_message_goes_into_the_table() {
        let input = parse_quote!(
            #[virtual_actor(handles(A, b::C))]
            struct X;
        );
        let text = spelled(&expand(&input).unwrap());
        for message in ["A", "b::C"] {
            assert!(
                text.contains(&format!("MessageTable::add::< {message} > (table)")),
                "{message} in {text}"
            );
        }
    }

    #[test]
    fn an_actor_without_handles_is_asked_for_its_messages() {
        let error = refused(&parse_quote!(
            struct Account;
        ));
        assert!(error.starts_with("which messages does `Account` take through refs?"), "{error}");
        assert!(error.contains("#[virtual_actor(handles(First, Second))]"), "{error}");
        assert!(
            expand(&parse_quote!(
                #[virtual_actor(handles())]
                struct Account;
            ))
            .is_ok()
        );
    }

    #[test]
    fn unknown_and_repeated_options_are_refused() {
        let error = refused(&parse_quote!(
            #[virtual_actor(handle(A))]
            struct X;
        ));
        assert!(
            error.starts_with("unknown option `handle`: `#[virtual_actor(..)]` takes `handles(..)`"),
            "{error}"
        );
        let error = refused(&parse_quote!(
            #[virtual_actor(handles(A))]
            #[virtual_actor(handles(B))]
            struct X;
        ));
        assert_eq!(error, "`handles` is given twice");
    }
}
