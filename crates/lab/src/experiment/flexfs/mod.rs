//! The FlexFS paper's figures and tables, and the experiments that go beyond them, a file each.
//!
//! Invariant: every experiment runs the file system on an emulated chip, in virtual time.

pub mod courses;
pub mod energy;
pub mod fig10;
pub mod fig11;
pub mod fig12;
pub mod fig13;
pub mod fig14;
pub mod fig15;
pub mod fig16;
pub mod fig4;
pub mod fig6;
pub mod fig7;
pub mod fig8;
pub mod life;
pub mod mobigen;
pub mod sustained;
pub mod table1;
pub mod table6;
