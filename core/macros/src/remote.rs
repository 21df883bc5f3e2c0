//! `#[remote(Reply, options..)]`: everything a message needs, in one attribute.

use proc_macro2::TokenStream;
use quote::quote;
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::{Attribute, Data, DeriveInput, Error, Ident, Path, Result, Token, Type, parse_quote};

use crate::message::{MessageOptions, refuse_generics};
use crate::options::{Seen, read_list, spelled};

/// What stands in the parentheses of `#[remote(..)]`.
struct RemoteArgs {
    reply: Type,
    options: MessageOptions,
}

/// Expands `#[remote(args)]` on `item`. With an error the item stays as it was, so that only the error is reported.
pub(crate) fn expand(args: TokenStream, item: TokenStream) -> TokenStream {
    try_expand(args, item.clone()).unwrap_or_else(|error| {
        let error = error.into_compile_error();
        quote!(#item #error)
    })
}

fn try_expand(args: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let mut item = parse_item(item)?;
    refuse_generics(&item, "remote")?;
    let RemoteArgs { reply, options } = RemoteArgs::parse(args)?;
    add_serde(&mut item, &options)?;
    let actix = options.root.actix();
    let ident = &item.ident;
    let remote_message = options.remote_message_impl(ident, Some(&reply));
    Ok(quote! {
        #item

        #[automatically_derived]
        impl #actix::Message for #ident {
            type Result = #reply;
        }

        #remote_message
    })
}

impl RemoteArgs {
    fn parse(args: TokenStream) -> Result<Self> {
        let (reply, rest) = split_reply.parse2(args)?;
        let mut options = MessageOptions::default();
        let mut seen = Seen::new("#[remote(..)]", MessageOptions::KNOWN);
        read_list(rest, |meta| options.read(&mut seen, meta))?;
        Ok(Self { reply, options })
    }
}

/// Takes the reply type from the front; without one the reply is `()`.
fn split_reply(input: ParseStream<'_>) -> Result<(Type, TokenStream)> {
    let reply = if input.is_empty() || starts_with_option(input) {
        parse_quote!(())
    } else {
        let reply = input.parse()?;
        if !input.is_empty() {
            input.parse::<Token![,]>()?;
        }
        reply
    };
    Ok((reply, input.parse()?))
}

/// Tells `read_only` and `name = ..` from a reply type.
fn starts_with_option(input: ParseStream<'_>) -> bool {
    let ahead = input.fork();
    let Ok(word) = ahead.call(Ident::parse_any) else { return false };
    let alone = ahead.is_empty() || ahead.peek(Token![,]);
    ahead.peek(Token![=]) || (alone && MessageOptions::is_flag(&word.to_string()))
}

fn parse_item(item: TokenStream) -> Result<DeriveInput> {
    let refusal = "`#[remote]` goes on a struct or an enum";
    let input: DeriveInput = syn::parse2(item).map_err(|error| Error::new(error.span(), refusal))?;
    match input.data {
        Data::Struct(_) | Data::Enum(_) => Ok(input),
        Data::Union(data) => Err(Error::new_spanned(data.union_token, refusal)),
    }
}

