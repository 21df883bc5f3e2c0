//! `handles(A, B, ..)`: the one place where pairs of actor and message are declared.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::meta::ParseNestedMeta;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{DeriveInput, Error, Result, Token, Type, parenthesized};

use crate::options::{Root, placed, spelled};

/// The messages that an actor declares.
pub(crate) struct Handles {
    /// Where the word `handles` stands.
    span: Span,
    messages: Vec<Type>,
}

impl Handles {
    /// Reads `(A, B, ..)` after the word `handles`.
    pub(crate) fn read(meta: &ParseNestedMeta<'_>) -> Result<Self> {
        let list;
        parenthesized!(list in meta.input);
        let messages: Vec<Type> =
            Punctuated::<Type, Token![,]>::parse_terminated(&list)?.into_iter().collect();
        let names: Vec<String> = messages.iter().map(spelled).collect();
        for (at, name) in names.iter().enumerate() {
            if names[..at].contains(name) {
                return Err(Error::new_spanned(
                    &messages[at],
                    format!("`{name}` is listed twice in `handles(..)`"),
                ));
            }
        }
        Ok(Self { span: meta.path.span(), messages })
    }

    /// The error for an actor without the word.
    pub(crate) fn missing(input: &DeriveInput, attribute: &str) -> Error {
        let message = format!(
            "which messages does `{0}` take through refs? write `#[{attribute}(handles(First, Second))]`, or \
             `handles()` if it takes none",
            input.ident
        );
        Error::new_spanned(&input.ident, message)
    }

    /// The messages in the order they were given.
    pub(crate) fn messages(&self) -> &[Type] {
        &self.messages
    }

    /// For each message the marker impl that lets it be sent, and one check that their wire ids differ.
    pub(crate) fn declarations(&self, input: &DeriveInput, root: &Root) -> TokenStream {
        let accepted = self
            .messages
            .iter()
            .enumerate()
            .map(|(place, message)| accepted_by((place, message), input, root));
        let distinct = self.distinct(root);
        quote!(#(#accepted)* #distinct)
    }

    fn distinct(&self, root: &Root) -> TokenStream {
        if self.messages.len() < 2 {
            return TokenStream::new();
        }
        let (runtime, protocol) = (root.runtime(), placed(root.protocol(), self.span));
        let messages = &self.messages;
        quote_spanned! {self.span=>
            const _: () = #protocol::message::assert_distinct(
                &[#(<#messages as #runtime::RemoteMessage>::WIRE_ID),*]
            );
        }
    }
}

fn accepted_by((place, message): (usize, &Type), input: &DeriveInput, root: &Root) -> TokenStream {
    let (runtime, via) = (root.runtime(), placed(root.runtime(), message.span()));
    let actor = &input.ident;
    let (impl_generics, type_generics, where_clause) = input.generics.split_for_impl();
    // A missing handler is found here: the compiler points at the message.
    quote_spanned! {message.span()=>
        #[automatically_derived]
        impl #impl_generics #runtime::AcceptedBy<#actor #type_generics> for #message #where_clause {
            type Via = #via::ViaHandler;
            const PLACE: usize = #place;
        }
    }
}

#[cfg(test)]
mod tests {
    use syn::{Attribute, parse_quote};

    use super::*;

    fn read(attr: Attribute) -> Result<Handles> {
        let mut handles = None;
        attr.parse_nested_meta(|meta| {
            handles = Some(Handles::read(&meta)?);
            Ok(())
        })?;
        Ok(handles.expect("the attribute has the option"))
    }

    fn declared(attr: Attribute, actor: &DeriveInput) -> String {
        spelled(&read(attr).unwrap().declarations(actor, &Root::default()))
    }

    #[test]
    fn messages_may_be_paths_and_end_in_a_comma() {
        let handles = read(parse_quote!(#[a(handles(Deposit, bank::Withdraw, ::other::Close,))])).unwrap();
        let names: Vec<String> = handles.messages().iter().map(spelled).collect();
        assert_eq!(names, ["Deposit", "bank::Withdraw", "::other::Close"]);
    }

    #[test]
    fn an_empty_list_declares_nothing() {
        assert_eq!(
            declared(
                parse_quote!(#[a(handles())]),
                &parse_quote!(
                    struct Account;
                )
            ),
            ""
        );
    }

    #[test]
    fn a_list_without_parentheses_is_refused() {
        assert!(read(parse_quote!(#[a(handles)])).is_err());
        assert!(read(parse_quote!(#[a(handles = "Deposit")])).is_err());
    }

    #[test]
    fn a_message_listed_twice_is_refused() {
        let error =
            read(parse_quote!(#[a(handles(Deposit, b::Close, b::Close))])).err().map(|e| e.to_string());
        assert_eq!(error.as_deref(), Some("`b::Close` is listed twice in `handles(..)`"));
    }

    #[test]
    fn several_messages_are_checked_for_equal_wire_ids() {
        let actor = parse_quote!(
            struct Account;
        );
        let text = declared(parse_quote!(#[a(handles(Deposit, Close))]), &actor);
        assert!(text.contains("AcceptedBy < Account > for Deposit"), "{text}");
        assert!(text.contains("AcceptedBy < Account > for Close"), "{text}");
        assert!(text.contains("assert_distinct (& [< Deposit as"), "{text}");
        assert!(!declared(parse_quote!(#[a(handles(Deposit))]), &actor).contains("assert_distinct"));
    }

    #[test]
    fn a_generic_actor_keeps_its_bounds() {
        let actor = parse_quote!(
            struct Account<S: Store = Disk>
            where
                S: Unpin,
            {
                store: S,
            }
        );
        let text = declared(parse_quote!(#[a(handles(Deposit))]), &actor);
        let expected = "impl < S : Store >::archipelago::__private::runtime::AcceptedBy < Account < S > > for Deposit where S : Unpin";
        assert!(text.contains(expected), "{text}");
    }
}
