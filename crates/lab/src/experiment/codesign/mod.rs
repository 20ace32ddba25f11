//! The co-design paper's tables and figures: the file system allocates pages, the drive maps blocks.
//!
//! Invariant: what is counted is done by the real file system and drive, on an emulated chip that keeps every byte (`fig2_real`,
//! `fig3`, `real`, `table`); responses under load are the drive model's, in which each page that is read is compared.

mod burst_load;
mod even_load;
pub mod fig1;
pub mod fig2;
pub mod fig2_real;
pub mod fig3;
pub mod fig6;
pub mod fig7;
pub mod fig8;
mod figures;
mod laid_files;
mod load_of_drive;
mod paper_gains;
pub mod real;
pub mod table;
