//! Body files: their names, and reading them without being led astray.

use std::io;
use std::path::Path;

use super::entry::Entry;
use super::error::{Error, Step};
use super::io::{Disk, FailPoint, FileId, append_split};

/// The name of the body file of a new text. At least six digits; larger numbers take more, so names never repeat.
#[must_use]
pub fn source_name(seq: u64) -> String {
    format!("{seq:06}-source.bt")
}

/// The name of the body file of an earlier text.
#[must_use]
pub fn prev_name(seq: u64) -> String {
    format!("{seq:06}-prev.bt")
}

/// The number in a body file's name, if it is one that this store gives.
pub(crate) fn seq_of_name(name: &str) -> Option<u64> {
    let digits = name.strip_suffix("-source.bt").or_else(|| name.strip_suffix("-prev.bt"))?;
    let number = digits.parse().ok()?;
    (digits.len() >= 6 && digits.bytes().all(|byte| byte.is_ascii_digit())).then_some(number)
}

/// Whether a reference is a plain file name. Anything else is never followed.
#[must_use]
pub fn is_plain_name(reference: &str) -> bool {
    !reference.is_empty()
        && reference.len() <= 255
        && reference != "."
        && reference != ".."
        && !reference.bytes().any(|byte| matches!(byte, b'/' | b'\\' | b'\0' | b':'))
}

/// Reads a body by its reference.
pub(crate) fn read(disk: &dyn Disk, sources: &Path, reference: &str, limit: u64) -> Result<Vec<u8>, Error> {
    if !is_plain_name(reference) {
        return Err(Error::UnsafeRef { reference: reference.to_owned() });
    }
    check_folder(disk, sources)?;
    read_inside(disk, sources, reference, limit)
}

/// Whether `sources` may be read from: it must be no link. A missing one shows when a body is read.
pub(crate) fn check_folder(disk: &dyn Disk, sources: &Path) -> Result<(), Error> {
    match disk.is_dir(sources) {
        Ok(Some(false)) => Err(Error::NotRegular { path: sources.to_owned() }),
        Ok(_) => Ok(()),
        Err(error) => Err(Error::io(Step::ReadBody, sources, &error)),
    }
}

/// As [`read`], in a folder that was checked.
pub(crate) fn read_inside(
    disk: &dyn Disk,
    sources: &Path,
    reference: &str,
    limit: u64,
) -> Result<Vec<u8>, Error> {
    if !is_plain_name(reference) {
        return Err(Error::UnsafeRef { reference: reference.to_owned() });
    }
    let path = sources.join(reference);
    disk.read(&path, limit)
        .map(|(bytes, _)| bytes)
        .map_err(|error| read_error(Step::ReadBody, &path, limit, &error))
}

pub(crate) fn read_error(step: Step, path: &Path, limit: u64, error: &io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::FileTooLarge => Error::TooLarge { path: path.to_owned(), limit },
        io::ErrorKind::InvalidInput => Error::NotRegular { path: path.to_owned() },
        _ if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error())
            || error.raw_os_error() == Some(rustix::io::Errno::NXIO.raw_os_error()) =>
        {
            Error::NotRegular { path: path.to_owned() }
        }
        _ => Error::io(step, path, error),
    }
}

/// Reads a source file of the project: regular, bounded, and inside `root` if it names a place there.
pub(crate) fn read_source(
    disk: &dyn Disk,
    root: Option<&Path>,
    file: &str,
    limit: u64,
) -> Result<(Vec<u8>, FileId), Error> {
    let path = root.map_or_else(|| Path::new(file).to_owned(), |root| root.join(file));
    let fail = |error: &io::Error| read_error(Step::ReadSource, &path, limit, error);
    if file.contains('\0') {
        return Err(Error::NotRegular { path });
    }
    if let Some(root) = root
        && path.starts_with(root)
    {
        let resolved = disk.resolve(&path).map_err(|error| fail(&error))?;
        let root = disk.resolve(root).map_err(|error| fail(&error))?;
        if !resolved.starts_with(root) {
            return Err(Error::NotRegular { path });
        }
    }
    disk.read_source(&path, limit).map_err(|error| fail(&error))
}

/// Writes a body under a name that nothing refers to yet; what a failed append may have left there goes.
pub(crate) fn write(
    disk: &dyn Disk,
    sources: &Path,
    name: &str,
    bytes: &[u8],
    sync: bool,
) -> Result<(), Error> {
    let path = sources.join(name);
    let fail = |error: &io::Error| Error::io(Step::WriteBody, &path, error);
    let mut file = match disk.create_new(&path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            disk.remove(&path).map_err(|error| fail(&error))?;
            disk.create_new(&path)
        }
        outcome => outcome,
    }
    .map_err(|error| fail(&error))?;
    append_split(disk, &mut *file, bytes, FailPoint::InsideBody).map_err(|error| fail(&error))?;
    if sync {
        file.sync().map_err(|error| fail(&error))?;
    }
    Ok(())
}

/// The body files that only this entry's line can name: plain, and of the form that the store gives.
pub(crate) fn own_names(entry: &Entry) -> impl Iterator<Item = &str> {
    [entry.source_ref.as_deref(), entry.prev_source_ref.as_deref()]
        .into_iter()
        .flatten()
        .filter(|name| seq_of_name(name).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_millionth_body_has_a_name_of_its_own() {
        assert_eq!(source_name(0), "000000-source.bt");
        assert_eq!(prev_name(999_999), "999999-prev.bt");
        assert_eq!(source_name(1_000_000), "1000000-source.bt");
        assert_eq!(seq_of_name("1000000-source.bt"), Some(1_000_000));
    }

    #[test]
    fn a_reference_that_leads_elsewhere_is_no_plain_name() {
        for bad in ["", ".", "..", "../x", "/etc/passwd", "a/b", "a\\b", "C:x", "a\0b"] {
            assert!(!is_plain_name(bad), "{bad:?}");
        }
        assert!(is_plain_name("000001-source.bt"));
        for foreign in ["12-source.bt", "000001-source.bt.bak", "00000x-prev.bt", "+00001-prev.bt"] {
            assert_eq!(seq_of_name(foreign), None, "{foreign}");
        }
    }
}
