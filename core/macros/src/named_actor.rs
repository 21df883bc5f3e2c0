//! `#[derive(NamedActor)]`.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{DeriveInput, Ident, Result};

use crate::handles::Handles;
use crate::options::{Root, Seen, placed, read_attributes};

/// Expands the derive.
pub(crate) fn expand(input: &DeriveInput) -> Result<TokenStream> {
    let (root, handles) = read(input)?;
    let declarations = handles.declarations(input, &root);
    let named = named_actor_impl(input, &handles, &root);
    Ok(quote!(#named #declarations))
}

/// Lets the actor be registered under a path: its table of messages, and the handler of what comes through its door.
pub(crate) fn named_actor_impl(input: &DeriveInput, handles: &Handles, root: &Root) -> TokenStream {
    let (runtime, actix) = (root.runtime(), root.actix());
    let actor = &input.ident;
    let (impl_generics, type_generics, where_clause) = input.generics.split_for_impl();
    let [table, addr, job, ctx] =
        ["table", "addr", "job", "ctx"].map(|name| Ident::new(name, Span::mixed_site()));
    let adds = handles.messages().iter().map(|message| {
        let place = message.span();
        let (runtime, table) = (placed(&runtime, place), placed(&table, place));
        quote_spanned!(place=> #runtime::NamedTable::add::<#message>(#table);)
    });
    quote! {
        #[automatically_derived]
        impl #impl_generics #runtime::NamedActor for #actor #type_generics #where_clause {
            #[allow(unused_variables)]
            fn messages(#table: &mut #runtime::NamedTable<Self>) {
                #(#adds)*
            }

            fn deliver(#addr: &#actix::Addr<Self>, #job: #runtime::NamedJob<Self>) {
                #addr.do_send(#job);
            }
        }

        #[automatically_derived]
        impl #impl_generics #actix::Handler<#runtime::NamedJob<Self>> for #actor #type_generics #where_clause {
            type Result = ();

            fn handle(
                &mut self,
                #job: #runtime::NamedJob<Self>,
                #ctx: &mut <Self as #actix::Actor>::Context,
            ) {
                #job.run(self, #ctx);
            }
        }
    }
}

fn read(input: &DeriveInput) -> Result<(Root, Handles)> {
    let mut seen = Seen::new("#[named_actor(..)]", &["handles(..)", "crate = \"..\""]);
    let mut root = Root::default();
    let mut handles = None;
    read_attributes(&input.attrs, "named_actor", |meta| {
        match seen.next(meta)?.as_str() {
            "handles" => handles = Some(Handles::read(meta)?),
            "crate" => root = Root::read(meta)?,
            _ => return Err(seen.unknown(meta)),
        }
        Ok(())
    })?;
    let handles = handles.ok_or_else(|| Handles::missing(input, "named_actor"))?;
    Ok((root, handles))
}

#[cfg(test)]
mod tests {
    use syn::parse_quote;

    use super::*;
    use crate::options::spelled;

    #[test]
    fn every_message_is_accepted() {
        let input = parse_quote!(
            #[named_actor(handles(Greet, b::Close))]
            struct Greeter;
        );
        let text = spelled(&expand(&input).unwrap());
        assert!(text.contains("NamedActor for Greeter {"), "{text}");
        assert!(text.contains("NamedJob < Self >> for Greeter"), "{text}");
        for message in ["Greet", "b::Close"] {
            assert!(text.contains(&format!("AcceptedBy < Greeter > for {message} ")), "{message} in {text}");
            assert!(text.contains(&format!("NamedTable::add::< {message} > (table)")), "{message} in {text}");
        }
        assert!(text.contains("assert_distinct"), "{text}");
    }

    #[test]
    fn options_of_virtual_actors_are_refused() {
        let input = parse_quote!(
            #[named_actor(handles(Greet), kind = "Greeter")]
            struct Greeter;
        );
        let error = expand(&input).unwrap_err().to_string();
        assert_eq!(
            error,
            "unknown option `kind`: `#[named_actor(..)]` takes `handles(..)`, `crate = \"..\"`"
        );
    }

    #[test]
    fn an_actor_without_handles_is_asked_for_its_messages() {
        let error = expand(&parse_quote!(
            struct Greeter;
        ))
        .unwrap_err()
        .to_string();
        assert!(error.contains("#[named_actor(handles(First, Second))]"), "{error}");
    }
}