/// Puts in front of the item the serde derives that it does not have.
fn add_serde(item: &mut DeriveInput, options: &MessageOptions) -> Result<()> {
    let derived = derived_traits(&item.attrs)?;
    if let Some(twice) =
        derived.iter().find(|path| ends_in(path, "Message") || ends_in(path, "RemoteMessage"))
    {
        let message = format!(
            "`#[remote]` implements `Message` and `RemoteMessage` already: remove `{}`, or use the long form \
             `#[derive(Message, RemoteMessage, ..)]` without `#[remote]`",
            spelled(twice)
        );
        return Err(Error::new_spanned(twice, message));
    }
    let missing: Vec<Ident> = ["Serialize", "Deserialize"]
        .into_iter()
        .filter(|name| !derived.iter().any(|path| ends_in(path, name)))
        .map(|name| Ident::new(name, proc_macro2::Span::call_site()))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let serde = options.root.serde();
    let mut attrs: Vec<Attribute> = vec![parse_quote!(#[derive(#(#serde::#missing),*)])];
    if !names_serde_crate(&item.attrs) {
        let serde = spelled(&serde);
        attrs.push(parse_quote!(#[serde(crate = #serde)]));
    }
    item.attrs.splice(0..0, attrs);
    Ok(())
}

/// The traits in all `#[derive(..)]` below `#[remote]`; the compiler has taken away those above it.
fn derived_traits(attrs: &[Attribute]) -> Result<Vec<Path>> {
    let mut derived = Vec::new();
    for attr in attrs.iter().filter(|attr| attr.path().is_ident("derive")) {
        attr.parse_nested_meta(|meta| {
            derived.push(meta.path);
            Ok(())
        })?;
    }
    Ok(derived)
}

/// True if some `#[serde(..)]` says `crate = ".."`.
fn names_serde_crate(attrs: &[Attribute]) -> bool {
    let mut found = false;
    for attr in attrs.iter().filter(|attr| attr.path().is_ident("serde")) {
        // What serde refuses in its own attribute, serde reports; an error here only ends the search.
        let _ = attr.parse_nested_meta(|meta| {
            found |= meta.path.is_ident("crate");
            if meta.input.peek(Token![=]) {
                meta.value()?.parse::<syn::Expr>()?;
            } else if meta.input.peek(syn::token::Paren) {
                meta.input.parse::<proc_macro2::Group>()?;
            }
            Ok(())
        });
    }
    found
}

fn ends_in(path: &Path, name: &str) -> bool {
    path.segments.last().is_some_and(|last| last.ident == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(args: TokenStream, item: TokenStream) -> String {
        spelled(&try_expand(args, item).unwrap())
    }

    fn refused(args: TokenStream, item: TokenStream) -> String {
        try_expand(args, item).unwrap_err().to_string()
    }

    fn reply_of(args: TokenStream) -> String {
        spelled(&RemoteArgs::parse(args).unwrap().reply)
    }

    #[test]
    fn without_a_type_the_reply_is_unit() {
        assert_eq!(reply_of(quote!()), "()");
        assert_eq!(reply_of(quote!(read_only)), "()");
        assert_eq!(reply_of(quote!(name = "a.b", read_only)), "()");
    }

    #[test]
    fn any_type_can_be_the_reply() {
        assert_eq!(reply_of(quote!(i64)), "i64");
        assert_eq!(reply_of(quote!((u8, String), read_only)), "(u8 , String)");
        assert_eq!(
            reply_of(quote!(Result<crate::Sum, bank::Error>, name = "x")),
            "Result < crate::Sum , bank::Error >"
        );
        assert_eq!(reply_of(quote!(crate::Reply,)), "crate::Reply");
        assert_eq!(reply_of(quote!([u8; 32])), "[u8 ; 32]");
    }

    #[test]
    fn serde_is_derived_through_the_library() {
        let text = expanded(
            quote!(i64),
            quote!(
                pub struct Deposit(pub i64);
            ),
        );
        let derive = "# [derive (::archipelago::__private::serde::Serialize ,::archipelago::__private::serde::Deserialize)]";
        assert!(text.starts_with(derive), "{text}");
        assert!(text.contains(r#"# [serde (crate = "::archipelago::__private::serde")]"#), "{text}");
        assert!(text.contains("type Result = i64 ;"), "{text}");
        assert!(text.contains("RemoteMessage for Deposit"), "{text}");
    }

    #[test]
    fn serde_is_not_derived_twice() {
        let text = expanded(
            quote!(),
            quote!(
                #[derive(Clone, serde::Serialize, Deserialize)]
                struct Ping;
            ),
        );
        assert_eq!(text.matches("derive (").count(), 1, "{text}");
        assert!(!text.contains("serde (crate"), "{text}");
        let text = expanded(
            quote!(),
            quote!(
                #[derive(Serialize)]
                #[serde(crate = "s")]
                struct Ping;
            ),
        );
        assert!(text.contains("derive (::archipelago::__private::serde::Deserialize)"), "{text}");
        assert_eq!(text.matches("serde (crate").count(), 1, "{text}");
    }

    #[test]
    fn other_serde_attributes_do_not_hide_the_crate_option() {
        let attrs: [Attribute; 1] =
            [parse_quote!(#[serde(bound(serialize = ""), tag = "t", default, crate = "s")])];
        assert!(names_serde_crate(&attrs));
        let attrs: [Attribute; 1] = [parse_quote!(#[serde(rename = "crate")])];
        assert!(!names_serde_crate(&attrs));
    }

    #[test]
    fn the_short_form_does_not_mix_with_the_long_one() {
        for item in [
            quote!(
                #[derive(Message)]
                struct Ping;
            ),
            quote!(
                #[derive(a::RemoteMessage)]
                struct Ping;
            ),
        ] {
            assert!(refused(quote!(), item).starts_with("`#[remote]` implements"));
        }
    }

    #[test]
    fn only_structs_and_enums_are_messages() {
        assert!(
            try_expand(
                quote!(),
                quote!(
                    enum Step {
                        Left,
                        Right(u8),
                    }
                )
            )
            .is_ok()
        );
        for item in [
            quote!(
                fn ping() {}
            ),
            quote!(union Bits { a: u8, b: i8 }),
        ] {
            assert_eq!(refused(quote!(), item), "`#[remote]` goes on a struct or an enum");
        }
    }

    #[test]
    fn a_refused_item_is_kept_beside_the_error() {
        let text = spelled(&expand(
            quote!(i64, readonly),
            quote!(
                struct Deposit(i64);
            ),
        ));
        assert!(text.starts_with("struct Deposit (i64) ;"), "{text}");
        assert!(text.contains("compile_error"), "{text}");
    }

    #[test]
    fn a_second_type_is_an_unknown_option() {
        let error = refused(
            quote!(i64, String),
            quote!(
                struct Ping;
            ),
        );
        assert!(error.starts_with("unknown option `String`: `#[remote(..)]` takes"), "{error}");
    }
}
