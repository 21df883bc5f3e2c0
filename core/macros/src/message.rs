//! What `#[remote]` and `#[derive(RemoteMessage)]` have in common: the options of a message and its impl.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::ext::IdentExt;
use syn::meta::ParseNestedMeta;
use syn::spanned::Spanned;
use syn::{DeriveInput, Error, Ident, LitStr, Path, Result, Type};

use crate::options::{Root, Seen, placed, read_attributes, text};

/// What a user may say about a message.
#[derive(Default)]
pub(crate) struct MessageOptions {
    /// Where generated code finds archipelago.
    pub(crate) root: Root,
    name: Option<LitStr>,
    codec: CodecOption,
    /// Names of constants of `MessageFlags`.
    flags: Vec<Ident>,
}

/// How a message is encoded.
#[derive(Default)]
enum CodecOption {
    #[default]
    Postcard,
    Json,
    /// The user's own.
    Own(Path),
}

impl MessageOptions {
    /// The options of a message, as the user writes them.
    pub(crate) const KNOWN: &'static [&'static str] = &[
        "name = \"..\"",
        "codec = ..",
        "read_only",
        "always_interleave",
        "local_only",
        "suppress_keep_alive",
        "crate = \"..\"",
    ];

    /// Takes one option.
    pub(crate) fn read(&mut self, seen: &mut Seen, meta: &ParseNestedMeta<'_>) -> Result<()> {
        let option = seen.next(meta)?;
        match option.as_str() {
            "name" => self.name = Some(checked_name(text(meta)?)?),
            "codec" => self.codec = CodecOption::read(meta)?,
            "crate" => self.root = Root::read(meta)?,
            flag => {
                let constant = flag_constant(flag).ok_or_else(|| seen.unknown(meta))?;
                self.flags.push(Ident::new(constant, meta.path.span()));
            }
        }
        Ok(())
    }

    /// True if `word` alone is an option: a flag.
    pub(crate) fn is_flag(word: &str) -> bool {
        flag_constant(word).is_some()
    }

    /// The impl of `RemoteMessage` for the type called `ident`.
    ///
    /// The bounds on a known `reply` follow from the trait; written out they make the compiler point at the reply
    /// when it cannot be encoded.
    pub(crate) fn remote_message_impl(&self, ident: &Ident, reply: Option<&Type>) -> TokenStream {
        let (runtime, protocol) = (self.root.runtime(), self.root.protocol());
        let name = self.name_expression(ident);
        let (codec, flags) = (self.codec.type_path(&protocol), &self.flags);
        let codec_check = self.codec.check(ident, &runtime, &protocol);
        let bounds = reply.map(|reply| {
            let serde = placed(self.root.serde(), reply.span());
            quote_spanned! {reply.span()=>
                where #reply: #serde::Serialize + #serde::de::DeserializeOwned + ::core::marker::Send
            }
        });
        quote! {
            #[automatically_derived]
            #[allow(trivial_bounds)]
            impl #runtime::RemoteMessage for #ident #bounds {
                const NAME: &'static str = #protocol::message::MessageName::new(#name).as_str();
                type Codec = #codec;
                const FLAGS: #protocol::message::MessageFlags =
                    #protocol::message::MessageFlags::empty()
                        #(.with(#protocol::message::MessageFlags::#flags))*;
            }

            #codec_check
        }
    }

    /// The given name, or the crate's name and the type's, which moving the type to another module does not change.
    fn name_expression(&self, ident: &Ident) -> TokenStream {
        match &self.name {
            Some(name) => quote!(#name),
            None => {
                let type_name = ident.unraw().to_string();
                quote!(::core::concat!(::core::env!("CARGO_PKG_NAME"), ".", #type_name))
            }
        }
    }
}

impl CodecOption {
    /// Reads the value of `codec = ..`: the name of a built-in codec, or the type of another.
    fn read(meta: &ParseNestedMeta<'_>) -> Result<Self> {
        let value = meta.value()?;
        if !value.peek(LitStr) {
            return Ok(Self::Own(value.parse()?));
        }
        let name: LitStr = value.parse()?;
        match name.value().as_str() {
            "postcard" => Ok(Self::Postcard),
            "json" => Ok(Self::Json),
            other => {
                let message = format!(
                    "unknown codec `{other}`: a node knows \"postcard\", the default, and \"json\"; a codec of your \
                     own is named by its type, without quotes"
                );
                Err(Error::new_spanned(name, message))
            }
        }
    }

    fn type_path(&self, protocol: &TokenStream) -> TokenStream {
        match self {
            Self::Postcard => quote!(#protocol::message::Postcard),
            Self::Json => quote!(#protocol::message::Json),
            Self::Own(path) => quote!(#path),
        }
    }

    /// Makes the compiler refuse a codec whose id is not an application's.
    fn check(&self, ident: &Ident, runtime: &TokenStream, protocol: &TokenStream) -> Option<TokenStream> {
        let Self::Own(path) = self else { return None };
        let codec = quote!(<#ident as #runtime::RemoteMessage>::Codec);
        Some(quote_spanned! {path.span()=>
            const _: () = ::core::assert!(
                <#codec as #protocol::message::PayloadCodec>::ID.is_custom(),
                "the id of a codec of your own is `CodecId::FIRST_CUSTOM` or greater"
            );
        })
    }
}

/// Expands `#[derive(RemoteMessage)]`.
pub(crate) fn expand(input: &DeriveInput) -> Result<TokenStream> {
    refuse_generics(input, "derive(RemoteMessage)")?;
    let mut options = MessageOptions::default();
    let mut seen = Seen::new("#[remote_message(..)]", MessageOptions::KNOWN);
    read_attributes(&input.attrs, "remote_message", |meta| options.read(&mut seen, meta))?;
    Ok(options.remote_message_impl(&input.ident, None))
}

/// A message has one name, so it cannot stand for many types.
pub(crate) fn refuse_generics(input: &DeriveInput, macro_name: &str) -> Result<()> {
    if input.generics.params.is_empty() {
        return Ok(());
    }
    let ident = &input.ident;
    let message = format!(
        "`#[{macro_name}]` does not take generic types: all instances of `{ident}` would have the same name on the \
         wire; declare one message per type that you send"
    );
    Err(Error::new_spanned(&input.generics, message))
}

/// The constant of `MessageFlags` for an option.
fn flag_constant(option: &str) -> Option<&'static str> {
    match option {
        "read_only" => Some("READ_ONLY"),
        "always_interleave" => Some("ALWAYS_INTERLEAVE"),
        "local_only" => Some("IS_LOCAL_ONLY"),
        "suppress_keep_alive" => Some("SUPPRESS_KEEP_ALIVE"),
        _ => None,
    }
}

/// The rules of `TypeHint`, checked where the user sees the place.
fn checked_name(name: LitStr) -> Result<LitStr> {
    let value = name.value();
    let problem = match value.len() {
        0 => "the name of a message must not be empty".to_owned(),
        len if len > MAX_NAME => {
            format!("the name of a message has at most {MAX_NAME} bytes, this one has {len}")
        }
        _ if value.contains(char::is_control) => "the name of a message has no control characters".to_owned(),
        _ => return Ok(name),
    };
    Err(Error::new_spanned(name, problem))
}

/// `TypeHint::MAX_LEN` of the protocol.
const MAX_NAME: usize = 200;

#[cfg(test)]
mod tests {
    use syn::parse_quote;

    use super::*;
    use crate::options::spelled;

    fn expanded(input: &DeriveInput) -> String {
        spelled(&expand(input).unwrap())
    }

    fn refused(input: &DeriveInput) -> String {
        expand(input).unwrap_err().to_string()
    }

    #[test]
    fn the_default_name_is_crate_and_type() {
        let text = expanded(&parse_quote!(
            struct Deposit(i64);
        ));
        assert!(text.contains(r#"::core::env ! ("CARGO_PKG_NAME") , "." , "Deposit")"#), "{text}");
        let text = expanded(&parse_quote!(
            struct r#type;
        ));
        assert!(text.contains(r#""." , "type")"#), "{text}");
    }

    #[test]
    fn a_given_name_replaces_the_default() {
        let text = expanded(&parse_quote!(
            #[remote_message(name = "bank.v2")]
            struct Deposit(i64);
        ));
        assert!(text.contains(r#"MessageName::new ("bank.v2")"#), "{text}");
        assert!(!text.contains("CARGO_PKG_NAME"), "{text}");
    }

    #[test]
    fn a_message_names_its_codec_and_postcard_is_the_default() {
        let text = expanded(&parse_quote!(
            struct Deposit(i64);
        ));
        assert!(text.contains("message::Postcard ;"), "{text}");
        let text = expanded(&parse_quote!(
            #[remote_message(codec = "json")]
            struct Deposit(i64);
        ));
        assert!(text.contains("message::Json ;"), "{text}");
        let text = expanded(&parse_quote!(
            #[remote_message(codec = bank::Sealed)]
            struct Deposit(i64);
        ));
        assert!(text.contains("bank::Sealed ;"), "{text}");
        assert!(text.contains("is_custom ()"), "{text}");
    }

    #[test]
    fn an_unknown_codec_is_refused_with_the_known_ones() {
        let error = refused(&parse_quote!(
            #[remote_message(codec = "yaml")]
            struct Deposit(i64);
        ));
        assert!(error.starts_with("unknown codec `yaml`: a node knows \"postcard\""), "{error}");
    }

    #[test]
    fn every_flag_option_sets_its_flag() {
        let text = expanded(&parse_quote! {
            #[remote_message(read_only, always_interleave)]
            #[remote_message(local_only, suppress_keep_alive)]
            struct Deposit(i64);
        });
        for flag in ["READ_ONLY", "ALWAYS_INTERLEAVE", "IS_LOCAL_ONLY", "SUPPRESS_KEEP_ALIVE"] {
            assert!(text.contains(&format!("MessageFlags::{flag})")), "{flag} in {text}");
        }
    }

    #[test]
    fn an_unknown_option_is_refused_with_the_known_ones() {
        let error = refused(&parse_quote!(
            #[remote_message(readonly)]
            struct Deposit(i64);
        ));
        assert!(
            error.starts_with("unknown option `readonly`: `#[remote_message(..)]` takes `name"),
            "{error}"
        );
        assert!(error.contains("`read_only`"), "{error}");
    }

    #[test]
    fn an_option_given_twice_is_refused() {
        let error = refused(&parse_quote!(
            #[remote_message(read_only, read_only)]
            struct Deposit(i64);
        ));
        assert_eq!(error, "`read_only` is given twice");
    }

    #[test]
    fn names_unfit_for_the_wire_are_refused() {
        let name = |name: &str| LitStr::new(name, proc_macro2::Span::call_site());
        assert!(checked_name(name(&"x".repeat(200))).is_ok());
        for unfit in ["", "a\nb", &"x".repeat(201)] {
            assert!(checked_name(name(unfit)).is_err(), "{unfit:?}");
        }
    }

    #[test]
    fn a_generic_message_is_refused() {
        for input in [
            parse_quote!(
                struct Put<T>(T);
            ),
            parse_quote!(
                struct Put<'a>(&'a str);
            ),
        ] {
            assert!(refused(&input).contains("does not take generic types"));
        }
    }
}
