//! Workloads, models and experiments.
