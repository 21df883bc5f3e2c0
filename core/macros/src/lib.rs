//! The attribute and derive macros of archipelago.
//!
//! Use them through the `archipelago` crate, whose prelude holds all of them; the code they make refers to it as
//! `::archipelago`. A crate that re-exports archipelago under another path names that path with the option
//! `crate = ".."`, which every macro takes.
//!
//! Each macro is a plain function from tokens to tokens or an error. What can be checked by looking at the tokens is
//! refused here, at the token that is wrong; what needs types (a missing handler, a reply that cannot be encoded, two
//! messages with one wire id) is left to the compiler, by code that makes it point at the message in question.
//!
//! The examples here are text because this crate cannot depend on `archipelago`; the compiler checks the same
//! programs in `tests/ui/pass` of that crate.

mod handles;
mod message;
mod named_actor;
mod options;
mod remote;
mod virtual_actor;

use proc_macro::TokenStream;
use syn::{DeriveInput, Error, Result, parse_macro_input};

/// Makes a struct or an enum a message that can travel; its argument is the type of the reply.
///
/// ```text
/// use archipelago::prelude::*;
///
/// #[remote(i64)]
/// struct Deposit(i64);
///
/// #[remote]                                             // the reply is `()`
/// struct Close;
///
/// #[remote(Result<Statement, BankError>, name = "bank.statement.v2", read_only)]
/// struct ReadStatement { from: u64, to: u64 }
/// ```
///
/// It implements actix' `Message`, archipelago's `RemoteMessage`, and derives serde's `Serialize` and `Deserialize`
/// if no `#[derive(..)]` below it does so already. (A derive *above* it cannot be seen: put `#[remote]` first.) For
/// hand-written serde impls use `#[derive(RemoteMessage)]`. The reply must be `Serialize`, `DeserializeOwned` and
/// `Send`.
///
/// # Options
///
/// - `name = ".."`: the name on the wire, 1 to 200 bytes. By default it is the name of the crate, a dot and the name of
///   the type, so moving the type to another module changes nothing. A changed layout needs a new name.
/// - `codec = ..`: how it and its reply are encoded when they leave their node: `"postcard"`, the default, `"json"`,
///   or the type of a codec of your own, without quotes: `codec = MyCodec`.
/// - `read_only`: the handler does not change the actor.
/// - `always_interleave`: it may run beside other such messages; implies `read_only`. It takes effect in actors with
///   `interleave = "read_only"`.
/// - `local_only`: it never leaves its node.
/// - `suppress_keep_alive`: it does not keep an idle actor alive.
///
/// A generic type is refused: its instances would share one name.
#[proc_macro_attribute]
pub fn remote(args: TokenStream, item: TokenStream) -> TokenStream {
    remote::expand(args.into(), item.into()).into()
}

/// Implements `RemoteMessage` for a type that has `Message`, `Serialize` and `Deserialize` already.
///
/// ```text
/// use archipelago::prelude::*;
///
/// #[derive(Message, RemoteMessage, Serialize, Deserialize)]
/// #[rtype(result = "i64")]
/// #[remote_message(name = "bank.deposit.v2")]
/// struct Deposit(i64);
/// ```
///
/// `#[remote_message(..)]` may be left out; it takes the options of [`macro@remote`]. Generic types are refused.
#[proc_macro_derive(RemoteMessage, attributes(remote_message))]
pub fn derive_remote_message(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    finish(message::expand(&input))
}

/// Makes an actix actor virtual: the library activates it by its id when a message comes.
///
/// ```text
/// use archipelago::prelude::*;
///
/// #[derive(Default, VirtualActor)]
/// #[virtual_actor(handles(Deposit, Close))]
/// struct Account { balance: i64 }
///
/// impl Actor for Account { type Context = Context<Self>; }
/// // `impl Handler<Deposit> for Account`, `impl Handler<Close> for Account`: plain actix
/// ```
///
/// # Options
///
/// - `handles(A, B, ..)`: the messages that it takes through refs; the actor needs a `Handler` for each. It must be
///   there; `handles()` declares an actor that takes none. Two messages with the same name on the wire are a compile
///   error.
/// - `kind = ".."`: the kind in the ids of these actors, 1 to 64 of `[A-Za-z0-9._-]`; by default the name of the type.
/// - `lifecycle`: the actor implements `Lifecycle` itself, to act when it is activated or deactivated.
/// - `persistent`: the actor implements `Persistent`: its state is loaded when it is activated and saved when it goes.
/// - `migrate`: the actor implements `Migrate`: its state in memory goes along when its shard moves to another node.
/// - `interleave`: every message starts as soon as it arrives, as with plain actix. `interleave = "read_only"`:
///   messages marked `always_interleave` may overlap with each other. By default one message runs at a time.
///
/// An instance that you start yourself can also be registered under a path, as with [`macro@NamedActor`].
///
/// A generic actor repeats on its type the bounds of its `impl Actor`; its instances have the same kind, so a node can
/// host only one of them.
#[proc_macro_derive(VirtualActor, attributes(virtual_actor))]
pub fn derive_virtual_actor(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    finish(virtual_actor::expand(&input))
}

/// Lets any actix actor, whatever its context, take messages under a path, from its own node and from others.
///
/// ```text
/// use archipelago::prelude::*;
///
/// #[derive(NamedActor)]
/// #[named_actor(handles(Greet))]
/// struct Greeter;
/// ```
///
/// `handles(A, B, ..)` lists the messages that it takes through refs; the actor needs a `Handler` for each. It must be
/// there; `handles()` declares an actor that takes none. Two messages with the same name on the wire are a compile
/// error.
#[proc_macro_derive(NamedActor, attributes(named_actor))]
pub fn derive_named_actor(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    finish(named_actor::expand(&input))
}

fn finish(expanded: Result<proc_macro2::TokenStream>) -> TokenStream {
    expanded.unwrap_or_else(Error::into_compile_error).into()
}
