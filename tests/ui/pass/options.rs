//! Every option of messages and virtual actors, and actors with type parameters.

use std::marker::PhantomData;

use archipelago::Interleave;
use archipelago::codec::{CodecId, PayloadCodec};
use archipelago::prelude::*;

use crate::support::builder;

#[remote(u8, name = "options.peek.v2", always_interleave)]
struct Peek;

#[remote(suppress_keep_alive)]
struct Probe;

#[remote(name = "options.local", codec = "json", local_only, read_only)]
struct Local;

#[derive(Default, VirtualActor)]
#[virtual_actor(handles(Peek, Probe), kind = "options.meter-1", lifecycle, interleave = "read_only")]
struct Meter(u8);

impl Actor for Meter {
    type Context = Context<Self>;
}

impl Lifecycle for Meter {
    async fn on_activate(&mut self, _: Activation) -> Result<(), BoxError> {
        self.0 = 7;
        Ok(())
    }
}

impl Handler<Peek> for Meter {
    type Result = u8;
    fn handle(&mut self, _: Peek, _: &mut Context<Self>) -> u8 {
        self.0
    }
}

impl Handler<Probe> for Meter {
    type Result = ();
    fn handle(&mut self, _: Probe, _: &mut Context<Self>) {}
}

trait Unit: Unpin + 'static {
    const SIZE: u8;
}

struct Gram;

impl Unit for Gram {
    const SIZE: u8 = 9;
}

#[derive(VirtualActor)]
#[virtual_actor(handles(Peek), interleave)]
struct Scale<U: Unit>(PhantomData<U>);

impl<U: Unit> Actor for Scale<U> {
    type Context = Context<Self>;
}

impl<U: Unit> Handler<Peek> for Scale<U> {
    type Result = u8;
    fn handle(&mut self, _: Peek, _: &mut Context<Self>) -> u8 {
        U::SIZE
    }
}

#[derive(VirtualActor)]
#[virtual_actor(handles())]
struct Silent;

impl Actor for Silent {
    type Context = Context<Self>;
}

mod elsewhere {
    pub(super) mod islands {
        pub(in super::super) use archipelago::*;
    }
}

#[remote(crate = "elsewhere::islands")]
struct Renamed;

/// Proves: R75, R76, R77, R78, R79, C46
#[test]
fn message_options_become_name_and_flags() {
    assert_eq!((Peek::NAME, Peek::FLAGS), ("options.peek.v2", MessageFlags::ALWAYS_INTERLEAVE));
    assert!(Peek::FLAGS.contains(MessageFlags::READ_ONLY));
    assert_eq!(Probe::FLAGS, MessageFlags::SUPPRESS_KEEP_ALIVE);
    assert_eq!(Local::FLAGS, MessageFlags::IS_LOCAL_ONLY | MessageFlags::READ_ONLY);
    fn codec_of<M: RemoteMessage>() -> CodecId {
        M::Codec::ID
    }
    assert_eq!((codec_of::<Peek>(), codec_of::<Local>()), (CodecId::POSTCARD, CodecId::JSON));
    assert_eq!(Renamed::NAME, "archipelago.Renamed");
}

#[test]
fn actor_options_become_kind_and_rule() {
    assert_eq!((Meter::KIND, Meter::INTERLEAVE), ("options.meter-1", Interleave::ReadOnly));
    assert_eq!((Scale::<Gram>::KIND, Scale::<Gram>::INTERLEAVE), ("Scale", Interleave::Always));
    assert_eq!(Silent::KIND, "Silent");
    const { assert!(Meter::HOOKS && !Silent::HOOKS) };
}

#[actix::test]
async fn generic_actors_and_own_lifecycles_take_calls() {
    let node =
        builder().actor::<Meter>().actor_with(|_, _| Scale::<Gram>(PhantomData)).start().await.unwrap();
    assert_eq!(node.actor::<Meter>("a").send(Peek).await.unwrap(), 7);
    assert_eq!(node.actor::<Scale<Gram>>("a").send(Peek).await.unwrap(), 9);
    node.stop().await.unwrap();
}
