//! How a shard comes to a node, and how the node learns that it has gone.

use super::{Assertion, HostAction, HostState, HostedShard, Moment, Out, Owned, Parcels, Tenancy};
use crate::handoff::HandOffOutcome;
use crate::handoff::limits::pause;
use crate::identity::{Generation, NodeId};
use crate::link::{Hint, ReturnReason};
use crate::placement::ClaimOutcome;

impl<J> HostedShard<J> {
    // ---- claims ----

    pub(super) fn on_asked(&mut self, at: Moment, out: &mut Out<J>) {
        let state = self.state;
        match state {
            HostState::Absent if self.may_have_come() => {
                self.state = HostState::Probing;
                out.push(HostAction::LookUp);
            }
            HostState::Probing if self.parcels.is_some_and(|parcels| parcels.arrived) => {}
            HostState::Absent | HostState::Probing => {
                let claim = Assertion::Claim { since: at.now, unanswered: 0, again_at: None };
                self.state = HostState::Reasserting(claim);
                out.push(HostAction::Claim);
            }
            HostState::Serving { tenancy, .. } => {
                out.push(HostAction::Answer(Some(self.mine_at(tenancy.generation))));
            }
            HostState::Fenced => out.push(HostAction::Answer(None)),
            // Whoever asked is told once it is known.
            HostState::Reasserting(_) | HostState::Draining(_) | HostState::Transferring(_) => {}
        }
    }

    /// State has come ahead, so the record may name us already: a claim would write over the word that it came along. One look
    /// is enough.
    fn may_have_come(&mut self) -> bool {
        let parcels = self.parcels.as_mut().filter(|parcels| parcels.arrived);
        parcels.is_some_and(|parcels| !core::mem::replace(&mut parcels.looked, true))
    }

    pub(super) fn on_claimed(&mut self, at: Moment, outcome: ClaimOutcome, out: &mut Out<J>) {
        let HostState::Reasserting(Assertion::Claim { since, unanswered, again_at: None }) = self.state
        else {
            return;
        };
        match outcome {
            ClaimOutcome::Placed(generation) if at.now < at.serve_until => {
                let hint = self.mine_at(generation);
                self.serve(at, Owned { hint, since: generation, moved: None }, out);
            }
            ClaimOutcome::Taken(hint) if hint.owner != self.me => {
                self.note(hint);
                self.be_absent(Some(hint), out);
            }
            ClaimOutcome::SessionLost | ClaimOutcome::NotHere => self.be_absent(None, out),
            _ if at.now.since(since) >= self.limits.claim_give_up => self.be_absent(None, out),
            _ => {
                let again_at = Some(at.now + pause(self.limits.claim, unanswered));
                let claim = Assertion::Claim { since, unanswered: unanswered + 1, again_at };
                self.state = HostState::Reasserting(claim);
            }
        }
    }

    /// The time to repeat a write has come, perhaps.
    pub(super) fn assert_again(&mut self, at: Moment, assertion: Assertion, out: &mut Out<J>) {
        match assertion {
            Assertion::Claim { since, unanswered, again_at: Some(again_at) } if again_at <= at.now => {
                let claim = Assertion::Claim { since, unanswered, again_at: None };
                self.state = HostState::Reasserting(claim);
                out.push(HostAction::Claim);
            }
            Assertion::Recast { base, unanswered, again_at } if again_at <= at.now => {
                self.reassert(at, base, unanswered + 1, out);
            }
            _ => {}
        }
    }

    // ---- records ----

    pub(super) fn on_seen(&mut self, at: Moment, record: Owned, out: &mut Out<J>) {
        self.note(record.hint);
        let Hint { owner, generation } = record.hint;
        let mine = owner == self.me;
        match self.state {
            HostState::Absent | HostState::Probing
                if self.is_handed_to_us(record) && at.now < at.serve_until =>
            {
                self.reassert(at, record, 0, out);
            }
            HostState::Absent | HostState::Fenced => self.notify_view(out),
            HostState::Probing | HostState::Reasserting(Assertion::Claim { .. }) => {}
            HostState::Reasserting(Assertion::Recast { base, .. }) if generation > base.hint.generation => {
                if mine && at.now < at.serve_until {
                    // What the record said about the move is what counts, whoever wrote it anew.
                    self.serve(at, Owned { moved: base.moved, ..record }, out);
                } else if !mine {
                    self.let_go(base.hint.generation, Some(record.hint), out);
                }
            }
            HostState::Transferring(departure) if generation > departure.tenancy.generation && !mine => {
                self.let_go(departure.tenancy.generation, Some(record.hint), out);
            }
            HostState::Serving { tenancy, .. } if generation > tenancy.generation => {
                self.contradicted(at, tenancy.generation, out);
            }
            HostState::Draining(drain) if generation > drain.tenancy.generation => {
                self.contradicted(at, drain.tenancy.generation, out);
            }
            _ => {}
        }
    }

    /// The record that stood at `generation` is gone. Only the node itself deletes it while its session lives.
    pub(super) fn on_gone(&mut self, at: Moment, generation: Generation, out: &mut Out<J>) {
        match self.state {
            HostState::Transferring(departure) if generation >= departure.tenancy.generation => {
                self.let_go(generation, None, out);
            }
            HostState::Reasserting(Assertion::Recast { base, .. }) if generation >= base.hint.generation => {
                self.let_go(generation, None, out);
            }
            HostState::Serving { tenancy, .. } if generation >= tenancy.generation => {
                self.contradicted(at, tenancy.generation, out);
            }
            HostState::Draining(drain) if generation >= drain.tenancy.generation => {
                self.contradicted(at, drain.tenancy.generation, out);
            }
            _ => {}
        }
    }

