//! Whole nodes in virtual time. One program holds all of it: what nodes are made of is then compiled once.

mod common;

mod clients;
mod cluster;
mod controllers;
mod datacenters;
mod departures;
mod fence;
mod handoff;
mod lanes;
mod load;
mod migrate;
mod nearness;
mod placing;
mod ranges;
mod remote;
mod scenarios;
mod settling;
mod sharding;
mod singles;
mod singletons;
mod state;
mod sweep;
mod tables;
mod upkeep;
mod watch;
mod world;
