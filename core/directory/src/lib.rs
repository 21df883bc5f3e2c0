//! The Store waist, and Directory and sessions written once above it.
