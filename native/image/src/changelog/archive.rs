//! Archives of rotated lines and bodies, and the plan that makes a rotation one step.

use std::collections::HashSet;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};

use super::bodies;
use super::error::{Error, Step};
use super::io::{Appender, Disk, DiskFile, FileReader};

const PLAN_LIMIT: u64 = 64 << 20;
const VERSION: u32 = 1;

/// Content of `rotation.json`, there only while a rotation is under way. If the log still has the numbers, the
/// rotation did not happen and its archives go; if it has none of them, it did and the bodies go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub(crate) version: u32,
    /// Archive of lines, a name in `archive/`.
    pub(crate) segment: String,
    /// Archive of bodies, a name in `archive/`; the file may be absent.
    pub(crate) bodies: String,
    /// The numbers of the entries that move.
    pub(crate) seqs: Vec<u64>,
    /// The body files that move, names in `sources/`.
    pub(crate) refs: Vec<String>,
}

impl Plan {
    pub(crate) fn new(ms: u64, n: u64, seqs: Vec<u64>, refs: Vec<String>) -> Self {
        Self {
            version: VERSION,
            segment: format!("changes-{ms}-{n}.jsonl.gz"),
            bodies: format!("sources-{ms}-{n}.tar.gz"),
            seqs,
            refs,
        }
    }

    pub(crate) fn read(disk: &dyn Disk, path: &Path) -> Result<Option<Self>, Error> {
        let bytes = match disk.read(path, PLAN_LIMIT) {
            Ok((bytes, _)) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io(Step::Archive, path, &error)),
        };
        let plan: Self = serde_json::from_slice(&bytes).map_err(|error| {
            Error::io(Step::Archive, path, &io::Error::new(io::ErrorKind::InvalidData, error.to_string()))
        })?;
        let named = plan.segment.starts_with("changes-")
            && plan.bodies.starts_with("sources-")
            && bodies::is_plain_name(&plan.segment)
            && bodies::is_plain_name(&plan.bodies)
            && plan.refs.iter().all(|name| bodies::seq_of_name(name).is_some());
        if !named || plan.seqs.is_empty() {
            let error = io::Error::new(io::ErrorKind::InvalidData, "no plan of a rotation");
            return Err(Error::io(Step::Archive, path, &error));
        }
        Ok(Some(plan))
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = serde_json::to_vec(self).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }
}

/// Writes lines, each with its newline, as a new gzip file.
pub(crate) fn write_segment<'a>(
    disk: &dyn Disk,
    path: &Path,
    lines: impl Iterator<Item = &'a [u8]>,
    sync: bool,
) -> Result<(), Error> {
    let fail = |error: &io::Error| Error::io(Step::Archive, path, error);
    let mut file = disk.create_new(path).map_err(|error| fail(&error))?;
    let write = |file: &mut dyn DiskFile| -> io::Result<()> {
        let out = BufWriter::with_capacity(1 << 16, Appender(file));
        let mut gzip = GzEncoder::new(out, Compression::fast());
        for line in lines {
            gzip.write_all(line)?;
            gzip.write_all(b"\n")?;
        }
        gzip.finish()?.flush()
    };
    write(&mut *file).and_then(|()| if sync { file.sync() } else { Ok(()) }).map_err(|error| fail(&error))
}

/// Writes the named body files as a new compressed tar with bare names. Answers the names that are in it: files
/// that are gone, or are no files, are left out.
pub(crate) fn write_bodies(
    disk: &dyn Disk,
    path: &Path,
    sources: &Path,
    names: &[String],
    limit: u64,
    sync: bool,
) -> Result<Vec<String>, Error> {
    let fail = |error: &io::Error| Error::io(Step::Archive, path, error);
    let seconds = disk.now_ms() / 1000;
    bodies::check_folder(disk, sources)?;
    let mut present = names
        .iter()
        .filter_map(|name| match bodies::read_inside(disk, sources, name, limit) {
            Ok(body) => Some(Ok((name, body))),
            Err(Error::Io(fault)) if fault.kind != io::ErrorKind::NotFound => Some(Err(Error::Io(fault))),
            Err(_) => None,
        })
        .peekable();
    let mut kept = Vec::with_capacity(names.len());
    if present.peek().is_none() {
        return Ok(kept);
    }
    let mut file = disk.create_new(path).map_err(|error| fail(&error))?;
    let out = BufWriter::with_capacity(1 << 16, Appender(&mut *file));
    let mut tar = tar::Builder::new(GzEncoder::new(out, Compression::fast()));
    for body in present {
        let (name, body) = body?;
        let mut header = tar::Header::new_ustar();
        header.set_size(body.len() as u64);
        header.set_mode(0o644);
        header.set_mtime(seconds);
        header.set_entry_type(tar::EntryType::Regular);
        tar.append_data(&mut header, name, &*body).map_err(|error| fail(&error))?;
        kept.push(name.clone());
    }
    tar.into_inner()
        .and_then(GzEncoder::finish)
        .and_then(|mut out| out.flush())
        .and_then(|()| if sync { file.sync() } else { Ok(()) })
        .map_err(|error| fail(&error))?;
    Ok(kept)
}

/// The names in an archive of bodies; none if the file is not there.
pub(crate) fn names_in(disk: &dyn Disk, path: &Path) -> Result<HashSet<String>, Error> {
    let fail = |error: &io::Error| Error::io(Step::Archive, path, error);
    let file = match disk.open_read(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(HashSet::new()),
        Err(error) => return Err(fail(&error)),
    };
    let read = || -> io::Result<HashSet<String>> {
        let mut tar = tar::Archive::new(GzDecoder::new(FileReader { file: &*file, offset: 0 }));
        let mut names = HashSet::new();
        for entry in tar.entries()? {
            if let Some(name) = entry?.path()?.to_str() {
                names.insert(name.to_owned());
            }
        }
        Ok(names)
    };
    read().map_err(|error| fail(&error))
}