    /// Without an answer the messages go back as well: their senders look for themselves.
    pub(super) fn on_looked_up(&mut self, at: Moment, found: Option<Owned>, out: &mut Out<J>) {
        if let Some(record) = found {
            self.on_seen(at, record, out);
        }
        if self.state == HostState::Probing {
            self.be_absent(found.map(|record| record.hint), out);
        }
    }

    /// Writes a record of our own anew: only then do we serve it (OWN), and only then is every earlier write to it that may
    /// still be under way impossible (LATE).
    pub(super) fn reassert(&mut self, at: Moment, base: Owned, unanswered: u32, out: &mut Out<J>) {
        let again_at = at.now + pause(self.limits.reassert, unanswered);
        self.state = HostState::Reasserting(Assertion::Recast { base, unanswered, again_at });
        out.push(HostAction::Reassert(base));
    }

    /// A record that names us, is the newest we know of, and is none that we have given up.
    fn is_handed_to_us(&self, record: Owned) -> bool {
        let newest = self.view.is_none_or(|view| view.generation <= record.hint.generation);
        record.hint.owner == self.me && newest && record.hint.generation > self.let_go
    }

    // ---- the ends ----

    fn serve(&mut self, at: Moment, record: Owned, out: &mut Out<J>) {
        self.note(record.hint);
        let tenancy = Tenancy { generation: record.hint.generation, since: record.since };
        self.install_parcels(record, out);
        self.resume(at, tenancy, out);
    }

    /// The shard is served, from now on or again.
    pub(super) fn resume(&mut self, at: Moment, tenancy: Tenancy, out: &mut Out<J>) {
        let Tenancy { generation, since } = tenancy;
        self.state = HostState::Serving { tenancy, offer: None };
        out.push(HostAction::Serve { generation, since });
        self.deliver_held(at, tenancy, out);
        let here = self.mine_at(generation);
        self.notify_owed(here, out);
        out.push(HostAction::Answer(Some(here)));
        self.stays(out);
    }

    /// Gives a generation up for good (LET-GO): everything that waits goes back, then all who may care are told.
    fn let_go(&mut self, generation: Generation, place: Option<Hint>, out: &mut Out<J>) {
        self.let_go = self.let_go.max(generation);
        out.push(HostAction::LetGo(generation));
        if let Some(order) = self.order.take() {
            let outcome =
                place.map_or(HandOffOutcome::Released, |hint| HandOffOutcome::Moved(hint.generation));
            out.push(HostAction::HandOffDone { generation: order, outcome });
        }
        self.be_absent(place, out);
        let used = self.lanes.courtesies(self.shard);
        if let Some(hint) = place {
            out.extend(used.into_iter().map(|lane| HostAction::Notify { lane, hint }));
        }
    }

    fn be_absent(&mut self, answer: Option<Hint>, out: &mut Out<J>) {
        self.state = HostState::Absent;
        self.return_held(ReturnReason::NotOwner, out);
        self.notify_view(out);
        out.push(HostAction::Answer(answer));
    }

    fn notify_view(&mut self, out: &mut Out<J>) {
        if let Some(view) = self.view {
            self.notify_owed(view, out);
        }
    }

    pub(super) fn note(&mut self, hint: Hint) {
        if self.view.is_none_or(|view| view.generation < hint.generation) {
            self.view = Some(hint);
        }
    }

    // ---- state that comes along ----

    /// The shard may come if it has no place here yet and its state fits.
    pub(super) fn on_offered(
        &mut self,
        at: Moment,
        (to, move_id): (NodeId, u64),
        bytes: u64,
        out: &mut Out<J>,
    ) {
        let free = matches!(self.state, HostState::Absent | HostState::Probing);
        let accept = free && at.now < at.serve_until && bytes <= self.limits.parcel_bytes;
        if accept {
            self.forget_parcels(out);
            let keep_until = at.now + self.limits.parcel_keep;
            self.parcels = Some(Parcels { move_id, arrived: false, looked: false, keep_until });
        }
        out.push(HostAction::AnswerOffer { to, move_id, accept });
    }

    pub(super) fn on_parcels_arrived(&mut self, move_id: u64) {
        if let Some(parcels) = self.parcels.as_mut().filter(|parcels| parcels.move_id == move_id) {
            parcels.arrived = true;
        }
    }

    /// State is taken over only if the record names the very move that it was sent for; else the actors start cold.
    fn install_parcels(&mut self, record: Owned, out: &mut Out<J>) {
        let sent = record.moved.filter(|moved| moved.state);
        match (sent, self.parcels) {
            (Some(moved), Some(parcels)) if parcels.arrived && parcels.move_id == moved.id => {
                self.parcels = None;
                out.push(HostAction::InstallParcels { move_id: moved.id });
            }
            _ => self.forget_parcels(out),
        }
    }

    fn forget_parcels(&mut self, out: &mut Out<J>) {
        if let Some(Parcels { move_id, .. }) = self.parcels.take() {
            out.push(HostAction::DropParcels { move_id });
        }
    }
}
