//! Deliberate bugs, to see that the conformance suite finds them.
//!
//! Each [`Mutant`] breaks one rule at the one place that keeps it. Without the feature `mutants` none can be switched on.

/// A rule that can be broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mutant {
    /// A batch overtakes the one before it.
    SwapsBatches,
    /// A batch is lost now and then.
    LosesBatches,
    /// A batch comes out twice now and then.
    RepeatsBatches,
    /// A batch that was held up by a fault is lost, and the connection goes on.
    LosesWhatWasHeldUp,
    /// An attempt to connect that arrives twice gives two connections.
    AcceptsDuplicates,
    /// A new connection begins with what was left of the one before.
    CarriesOver,
    /// Strangers are let in.
    TrustsStrangers,
    /// A stranger is refused, but the other side is not told.
    RefusesSilently,
    /// Everybody seems to be the same.
    MixesIdentitiesUp,
    /// Somebody seems to be proven where nobody is.
    InventsIdentities,
    /// Two hosts whose connection was lost never find each other again.
    DialsOnce,
    /// Dropping a connection tells nobody, and goes on to keep it alive.
    DropIsSilent,
    /// A close arrives without its reason.
    ForgetsReason,
    /// A close overtakes what was sent before it.
    CloseOvertakes,
    /// Who closes goes on as if nothing had happened.
    CloserGoesOn,
    /// An endpoint that closes leaves its connections open.
    EndpointLeavesConnections,
    /// Everything is taken at once, whether it is read or not.
    TakesEverything,
    /// Who waits for room is not woken.
    ForgetsWriters,
    /// A peer that does not read is taken for dead.
    TakesSlowForDead,
    /// Silence is never noticed.
    IgnoresSilence,
    /// Only the one who dialled notices silence.
    AcceptorIgnoresSilence,
    /// Silence is noticed on the lane, but not on streams.
    StreamsIgnoreSilence,
    /// A connection that nobody uses is given up.
    NoKeepAlive,
    /// A full stream stops the lane.
    StreamStopsLane,
    /// A full lane stops streams.
    LaneStopsStreams,
    /// A stream that was given up seems to be finished.
    GivenUpSeemsWhole,
    /// The last byte of a stream is lost.
    LosesLastByte,
    /// Garbage ends the endpoint.
    GarbageEndsEndpoint,
    /// Garbage is delivered.
    DeliversGarbage,
    /// Garbage is not reported.
    HidesGarbage,
    /// A client that says nothing holds up those behind it.
    MuteHoldsUp,
    /// A client that says nothing may stay.
    MuteStays,
    /// A dropped `accept` takes a connection along.
    AcceptLosesConnections,
    /// A dropped `next` takes a stream along.
    NextLosesStreams,
    /// A dropped dial blocks the way for the next.
    DialBlocks,
    /// Batches above 64 KiB lose a byte.
    CutsLargeBatches,
    /// A stream ends after 48 MiB.
    StreamEndsEarly,
}
