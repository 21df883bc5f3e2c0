//! The options that several macros share, and how they are read.
//!
//! Each macro matches the option names it knows; this module refuses an option that is given twice, words the error
//! for an unknown one, and knows the paths that generated code may use.

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::meta::ParseNestedMeta;
use syn::parse::Parser;
use syn::{Attribute, Error, Ident, LitStr, Path, Result};

/// The options of one use of a macro that were read so far.
pub(crate) struct Seen {
    /// The macro, as the user writes it.
    macro_name: &'static str,
    /// The options that it takes, as the user writes them.
    known: &'static [&'static str],
    names: Vec<String>,
}

impl Seen {
    pub(crate) const fn new(macro_name: &'static str, known: &'static [&'static str]) -> Self {
        Self { macro_name, known, names: Vec::new() }
    }

    /// The name of the option at hand; an error if it stood there before.
    pub(crate) fn next(&mut self, meta: &ParseNestedMeta<'_>) -> Result<String> {
        let name = spelled(&meta.path);
        if self.names.contains(&name) {
            return Err(meta.error(format!("`{name}` is given twice")));
        }
        self.names.push(name.clone());
        Ok(name)
    }

    /// The error for an option that the macro does not know.
    pub(crate) fn unknown(&self, meta: &ParseNestedMeta<'_>) -> Error {
        let known: Vec<_> = self.known.iter().map(|option| format!("`{option}`")).collect();
        let name = spelled(&meta.path);
        let message = format!("unknown option `{name}`: `{}` takes {}", self.macro_name, known.join(", "));
        Error::new_spanned(&meta.path, message)
    }
}

/// Reads every attribute called `name` in `attrs` as a list of options.
pub(crate) fn read_attributes(
    attrs: &[Attribute],
    name: &str,
    mut option: impl FnMut(&ParseNestedMeta<'_>) -> Result<()>,
) -> Result<()> {
    attrs
        .iter()
        .filter(|attr| attr.path().is_ident(name))
        .try_for_each(|attr| attr.parse_nested_meta(|meta| option(&meta)))
}

/// Reads `tokens` as a list of options.
pub(crate) fn read_list(
    tokens: TokenStream,
    mut option: impl FnMut(&ParseNestedMeta<'_>) -> Result<()>,
) -> Result<()> {
    syn::meta::parser(|meta| option(&meta)).parse2(tokens)
}

/// The text after the `=` of an option.
pub(crate) fn text(meta: &ParseNestedMeta<'_>) -> Result<LitStr> {
    meta.value()?.parse()
}

/// Tokens as a user would write them, for error messages and comparisons.
pub(crate) fn spelled<T: ToTokens>(tokens: &T) -> String {
    tokens.to_token_stream().to_string().replace(" :: ", "::").replace(":: ", "::")
}

/// `tokens`, reported at `place` if the compiler objects to them; what their names mean stays the same.
pub(crate) fn placed(tokens: impl ToTokens, place: Span) -> TokenStream {
    let at_place = |mut token: TokenTree| {
        token.set_span(token.span().located_at(place));
        token
    };
    tokens.into_token_stream().into_iter().map(at_place).collect()
}

/// Where generated code finds archipelago: `::archipelago`, or what `crate = ".."` says.
pub(crate) struct Root {
    path: Path,
}

impl Root {
    /// Reads the value of `crate = ".."`.
    pub(crate) fn read(meta: &ParseNestedMeta<'_>) -> Result<Self> {
        let path = text(meta)?.parse_with(Path::parse_mod_style)?;
        Ok(Self { path })
    }

    pub(crate) fn actix(&self) -> TokenStream {
        self.private("actix")
    }

    pub(crate) fn serde(&self) -> TokenStream {
        self.private("serde")
    }

    pub(crate) fn runtime(&self) -> TokenStream {
        self.private("runtime")
    }

    pub(crate) fn protocol(&self) -> TokenStream {
        self.private("protocol")
    }

    fn private(&self, name: &str) -> TokenStream {
        let path = &self.path;
        let name = Ident::new(name, Span::call_site());
        quote!(#path::__private::#name)
    }
}

impl Default for Root {
    fn default() -> Self {
        Self { path: syn::parse_quote!(::archipelago) }
    }
}

#[cfg(test)]
mod tests {
    use syn::parse_quote;

    use super::*;

    #[test]
    fn a_path_is_spelled_without_spaces() {
        assert_eq!(spelled::<Path>(&parse_quote!(::a::b::C)), "::a::b::C");
        assert_eq!(spelled::<Path>(&parse_quote!(c)), "c");
    }

    #[test]
    fn generated_paths_are_absolute_unless_told_otherwise() {
        assert_eq!(spelled(&Root::default().actix()), "::archipelago::__private::actix");
        let mut root = Root::default();
        let attr: Attribute = parse_quote!(#[x(crate = "crate::reexported")]);
        read_attributes(&[attr], "x", |meta| {
            root = Root::read(meta)?;
            Ok(())
        })
        .unwrap();
        assert_eq!(spelled(&root.serde()), "crate::reexported::__private::serde");
    }
}
