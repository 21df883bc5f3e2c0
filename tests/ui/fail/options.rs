//! Options that do not exist, are repeated, or have values that cannot be.

use archipelago::prelude::*;

#[remote(i64, readonly)]
struct Deposit(i64);

#[remote(read_only, read_only)]
struct Twice;

#[remote(name = "")]
struct Nameless;

#[remote(name = "two", name = "names")]
struct TwoNames;

#[remote(codec = "xml")]
struct UnknownCodec;

#[derive(Message, RemoteMessage, serde::Serialize, serde::Deserialize)]
#[rtype(result = "()")]
#[remote_message(nome = "typo")]
struct Typo;

#[derive(VirtualActor)]
#[virtual_actor(handle(Deposit))]
struct UnknownOption;

#[derive(VirtualActor)]
struct NothingDeclared;

#[derive(VirtualActor)]
#[virtual_actor(handles(Deposit, Twice, Deposit))]
struct ListedTwice;

#[derive(VirtualActor)]
#[virtual_actor(handles(Deposit), kind = "bank/account")]
struct KindWithSlash;

#[derive(VirtualActor)]
#[virtual_actor(handles(Deposit), interleave = "sometimes")]
struct Sometimes;

#[derive(NamedActor)]
#[named_actor(handles(Deposit), kind = "Greeter")]
struct KindOfNamed;

fn main() {}
